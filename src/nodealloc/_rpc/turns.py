"""A bounded number of conversations at once, in which nobody who hangs keeps out somebody who does not."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Generator, Hashable

from nodealloc import _attrs as attrs
from nodealloc._logged import logged
from nodealloc._rpc.places import Places

__all__ = ["Turn", "Turns"]

_log = logging.getLogger("nodealloc")


@attrs.define(eq=False)
class Turn:
    """One conversation.

    Attributes:
        end: Ends it from another thread; may be called more than once.
        has_begun: Whether it has its place, or had it.
        gave_way: Whether it was ended for somebody else.
    """

    end: Callable[[], None]
    has_begun: bool = False
    gave_way: bool = False


class Turns:
    """At most so many conversations at once, each on its caller's thread, by the rules of `Places`.

    Thread-safe. A crowd that hangs costs itself, and whoever answers at once is hardly delayed.

    Args:
        most: How many at once, at least 1.
        first_s: How long a first turn is where others wait.
    """

    def __init__(self, most: int, /, *, first_s: float = 0.06) -> None:
        self._changed = threading.Condition()
        self._places = Places[Turn](most, first_s=first_s)
        self._under_way: set[Turn] = set()
        self._closed = False

    @contextlib.contextmanager
    def take(
        self, end: Callable[[], None], /, peer: Hashable = None, owner: Hashable = None
    ) -> Generator[Turn]:
        """A turn, for as long as the block lasts; `end` has to make it short once it is called.

        Args:
            end: Ends the conversation.
            peer: Whom it is with, who gets longer turns each time; None for nobody that is known.
            owner: Whose peers wait behind each other; None for nobody's.
        """
        turn = Turn(end)
        self._begin(turn, turn if peer is None else peer, owner)
        try:
            yield turn
        finally:
            with self._changed:
                self._places.leave(turn)
                self._under_way.discard(turn)
                if not turn.gave_way and peer is not None:
                    self._places.forget(peer)
                self._changed.notify_all()

    def close(self) -> None:
        """End all, and everyone who comes later at once. May be repeated."""
        with self._changed:
            self._closed = True
            ended = list(self._under_way)
            self._changed.notify_all()
        for turn in ended:
            _end(turn)

    def _begin(self, turn: Turn, peer: Hashable, owner: Hashable) -> None:
        with self._changed:
            self._places.wait(turn, peer, owner)
        while True:
            with self._changed:
                ended = self._next_turns()
                is_over = turn.has_begun or self._closed
                if not (is_over or ended):
                    next_s = self._places.next_s()
                    self._changed.wait(None if next_s is None else max(0.0, next_s - time.monotonic()))
            for one in ended:
                _end(one)
            if is_over:
                if self._closed:
                    _end(turn)
                return

    def _next_turns(self) -> list[Turn]:
        """Let those begin who may; who has to end for them."""
        ended: list[Turn] = []
        for begun, leaves in self._places.begin(time.monotonic()):
            begun.has_begun = True
            self._under_way.add(begun)
            if leaves is not None:
                # Its place is free from here on; it ends in its own thread.
                leaves.gave_way = True
                self._under_way.discard(leaves)
                ended.append(leaves)
            self._changed.notify_all()
        return ended


def _end(turn: Turn) -> None:
    """End one from another thread; it has had its turn whatever that raises."""
    logged(_log, turn.end, "a conversation did not end well")
