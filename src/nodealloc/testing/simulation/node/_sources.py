"""Sources of pods of a simulated node, and whoever is told of them, by faulty ways."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import attrs

from nodealloc.dsw_asw import Cancel
from nodealloc.podfacts import PodStatus
from nodealloc.podsources import Reading
from nodealloc.testing.simulation._life import Life

__all__ = ["SimulatedSink", "SimulatedSource", "SinkCalls"]

_LONGEST_S = 122.0
"""So long at most whoever tells waits after calls that failed."""
_SOON_S = 15.0


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


class SinkCalls:
    """Calls of the sink, of all lives: which are under way, and which failed, by uid."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()
        self._failed: dict[str, tuple[int, float]] = {}

    def began(self, uid: str) -> None:
        """It is told of a pod."""
        self._open[uid] += 1

    def ended(self, uid: str) -> None:
        """It answered, or whoever asked is no more."""
        self._open[uid] -= 1

    def took(self, uid: str) -> None:
        """It has taken it: the next call does not wait."""
        self._failed.pop(uid, None)

    def failed(self, uid: str, now_s: float) -> None:
        """It has not: the next call waits, each time twice as long."""
        self._failed[uid] = self._failed.get(uid, (0, 0.0))[0] + 1, now_s

    def is_waited_for(self, uid: str, now_s: float) -> bool:
        """Whether nobody can have told the newest of a pod: a call is under way, or failed shortly before."""
        count, failed_s = self._failed.get(uid, (0, -math.inf))
        return self._open[uid] > 0 or now_s < failed_s + min(2.0**count, _LONGEST_S) + _SOON_S


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
        calls: SinkCalls | None = None,
    ) -> None:
        self._life = life
        self._calls = SinkCalls() if calls is None else calls
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
        self._calls.began(uid)
        try:
            self._call(uid, work)
            self._calls.took(uid)
        except OSError:
            self._calls.failed(uid, self._life.clock.awake_s)
            raise
        finally:
            self._calls.ended(uid)

    def _call(self, uid: str, work: Callable[[], object]) -> None:
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
