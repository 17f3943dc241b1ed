"""Things that are due at a moment: ends of back-off, deadlines, the next resync."""

from __future__ import annotations

import heapq
from collections.abc import Callable

__all__ = ["Timers"]


class Timers:
    """Calls by due time; not thread-safe, its owner holds a lock."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0

    def add(self, due_s: float, call: Callable[[], None], /) -> None:
        """Run `call` in the first pass at or after `due_s`."""
        self._number += 1
        heapq.heappush(self._heap, (due_s, self._number, call))

    def run_due(self, now_s: float, /) -> None:
        """Run everything that is due, in order."""
        while self._heap and self._heap[0][0] <= now_s:
            heapq.heappop(self._heap)[2]()

    @property
    def next_due_s(self) -> float | None:
        """When the next one is due, or None."""
        return self._heap[0][0] if self._heap else None
