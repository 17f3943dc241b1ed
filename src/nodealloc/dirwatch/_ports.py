"""The Protocol of who says when to look."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Watcher"]


class Watcher(Protocol):
    """Says when to look; what is there, the look finds out.

    It may say so without need, once for many changes, and late; it may not
    keep a change to itself for good.
    """

    def wait(self, timeout_s: float, /) -> bool:
        """Block until there is a reason to look, or for `timeout_s`; True for a reason.

        The first call of a new watcher need not know of what was there before.
        """
        ...

    def close(self) -> None:
        """End a `wait` under way, in another thread too, and give everything back. May be repeated."""
        ...
