"""Errors of this package: the numbers are fields."""

from __future__ import annotations

from nodealloc.errors import ConfigurationError, PermanentError, RetryableError
from nodealloc.idset import MAX_ID, CPUSet

__all__ = ["CpusetBusyError", "CpusetWriteError", "NotEnoughCpusError", "PickerError", "TargetGoneError"]


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


class PickerError(ConfigurationError):
    """A picker answered with something other than exactly so many of the available CPUs.

    Attributes:
        picker: Its class.
        answer: What came, as text.
        available: What it was to choose from.
        wanted: How many it was to choose.
    """

    picker: str
    answer: str
    available: CPUSet
    wanted: int

    def __init__(self, picker: str, answer: object, available: int, wanted: int, /) -> None:
        mask = answer if type(answer) is int and 0 <= answer < 1 << (MAX_ID + 1) else None
        self.picker = picker
        self.answer = repr(answer)[:80] if mask is None else str(CPUSet.from_mask(mask)) or "no CPUs"
        self.available = CPUSet.from_mask(available)
        self.wanted = wanted
        super().__init__(picker, answer, available, wanted)

    def __str__(self) -> str:
        """The question, the answer, and what would be right."""
        return (
            f"{self.picker} answered {self.answer} when asked for {self.wanted} CPUs of {self.available}; "
            "a picker takes exactly that many of those, as a mask, or answers None"
        )


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
    """A container cannot be confined now: something below is wider, or the system does not answer.

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
