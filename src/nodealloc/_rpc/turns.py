"""A bounded number of conversations at once, in which nobody who hangs keeps out somebody who does not."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Generator

import attrs

from nodealloc.errors import ConfigurationError

__all__ = ["Turn", "Turns"]


@attrs.define(eq=False)
class Turn:
    """One conversation.

    Attributes:
        end: Ends it from another thread; may be called more than once.
        began_s: When it began.
        gave_way: Whether it was ended for somebody who came later.
    """

    end: Callable[[], None]
    began_s: float
    gave_way: bool = False


class Turns:
    """At most so many conversations at once. Thread-safe.

    Whoever comes while all are taken waits until the one that has lasted
    longest has had its patience, and takes its place. So a crowd that hangs
    costs itself, and whoever answers at once is hardly delayed.

    Args:
        most: How many at once, at least 1.
        patience_s: How long one may last before it has to give way.
        clock: Monotonic seconds.
    """

    def __init__(
        self, most: int, /, *, patience_s: float = 0.5, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if most < 1:
            raise ConfigurationError(f"{most} conversations at once would be none: give 1 or more")
        self._most = most
        self._patience_s = patience_s
        self._clock = clock
        self._changed = threading.Condition()
        self._taken: dict[int, Turn] = {}
        self._closed = False

    @contextlib.contextmanager
    def take(self, end: Callable[[], None], /) -> Generator[Turn]:
        """A turn, for as long as the block lasts; `end` has to make it short once it is called."""
        turn = self._admitted(end)
        try:
            yield turn
        finally:
            with self._changed:
                self._taken.pop(id(turn), None)
                self._changed.notify()

    def close(self) -> None:
        """End all, and everyone who comes later at once. May be repeated."""
        with self._changed:
            self._closed = True
            ended = list(self._taken.values())
            self._changed.notify_all()
        for turn in ended:
            turn.end()

    def _admitted(self, end: Callable[[], None]) -> Turn:
        turn = Turn(end, 0.0)
        oldest: Turn | None = None
        with self._changed:
            while len(self._taken) >= self._most and not self._closed:
                oldest = next(iter(self._taken.values()))
                left_s = oldest.began_s + self._patience_s - self._clock()
                if left_s <= 0:
                    # Its place is free from here on; it ends in its own thread.
                    del self._taken[id(oldest)]
                    oldest.gave_way = True
                    break
                oldest = None
                self._changed.wait(left_s)
            turn.began_s = self._clock()
            self._taken[id(turn)] = turn
            closed = self._closed
        if oldest is not None and oldest.gave_way:
            oldest.end()
        if closed:
            end()
        return turn
