"""What can go wrong in the engine, beside what a domain raises."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from nodealloc import _attrs as attrs
from nodealloc.dsw_asw._steps import Failure, Running
from nodealloc.errors import PermanentError, RetryableError, UncertainError

__all__ = [
    "BadPlanError",
    "CancelledOperationError",
    "DeadlineError",
    "LivelockError",
    "Missing",
    "NoProgressError",
    "NotTakenUpError",
    "RestlessPlanError",
    "ShutDownError",
    "WaitTimeoutError",
]


class DeadlineError(UncertainError):
    """A step took longer than its deadline and is still running.

    Attributes:
        verb: What was being done.
        deadline_s: How long it was given, in seconds.
    """

    def __init__(self, verb: str, deadline_s: float) -> None:
        super().__init__(
            f"{verb} has not returned after {deadline_s:g} s; it may still succeed, "
            "and nothing else is done there before it returns",
            after_s=0.0,
        )
        self.verb = verb
        self.deadline_s = deadline_s


class NoProgressError(RetryableError):
    """A step succeeded, and its key's actual record is what it was before."""

    def __init__(self, verb: str) -> None:
        super().__init__(
            f"{verb} succeeded without changing the actual record; "
            "settled() has to record what was done, or plan() will ask for it for ever "
            "(a step that may_change_nothing says so)",
            after_s=0.0,
        )
        self.verb = verb


class LivelockError(PermanentError):
    """Passes go on for ever: plans and results chase each other."""

    def __init__(self, passes: int) -> None:
        super().__init__(f"still work to do after {passes} passes; look for steps that undo each other")
        self.passes = passes


class RestlessPlanError(PermanentError):
    """A plan answers another record each time it is asked, though nothing happened in between.

    Attributes:
        times: How often in a row.
    """

    def __init__(self, times: int) -> None:
        super().__init__(
            f"plan() changed its key's record {times} times in a row and nothing else happened; "
            "let it keep the record (KEEP) once that says what is intended"
        )
        self.times = times


class NotTakenUpError(RetryableError):
    """An executor did not run a call in time; the call is withdrawn and will not be performed.

    Attributes:
        verb: What was to be done.
        waited_s: How long it was in the executor, in seconds.
    """

    def __init__(self, verb: str, waited_s: float) -> None:
        super().__init__(
            f"{verb}: no worker took it up in {waited_s:g} s, and it was withdrawn; "
            "give the executor more workers, or one that does not lose calls",
            after_s=0.0,
        )
        self.verb = verb
        self.waited_s = waited_s


class CancelledOperationError(RetryableError):
    """A step ended as cancelled though nobody asked it to: its executor was shut down, say.

    Attributes:
        verb: What was being done.
    """

    def __init__(self, verb: str) -> None:
        super().__init__(f"{verb} was cancelled, and nobody here asked for it", after_s=0.0)
        self.verb = verb


class BadPlanError(PermanentError):
    """`plan` answered something that is no `Plan`, or has a step that is no `Step`.

    Attributes:
        answer: What it answered, as text.
    """

    def __init__(self, answer: object) -> None:
        self.answer: str = repr(answer)[:200]
        super().__init__(
            f"plan() answered {self.answer}; answer a Plan whose steps are Steps, Plan() for nothing to do"
        )


class ShutDownError(RetryableError):
    """The engine closed while operations were running or callers were waiting.

    Attributes:
        running: Operations that had not returned.
    """

    def __init__(self, running: Iterable[Running[object]] = ()) -> None:
        self.running: tuple[Running[object], ...] = tuple(running)
        left = ", ".join(f"{one.verb} {'/'.join(map(str, one.scope))}" for one in self.running)
        super().__init__(f"the engine was closed{f'; still running: {left}' if left else ''}")


@attrs.frozen(kw_only=True)
class Missing:
    """One key that a caller waits for.

    Attributes:
        key: Which.
        what: What it still lacks, in words.
        failures: The last error of each of its steps that failed.
    """

    key: Hashable
    what: str
    failures: tuple[Failure, ...] = ()

    def __str__(self) -> str:
        """`disk-1: not mounted; last error: mount: no such device (3 tries)`."""
        errors = "; ".join(map(str, self.failures))
        return f"{self.key}: {self.what}" + (f"; last error: {errors}" if errors else "")


class WaitTimeoutError(RetryableError):
    """A wait ran out before everything was there.

    Attributes:
        waited_s: How long it waited, in seconds.
        missing: At least one, in the order of the keys that were asked for.
    """

    def __init__(self, waited_s: float, missing: Iterable[Missing]) -> None:
        self.waited_s = waited_s
        self.missing: tuple[Missing, ...] = tuple(missing)
        lines = "".join(f"\n  {one}" for one in self.missing)
        super().__init__(f"still missing after {waited_s:g} s: {len(self.missing)}{lines}")
