"""Sources of pods of a simulated node, and whoever is told of them: faulty ways to the outside."""

from __future__ import annotations

import math
from collections.abc import Callable

import attrs

from nodealloc.dsw_asw import Cancel
from nodealloc.podfacts import PodStatus
from nodealloc.podsources import Reading
from nodealloc.testing.simulation._life import Life

__all__ = ["SimulatedSink", "SimulatedSource"]


class SimulatedSource:
    """A `Source` of pods, for one life.

    Faults, by name: `source is away`, `source is slow`, `source is behind` (it says late what it
    was), `source reorders` its pods, `source hangs`, `source is not synced`; `source tells nothing`
    of a change, which is then found by the next reading.

    Args:
        life: Whose.
        read: What is there now, and what to call once that was heard.
        hung: Is told of calls that take long.

    Attributes:
        is_followed: Whether somebody is told of changes.
    """

    def __init__(
        self,
        life: Life,
        read: Callable[[], tuple[Reading, Callable[[], object]]],
        hung: Callable[[], object] = lambda: None,
    ) -> None:
        self._life = life
        self._read = read
        self._hung = hung
        self._on_change: Callable[[], object] = lambda: None
        self.is_followed: bool = False

    def on_change(self, call: Callable[[], object], /) -> None:
        """Call this when something changed, such as `hurry` of `PodSources`."""
        self._on_change = call
        self.is_followed = True

    def changed(self) -> None:
        """Something changed."""
        if not self._life.is_over and not self._life.chance.strikes("source tells nothing"):
            self._on_change()

    def read(self, cancel: Cancel, /) -> Reading:
        """See `Source.read`."""
        life, strikes = self._life, self._life.chance.strikes
        life.enter()
        if strikes("source is away"):
            raise OSError("the source does not answer")
        if strikes("source is slow"):
            self._hung()
            life.pause(life.chance.rng.uniform(0.5, 40.0), cancel)
        if strikes("source hangs"):
            self._hung()
            life.pause(math.inf, cancel)
            raise OSError("the source hung, and was given up")
        reading, was_heard = self._read()
        if strikes("source reorders"):
            pods = life.chance.rng.sample(reading.pods, len(reading.pods))
            reading = attrs.evolve(reading, pods=tuple(pods))
        if strikes("source is behind"):
            self._hung()
            life.pause(life.chance.rng.uniform(0.5, 40.0), cancel)
        if strikes("source is not synced"):
            reading = Reading(is_synced=False)
        life.leave()
        if reading.is_synced:
            was_heard()
        return reading


class SimulatedSink:
    """A sink of statuses, for one life.

    Faults, by name: `sink is away`, `sink is slow`, `sink hangs`, `sink
    answer is lost`.
    """

    def __init__(
        self,
        life: Life,
        told: Callable[[str, PodStatus], object],
        gone: Callable[[str], object],
        hung: Callable[[str], object] = lambda _uid: None,
    ) -> None:
        self._life = life
        self._told = told
        self._gone = gone
        self._hung = hung

    def told(self, uid: str, status: PodStatus, /) -> None:
        """See `Sink.told` of `nodealloc.podstatus`."""
        self._through(uid, lambda: self._told(uid, status))

    def gone(self, uid: str, /) -> None:
        """See `Sink.gone` of `nodealloc.podstatus`."""
        self._through(uid, lambda: self._gone(uid))

    def _through(self, uid: str, work: Callable[[], object]) -> None:
        life, strikes = self._life, self._life.chance.strikes
        life.enter()
        if strikes("sink is away"):
            raise OSError("the sink does not answer")
        work()
        # It has taken what it was told when it was told; its answer comes late.
        if strikes("sink is slow"):
            self._hung(uid)
            life.pause(life.chance.rng.uniform(0.5, 40.0))
        if strikes("sink hangs"):
            self._hung(uid)
            life.pause(math.inf)
        if strikes("sink answer is lost"):
            raise OSError("the sink's answer was lost")
        life.leave()
