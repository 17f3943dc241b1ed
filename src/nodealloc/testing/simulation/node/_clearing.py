"""Checkers of what stays behind: of a pod that is gone, and of files that a store found damaged."""

from __future__ import annotations

import re
from collections import Counter

from nodealloc.runtime import RunState
from nodealloc.testing.simulation.node._environment import API, FILL, REST, Environment
from nodealloc.testing.simulation.node._events import Event, What
from nodealloc.testing.simulation.node._guarantee import Guarantee

__all__ = [
    "EachIsForgotten",
    "FewRecordsStay",
    "NothingIsLeft",
    "RecordsGoFirst",
    "RestIsHad",
    "StoreIsWhole",
]

_ASIDE = (".nodealloc.damaged-", ".nodealloc.kept-")
"""How the names of files begin that a store found damaged and put aside."""
_CUT_OFF = (".nodealloc.commit", ".nodealloc.new-")
"""The same of files that a commit writes first, and takes away."""
_DEAD = 2
"""Of one container so many records of ends may stay: the newest one, and one that an agent keeps besides."""


class RecordsGoFirst(Guarantee):
    """Guarantee 11: whoever says that a pod is gone has looked."""

    words = "when a pod is told gone the runtime has no sandbox and no container of it"

    def heard(self, event: Event, /) -> None:
        """Nothing of it is there but what came too late for anybody to wait for."""
        if event.what is not What.GONE:
            return
        containers = self.environment.containers
        boxes = [one.record.id for one in containers.sandboxes if one.record.pod.uid == event.uid]
        runs = [one.record.id for one in containers.reports if one.record.pod.uid == event.uid]
        left = [one for one in (*boxes, *runs) if one not in containers.late | containers.strange]
        assert not left, f"{event.uid} is told gone, and the runtime still has {', '.join(left)}"


class FewRecordsStay(Guarantee):
    """Guarantee 11, while pods go on: nothing piles up."""

    words = "when all is quiet, of a container's instances that have ended the newest are recorded alone"

    def settled(self) -> None:
        """By now the older ones are gone."""
        reports = self.environment.containers.reports
        ends = [one.record for one in reports if one.record.state is RunState.EXITED]
        for (uid, name), count in Counter((one.pod.uid, one.name) for one in ends).items():
            assert count <= _DEAD, (
                f"the runtime has records of {count} instances of {uid}/{name} that have ended"
            )


class NothingIsLeft(Guarantee):
    """Guarantee 11, at the end of a life: the node is as it was at first."""

    words = "when the last pod has gone nothing is left of any, and all that there is can be had again"

    def emptied(self) -> None:
        """No sandbox, container or mount is there, and the whole node can be given out."""
        containers, volumes = self.environment.containers, self.environment.volumes
        left = [f"{one.record.pod.uid}/{one.record.name}" for one in containers.reports]
        assert not left, f"no pod is wanted, and the runtime still has {', '.join(left)}"
        boxes = [box.record.pod.uid for box in containers.sandboxes]
        assert not boxes, f"no pod is wanted, and the runtime still has sandboxes of {', '.join(boxes)}"
        mounts = [f"{key} of {uid}" for key, uid in volumes.mounts]
        assert not mounts, f"no pod is wanted, and {', '.join(mounts)} is still mounted"
        self._has_forgotten()
        untold = self.environment.told.keys() - self.environment.gone
        assert not untold, f"{', '.join(sorted(untold))} was told of, and nobody says that it is gone"

    def _has_forgotten(self) -> None:
        """Nothing of a pod that is gone is remembered."""
        files = self.environment.files()
        for uid in self.environment.gone if files else ():
            word = re.compile(rf"{re.escape(uid)}(?!\d)")
            # What a store could not remove of a commit that failed it removes at its next start.
            kept = [path for path in files if word.search(path) and not path.startswith(".")]
            assert not kept, f"{uid} is gone, and {kept[0]} is still stored for it"

    def settled(self) -> None:
        """Whoever asks for the whole of an empty node gets it."""
        runs = {one.record.pod.uid for one in self.environment.containers.running}
        for uid in self.environment.known:
            if uid.startswith(FILL) and uid not in runs:
                told = self.environment.told.get(uid)
                why = "nobody was told why" if told is None else f"{told.reason}: {told.message}"
                raise AssertionError(
                    f"the node is empty, and {uid}, which asks for a part of it, does not run: {why}"
                )


class EachIsForgotten(Guarantee):
    """Ours: whoever keeps something for a pod hears of it when the pod is no more."""

    words = "whoever is to be called when a pod is no more is called, of each that came in the agent's life"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._came: set[str] = set()

    def heard(self, event: Event, /) -> None:
        """Who came in this life: of others that went in an earlier one nobody is called again."""
        if event.what is What.WANTED:
            self._came.add(event.uid)
        elif event.what is What.KILLED:
            self._came.clear()

    def emptied(self) -> None:
        """By now it was called of all that are told gone."""
        if self.environment.forgotten is not None:
            missing = sorted((self._came & self.environment.gone) - self.environment.forgotten)
            assert not missing, f"{', '.join(missing)} is gone, and nobody was called that is to hear of it"


class RestIsHad(Guarantee):
    """Ours: nothing is held for nobody, on a node that is full of others, too."""

    words = "when all is quiet, all the CPUs that no pod asks for can be had"

    def settled(self) -> None:
        """Whoever asks for the rest of them gets it."""
        runs = {one.record.pod.uid for one in self.environment.containers.running}
        for uid in [uid for uid in self.environment.pods[API] if uid.startswith(REST)]:
            told = self.environment.told.get(uid)
            why = "nobody was told why" if told is None else f"{told.reason}: {told.message}"
            assert uid in runs or uid in self.environment.deletions, (
                f"{uid}, which asks for no more CPUs than others leave, does not run: {why}"
            )


class StoreIsWhole(Guarantee):
    """Guarantee 9: no kill, no power cut and no full disk tears what was stored."""

    words = "no file of the agent's store is ever found damaged, and none stays of a commit that was cut off"

    def heard(self, event: Event, /) -> None:
        """When a life has ended none was put aside."""
        if event.what is What.KILLED:
            self._none_is_damaged()

    def settled(self) -> None:
        """None is put aside, and no start has left anything of a commit that a kill cut off."""
        self._none_is_damaged()
        if self.environment.only_ends:
            cut = [one for one in self.environment.files() if one.rpartition("/")[2].startswith(_CUT_OFF)]
            assert not cut, f"{cut[0]} is left of a commit that was cut off"

    def _none_is_damaged(self) -> None:
        damaged = [one for one in self.environment.files() if one.rpartition("/")[2].startswith(_ASIDE)]
        assert not damaged, f"{damaged[0]} was found damaged by the agent, and nothing but the agent wrote it"
