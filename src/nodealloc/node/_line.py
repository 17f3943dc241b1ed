"""Who decides next: one at a time, in the order in which they came, and nobody behind one that hangs."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

__all__ = ["Line"]

_SHARE: Final = 16
"""Behind one that hung the next ones have so much less time each, until one of them ends."""


class Line:
    """Decisions one after the other, so that none has to be made anew for those beside it. Thread-safe.

    What counts is how long one decision takes, not how many are before it: who has decided for
    `patience_s` loses its place to the next one, for good, and goes on beside that one. Where many hang
    at once, those after the first have a sixteenth of that time each.

    Args:
        patience_s: So long one that comes waits for the one that decides, in real seconds.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._moved = threading.Condition()
        self._waiting: deque[object] = deque()
        self._first: object | None = None
        self._late_s = math.inf
        self._own = threading.local()

    @contextmanager
    def place(self, at_most_s: float = math.inf) -> Generator[None, None, None]:
        """Decide in it, once those before have; one within another, on the same thread, waits for nobody.

        Args:
            at_most_s: How long it waits in all; then it goes on without a place.
        """
        if getattr(self._own, "is_in", False):
            yield
            return
        place = object()
        self._own.is_in = True
        try:
            self._wait(place, time.monotonic() + at_most_s)
            yield
        finally:
            self._own.is_in = False
            self._leave(place)

    def _wait(self, place: object, until_s: float) -> None:
        with self._moved:
            self._waiting.append(place)
            while True:
                now_s = time.monotonic()
                if self._waiting[0] is place and (self._first is None or now_s >= self._late_s):
                    self._take(place, now_s)
                    return
                if now_s >= until_s:
                    self._waiting.remove(place)
                    self._moved.notify_all()  # somebody else may be the next one now
                    return
                # Only the next one takes over from one that hangs.
                wakes_s = min(until_s, self._late_s) if self._waiting[0] is place else until_s
                self._moved.wait(min(wakes_s - now_s, threading.TIMEOUT_MAX))

    def _take(self, place: object, now_s: float) -> None:
        """Be the first, in the place of one that hangs if there is one."""
        self._waiting.popleft()
        self._late_s = now_s + self._patience_s / (1 if self._first is None else _SHARE)
        self._first = place
        self._moved.notify_all()  # somebody else is the next one now

    def _leave(self, place: object) -> None:
        with self._moved:
            if self._first is place:
                self._first = None
            elif place in self._waiting:
                self._waiting.remove(place)
            self._moved.notify_all()
