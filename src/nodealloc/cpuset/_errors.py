"""Errors of this package: the numbers are fields."""

from __future__ import annotations

from nodealloc.errors import PermanentError, RetryableError

__all__ = ["CpusetBusyError", "CpusetWriteError", "NotEnoughCpusError", "TargetGoneError"]


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


class CpusetWriteError(PermanentError):
    """A container cannot be confined as asked; it keeps what it had.

    Attributes:
        target: The container, in the writer's words.
        wanted: What was written, as text.
        errno: The kernel's error number, or None.
    """

    target: str
    wanted: str
    errno: int | None

    def __init__(self, target: str, wanted: str, why: str, /, *, errno: int | None = None) -> None:
        self.target = target
        self.wanted = wanted
        self.errno = errno
        super().__init__(f"{target}: cannot be confined to {wanted or 'no CPUs'}: {why}")


class CpusetBusyError(RetryableError):
    """A container cannot be confined now: something below it is still wider.

    Attributes:
        target: The container, in the writer's words.
    """

    target: str

    def __init__(self, target: str, why: str, /) -> None:
        self.target = target
        super().__init__(f"{target}: {why}", after_s=0.1)


class TargetGoneError(PermanentError):
    """There is no such cgroup or process any more, or not yet.

    Attributes:
        target: What was looked for, in the writer's words.
    """

    target: str

    def __init__(self, target: str, /) -> None:
        self.target = target
        super().__init__(f"{target}: is not there; take it out of the reconciler if it has ended")
