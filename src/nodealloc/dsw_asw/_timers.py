"""Things that are due at a moment: ends of back-off, deadlines, looks that a plan asked for."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

__all__ = ["Timer", "Timers"]


class Timer:
    """One thing that is due; `cancel` it when it does not matter any more, and it holds nothing."""

    __slots__ = ("_owner", "call", "due_s")

    def __init__(self, owner: Timers, due_s: float, call: Callable[[], None]) -> None:
        self._owner = owner
        self.due_s = due_s
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Never run it; a second call, or one after it ran, does nothing."""
        if self.call is not None:
            self.call = None
            self._owner.cancelled(self)


class Timers:
    """Calls by due time; not thread-safe, its owner holds a lock.

    Memory follows what is due, not what was ever asked for: cancelled timers
    are swept out when they are more than half.

    Attributes:
        now_s: Of the last `run_due`.
        soonest_s: When the next one is due, infinity for none; may be read without the owner's lock.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._number = 0
        self._cancelled = 0
        self.now_s = 0.0
        self.soonest_s = math.inf

    def __len__(self) -> int:
        return len(self._heap) - self._cancelled

    def add(self, due_s: float, call: Callable[[], None], /) -> Timer:
        """Run `call` in the first pass at or after `due_s`."""
        self._number += 1
        timer = Timer(self, due_s, call)
        heapq.heappush(self._heap, (due_s, self._number, timer))
        self.soonest_s = min(self.soonest_s, due_s)
        return timer

    def run_due(self, now_s: float, /) -> None:
        """Run everything that is due, in order; `now_s` says to them when that is."""
        self.now_s = now_s
        while self._heap and self._heap[0][0] <= now_s:
            timer = self._heap[0][2]
            call, timer.call = timer.call, None
            heapq.heappop(self._heap)
            if call is None:
                self._cancelled -= 1
            else:
                call()
        self._see_soonest()

    def cancelled(self, timer: Timer, /) -> None:
        """One more was cancelled; sweep when most are, and know the soonest of the others."""
        self._cancelled += 1
        if self._cancelled > 32 + len(self._heap) // 2:
            self._heap = [entry for entry in self._heap if entry[2].call is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0
            self._see_soonest()
        elif timer.due_s <= self.soonest_s:
            self._see_soonest()

    def _see_soonest(self) -> None:
        """Leave out what was cancelled and would be due first."""
        heap = self._heap
        while heap and heap[0][2].call is None:
            heapq.heappop(heap)
            self._cancelled -= 1
        self.soonest_s = heap[0][0] if heap else math.inf
