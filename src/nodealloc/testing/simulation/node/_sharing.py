"""Checkers of who is moved when CPUs become somebody's own, or nobody's any more."""

from __future__ import annotations

from typing import NamedTuple

from nodealloc import _attrs as attrs
from nodealloc.idset import CPUSet
from nodealloc.testing.simulation.node._environment import Environment
from nodealloc.testing.simulation.node._events import Event, What
from nodealloc.testing.simulation.node._hanging import Hangs
from nodealloc.testing.simulation.node._holding import OwnCpus
from nodealloc.testing.simulation.node._in_time import Owed

__all__ = ["CpusAreSpread", "CpusFreeFirst", "SharersMove"]

_MOVES_S = 6.0
"""So long after one container was moved all others that share CPUs with it may take."""


class CpusAreSpread(OwnCpus):
    """Ours: nothing that was given back lies idle."""

    words = "when all is quiet, who shares CPUs runs on all that no pod has for itself"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._had: dict[str, CPUSet] = {}

    def heard(self, event: Event, /) -> None:
        """What a pod's containers have had for themselves is its own until it is over."""
        if event.what is not What.CONFINED or not isinstance(event.value, CPUSet):
            return
        if self.own(event.uid, event.name, event.value):
            self._had[event.uid] = self._had.get(event.uid, CPUSet()) | event.value

    def settled(self) -> None:
        """By now whoever shares has the rest."""
        environment = self.environment
        if not environment.is_aligned:
            return
        spare = CPUSet(cpu for one in environment.machine.numa_nodes for cpu in one.cpus)
        for uid, cpus in self._had.items():
            if not environment.is_over(uid) and any(uid in pods for pods in environment.pods.values()):
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

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._stays: dict[str, _Stays] = {}
        self._asked_s: dict[str, float] = {}

    def heard(self, event: Event, /) -> None:
        """Nobody else was on them when the first sandbox was asked for."""
        if event.what is What.SANDBOX_MADE:
            asked_s = event.at_s if event.asked_s is None else event.asked_s
            self._asked_s.setdefault(event.uid, asked_s)
        elif event.what is What.CONFINED and isinstance(event.value, CPUSet):
            stays = self._stays.setdefault(event.id, _Stays(event.uid, []))
            stays.stays.append(_Stay(event.at_s, event.value))
            if self.own(event.uid, event.name, event.value):
                self._were_free(event, event.value)
        elif event.what is What.STARTED and event.id in self._stays:
            self._stays[event.id].started_s = event.at_s
        elif event.what is What.ENDED and event.id in self._stays:
            self._stays[event.id].ended_s = event.at_s
        elif event.what in {What.REMOVED, What.FORGOT}:
            self._stays.pop(event.id, None)

    def _were_free(self, event: Event, mine: CPUSet) -> None:
        asked_s = self._asked_s.get(event.uid)
        if asked_s is None:
            return
        for one, stays in self._stays.items():
            were = stays.at(asked_s) & mine if stays.uid != event.uid else CPUSet()
            assert not were, (
                f"{event.uid} has a sandbox made while {one} of {stays.uid} runs on {were}, "
                f"which {event.name} has for itself"
            )


class SharersMove(OwnCpus, Hangs):
    """Guarantee 6: a container that cannot be moved keeps no other one where it is."""

    words = "containers that share CPUs are moved together, but for those whose calls hang"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._owed = Owed(environment)
        self._moved_s: dict[str, float] = {}
        self._started_s: dict[str, float] = {}

    def heard(self, event: Event, /) -> None:
        """Some time after one was moved all run where it does."""
        environment = self.environment
        if not (environment.only_ends or environment.only_hangs):
            return
        self.hear_hung(event)
        if event.what is What.STARTED:
            # Where it was made to run others have been moved as well.
            self._started_s[event.id] = self._moved_s[event.id] = event.at_s
            self._owed.owe(event.at_s + _MOVES_S, event.id)
        elif event.what is What.CONFINED and event.id in self._started_s:
            self._moved_s[event.id] = event.at_s
            self._owed.owe(event.at_s + _MOVES_S, event.id)
        for (one,) in self._owed.overdue(event.at_s):
            self._have_moved(one, event.at_s)

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
                f"{moved} was put on CPUs {cpus} {self.environment.awake_s - at_s:.0f} s ago, "
                f"and {other}, which shares them, still runs on {where}"
            )
