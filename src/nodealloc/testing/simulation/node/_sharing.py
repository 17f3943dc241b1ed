"""Checkers of who is moved when CPUs become somebody's own, or nobody's any more."""

from __future__ import annotations

from typing import NamedTuple

from nodealloc import _attrs as attrs
from nodealloc.idset import CPUSet
from nodealloc.testing.simulation.node._deeds import Deed, What
from nodealloc.testing.simulation.node._hanging import Hangs
from nodealloc.testing.simulation.node._holding import OwnCpus
from nodealloc.testing.simulation.node._in_time import Owed
from nodealloc.testing.simulation.node._outside import Outside

__all__ = ["CpusAreSpread", "CpusFreeFirst", "SharersMove"]

_MOVES_S = 6.0
"""So long after one container was moved all others that share CPUs with it may take."""


class CpusAreSpread(OwnCpus):
    """Ours: nothing that was given back lies idle."""

    words = "when all is quiet, who shares CPUs runs on all that no pod has for itself"

    def __init__(self, outside: Outside) -> None:
        super().__init__(outside)
        self._had: dict[str, CPUSet] = {}

    def heard(self, deed: Deed, /) -> None:
        """What a pod's containers have had for themselves is its own until it is over."""
        if deed.what is not What.CONFINED or not isinstance(deed.value, CPUSet):
            return
        if self.own(deed.uid, deed.name, deed.value):
            self._had[deed.uid] = self._had.get(deed.uid, CPUSet()) | deed.value

    def settled(self) -> None:
        """By now whoever shares has the rest."""
        outside = self.outside
        if not outside.is_aligned:
            return
        spare = CPUSet(cpu for one in outside.machine.numa_nodes for cpu in one.cpus)
        for uid, cpus in self._had.items():
            told = outside.told.get(uid)
            is_over = told is not None and told.phase is not None and told.phase.is_terminal
            if not is_over and any(uid in pods for pods in outside.pods.values()):
                spare -= cpus
        for record, cpus in self.confined():
            if cpus and not self.own(record.pod.uid, record.name, cpus):
                assert spare <= cpus, (
                    f"{record.pod.uid}/{record.name} shares CPUs {cpus}, and nobody has {spare - cpus}"
                )


class _Stay(NamedTuple):
    """Where a container runs from a moment on."""

    since_s: float
    cpus: CPUSet


@attrs.define
class _Stays:
    """Of one container: where it ran since when, the newest last, and when it ended."""

    uid: str
    stays: list[_Stay]
    started_s: float = float("inf")
    ended_s: float = float("inf")

    def at(self, moment_s: float) -> CPUSet:
        """Where it ran then; empty where it did not, or anywhere."""
        if not self.started_s <= moment_s < self.ended_s:
            return CPUSet()
        return next((one.cpus for one in reversed(self.stays) if one.since_s <= moment_s), CPUSet())


class CpusFreeFirst(OwnCpus):
    """Ours: whose own CPUs are not free yet waits, and nothing is made for it."""

    words = "a pod has a sandbox made when all others have left the CPUs that it has for itself"

    def __init__(self, outside: Outside) -> None:
        super().__init__(outside)
        self._stays: dict[str, _Stays] = {}
        self._asked_s: dict[str, float] = {}

    def heard(self, deed: Deed, /) -> None:
        """Nobody else was on them when the first sandbox was asked for."""
        if deed.what is What.SANDBOX_MADE:
            asked_s = deed.at_s if deed.asked_s is None else deed.asked_s
            self._asked_s.setdefault(deed.uid, asked_s)
        elif deed.what is What.CONFINED and isinstance(deed.value, CPUSet):
            stays = self._stays.setdefault(deed.id, _Stays(deed.uid, []))
            stays.stays.append(_Stay(deed.at_s, deed.value))
            if self.own(deed.uid, deed.name, deed.value):
                self._were_free(deed, deed.value)
        elif deed.what is What.STARTED and deed.id in self._stays:
            self._stays[deed.id].started_s = deed.at_s
        elif deed.what is What.ENDED and deed.id in self._stays:
            self._stays[deed.id].ended_s = deed.at_s
        elif deed.what in {What.REMOVED, What.FORGOT}:
            self._stays.pop(deed.id, None)

    def _were_free(self, deed: Deed, mine: CPUSet) -> None:
        asked_s = self._asked_s.get(deed.uid)
        if asked_s is None:
            return
        for one, stays in self._stays.items():
            were = stays.at(asked_s) & mine if stays.uid != deed.uid else CPUSet()
            assert not were, (
                f"{deed.uid} has a sandbox made while {one} of {stays.uid} runs on {were}, "
                f"which {deed.name} has for itself"
            )


class SharersMove(OwnCpus, Hangs):
    """Guarantee 6: a container that cannot be moved keeps no other one where it is."""

    words = "containers that share CPUs are moved together, but for those whose calls hang"

    def __init__(self, outside: Outside) -> None:
        super().__init__(outside)
        self._owed = Owed(outside)
        self._moved_s: dict[str, float] = {}
        self._started_s: dict[str, float] = {}

    def heard(self, deed: Deed, /) -> None:
        """Some time after one was moved all run where it does."""
        outside = self.outside
        if not (outside.only_ends or outside.only_hangs):
            return
        self.hear_hung(deed)
        if deed.what is What.STARTED:
            # Where it was made to run others have been moved as well.
            self._started_s[deed.id] = self._moved_s[deed.id] = deed.at_s
            self._owed.owe(deed.at_s + _MOVES_S, deed.id)
        elif deed.what is What.CONFINED and deed.id in self._started_s:
            self._moved_s[deed.id] = deed.at_s
            self._owed.owe(deed.at_s + _MOVES_S, deed.id)
        for (one,) in self._owed.overdue(deed.at_s):
            self._have_moved(one, deed.at_s)

    def _have_moved(self, moved: str, now_s: float) -> None:
        at_s = self._moved_s[moved]
        shared = {
            record.id: cpus
            for record, cpus in self.confined()
            if record.id in self._started_s
            and not self.own(record.pod.uid, record.name, cpus)
            and not self.is_felt(record.pod.uid, now_s)
        }
        cpus = shared.get(moved)
        for other, where in shared.items() if cpus is not None else ():
            assert where == cpus or self._moved_s[other] >= at_s, (
                f"{moved} was put on CPUs {cpus} {self.outside.awake_s - at_s:.0f} s ago, "
                f"and {other}, which shares them, still runs on {where}"
            )
