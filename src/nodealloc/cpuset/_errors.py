"""Errors of this package: the numbers are fields."""

from __future__ import annotations

from nodealloc.errors import PermanentError

__all__ = ["NotEnoughCpusError"]


class NotEnoughCpusError(PermanentError):
    """Fewer CPUs are available than were asked for; nothing was taken.

    Attributes:
        wanted: Whole CPUs asked for.
        free: CPUs that were available.
    """

    wanted: int
    free: int

    def __init__(self, wanted: int, free: int, /) -> None:
        self.wanted = wanted
        self.free = free
        super().__init__(wanted, free)

    def __str__(self) -> str:
        """What, how many, and what to do."""
        return f"{self.wanted} CPUs wanted, {self.free} available; ask for fewer, or release some first"
