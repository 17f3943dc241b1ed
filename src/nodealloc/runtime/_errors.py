"""What can go wrong between us and a container runtime."""

from __future__ import annotations

from nodealloc.errors import PermanentError, RetryableError, UncertainError

__all__ = [
    "AnswerLostError",
    "CommandTimedOutError",
    "NameReservedError",
    "NoSuchRecordError",
    "RuntimeRefusedError",
    "RuntimeUnavailableError",
]


class RuntimeUnavailableError(RetryableError):
    """Nobody answers, or the runtime says that it is not up yet; nothing was done.

    Attributes:
        call: What was asked.
        reason: Why, in words.
    """

    def __init__(self, call: str, reason: str, /, *, after_s: float = 1.0) -> None:
        super().__init__(f"{call}: the runtime does not answer: {reason}", after_s=after_s)
        self.call = call
        self.reason = reason


class AnswerLostError(UncertainError):
    """The call may have been done: it ran out of time, or its connection broke.

    List what is there before trying again: what was made carries its pod, name
    and attempt.

    Attributes:
        call: What was asked.
        reason: Why, in words.
    """

    def __init__(self, call: str, reason: str, /, *, after_s: float = 1.0) -> None:
        super().__init__(f"{call} may have been done, its answer is lost: {reason}", after_s=after_s)
        self.call = call
        self.reason = reason


class NameReservedError(RetryableError):
    """Something of that pod, name and attempt is there already, or is just being made.

    A leftover of a call whose answer was lost: list, then adopt or remove it.

    Attributes:
        call: What was asked.
        name: What is taken, as the runtime says it; "" where it does not.
        reason: Why, in words.
    """

    def __init__(self, call: str, name: str, reason: str, /) -> None:
        super().__init__(f"{call}: {reason}; list what is there, then adopt or remove it", after_s=1.0)
        self.call = call
        self.name = name
        self.reason = reason


class NoSuchRecordError(PermanentError):
    """The runtime knows no such sandbox, container or image.

    Attributes:
        call: What was asked.
        id: What it was asked about.
        reason: The runtime's own words, or "".
    """

    def __init__(self, call: str, id: str, reason: str = "", /) -> None:  # noqa: A002 - the field's word
        said = f": {reason}" if reason else ""
        super().__init__(f"{call} of {id}: something is not there; it was removed, or never was{said}")
        self.call = call
        self.id = id
        self.reason = reason


class RuntimeRefusedError(PermanentError):
    """The runtime answered, and said no.

    Attributes:
        call: What was asked.
        status: One word: the status of its protocol.
        reason: Its own words.
    """

    def __init__(self, call: str, status: str, reason: str, /) -> None:
        super().__init__(f"{call}: {status}: {reason}")
        self.call = call
        self.status = status
        self.reason = reason


class CommandTimedOutError(UncertainError):
    """A command in a container took longer than it was given; its processes may still run.

    Attributes:
        container: Where.
        timeout_s: How long it was given, in seconds.
        survivors: Processes that it left behind in the container and that live on; None
            where nobody can tell.
    """

    def __init__(self, container: str, timeout_s: float, /, *, survivors: int | None = None) -> None:
        left = f"; {survivors} of its processes live on" if survivors else ""
        super().__init__(f"container {container}: the command has not ended after {timeout_s:g} s{left}")
        self.container = container
        self.timeout_s = timeout_s
        self.survivors = survivors
