"""Work that is counted, never timed, so that an answer is the same on every machine."""

from __future__ import annotations

from nodealloc.topology._errors import WorkLimitError

__all__ = ["Work"]


class Work:
    """Units that are left; one is about a microsecond of an ordinary machine.

    Whoever searches takes from it, and stops when it is used up.

    Args:
        limit: How many there are.

    Attributes:
        limit: How many there were.
        left: How many there are.
    """

    __slots__ = ("left", "limit")

    def __init__(self, limit: int, /) -> None:
        self.limit: int = limit
        self.left: int = limit

    def spend(self, units: int, /) -> None:
        """Take units away; raises `WorkLimitError` when there are not so many."""
        self.left -= units
        if self.left < 0:
            raise WorkLimitError(self.limit)
