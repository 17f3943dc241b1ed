"""What an agent has read of its sources by now: checkers hold it to that, and to nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable

from nodealloc.testing.simulation._clock import SimulatedClock
from nodealloc.testing.simulation.node._events import Event, Events, What

__all__ = ["Reads"]

_STORED_S = 3.0
"""What was read so shortly before the agent was killed may be forgotten."""


class Reads:
    """What changed in sources, and which of it the agent has read. Moments are on the clock of events.

    Args:
        clock: The machine's.
        events: Is told of what was read.

    Attributes:
        ends_s: When the agent had first read that a pod is to go, by uid.
        ends_by_s: When a pod has ended by what the agent has read; a shorter grace counts once it was.
        images: Container to the image that the agent has read to be wanted of it, and when it had.
        waits_s: Source to the moment since which something is to be read there.
        followed: Sources of whose changes the agent is told.
        alive_since_s: When the present life of the agent began.
        killed_s: When the one before it ended.
    """

    def __init__(self, clock: SimulatedClock, events: Events) -> None:
        self._clock, self._events = clock, events
        self.ends_s: dict[str, float] = {}
        self.ends_by_s: dict[str, float] = {}
        self.images: dict[tuple[str, str], tuple[str, float]] = {}
        self.waits_s: dict[str, float] = {}
        self.followed: set[str] = set()
        self.alive_since_s: float = 0.0
        self.killed_s: float = 0.0
        self._changes: dict[str, int] = {}
        self._new_ends: dict[str, dict[str, float]] = {}
        self._new_images: dict[str, dict[tuple[str, str], str]] = {}
        self._fresh: dict[str, tuple[str, float, float]] = {}

    def changed(self, source: str) -> None:
        """Something is to be read."""
        self._changes[source] = self._changes.get(source, 0) + 1
        self.waits_s.setdefault(source, self._clock.awake_s)

    def to_end(self, source: str, uid: str, grace_s: float) -> None:
        """Somebody wants a pod to go, or to go sooner."""
        self._new_ends.setdefault(source, {})[uid] = grace_s

    def let_go(self, source: str, uid: str, own_s: float) -> None:
        """A pod is not there any more: what was not read of its grace never will be."""
        ends = self._new_ends.get(source, {})
        if uid in ends and uid in self.ends_by_s:
            del ends[uid]  # it ends already, by what was read before
        elif uid in ends:
            ends[uid] = own_s

    def edited(self, source: str, uid: str, name: str, image: str) -> None:
        """A container is to run from another image."""
        self._new_images.setdefault(source, {})[uid, name] = image

    def reading(self, source: str, *, is_followed: bool = True) -> Callable[[], None]:
        """A source is asked; what to call when the agent has its answer."""
        (self.followed.add if is_followed else self.followed.discard)(source)
        number = self._changes.get(source, 0)
        ends = dict(self._new_ends.get(source, {}))
        images = dict(self._new_images.get(source, {}))

        def was_heard() -> None:
            now_s = self._clock.awake_s
            if self._changes.get(source, 0) == number:
                self.waits_s.pop(source, None)
            for uid, grace_s in ends.items():
                self._heard_end(source, uid, grace_s, now_s)
            for key, image in images.items():
                if self._new_images[source].get(key) == image:
                    del self._new_images[source][key]
                self.images[key] = image, now_s

        return was_heard

    def began_anew(self, killed_s: float) -> None:
        """Another life of the agent begins, and what the last one had only just read may be forgotten."""
        self.alive_since_s, self.killed_s = self._clock.awake_s, killed_s
        for uid, (source, grace_s, read_s) in self._fresh.items():
            if killed_s - read_s < _STORED_S:
                self.ends_by_s.pop(uid, None)
                self._new_ends.setdefault(source, {}).setdefault(uid, grace_s)
        self._fresh.clear()

    def _heard_end(self, source: str, uid: str, grace_s: float, now_s: float) -> None:
        if self._new_ends[source].get(uid) == grace_s:
            del self._new_ends[source][uid]
        self.ends_s.setdefault(uid, now_s)
        self.ends_by_s[uid] = min(self.ends_by_s.get(uid, math.inf), now_s + grace_s)
        self._fresh[uid] = source, grace_s, now_s
        left_s = self.ends_by_s[uid] - now_s
        self._events.happen(Event(what=What.READ, at_s=now_s, uid=uid, value=left_s))
