"""Values: a step, its scope, what runs, and what came of it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeAlias, TypeVar, Union, cast

from nodealloc import _attrs as attrs
from nodealloc._arguments import checked, within, wrong
from nodealloc._error_words import error_words

__all__ = [
    "Cancelled",
    "Done",
    "Failed",
    "Failure",
    "Outcome",
    "Running",
    "Step",
    "StepScope",
    "Uncertain",
    "is_same",
]

S_co = TypeVar("S_co", covariant=True)
R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")

StepScope: TypeAlias = tuple[Hashable, ...]
"""What a step touches, from the outside in: `("volume",)`, `("volume", "pod")`.

Two steps exclude each other when one's scope begins with the other's: the
volume's own operation excludes all of its pods', two pods do not wait for
each other.
"""


def _makes_sense(step: Step[object], _attribute: object, _scope: object) -> None:
    """All of a step at once, since each one that is planned is made."""
    if not isinstance(cast("object", step.scope), tuple) or not step.scope:
        raise wrong("Step.scope", step.scope, "a tuple of one part or more, like ('volume',)")
    hash((step.scope, step.verb, step.subject))
    if step.deadline_s is not None and not step.deadline_s > 0:
        raise wrong("Step.deadline_s", step.deadline_s, "seconds beyond 0, or None to wait for ever")
    if not isinstance(cast("object", step.phase), int):
        raise wrong("Step.phase", step.phase, "a whole number; lower ones start first")


@attrs.frozen(kw_only=True)
class Step(Generic[S_co]):
    """One thing to do next for a key.

    A step equal in scope, verb and detail to one that runs *is* that step: it
    is not started again. So details hold deadlines (a moment), never time left.

    Attributes:
        scope: What it touches; at least one part, hashable.
        verb: What it does, for messages, metrics and the back-off: `mount`.
        detail: What the domain needs to do it; compared with `==`.
        phase: Among the steps of one pass, lower phases start first.
        deadline_s: Seconds from its start on a worker after which the result
            counts as uncertain, and the call is asked to stop; None waits for ever.
        subject: For whom it is done. A failure holds off further tries for the
            same subject alone: give it a generation, and a pod that was removed
            and added again starts afresh. Two steps of one plan that share scope and verb need
            a subject each: what failed or rests of the one then holds off the other no more.
        may_change_nothing: `Done` may leave the record as it is: a probe that
            succeeds for the thousandth time. The step then rests until the
            `again_at_s` of its plan, or until somebody else changes a record; what
            its own result changes does not shorten the period, `Done.again_after_s` replaces it.
            Without either it rests until any record changes.
    """

    scope: StepScope = attrs.field(validator=_makes_sense)
    verb: str
    detail: S_co
    phase: int = 0
    deadline_s: float | None = None
    subject: Hashable = None
    may_change_nothing: bool = False


_seconds = attrs.validators.optional(within(0, finite=True))


@attrs.frozen
class Done(Generic[R_co]):
    """The step was performed, and this is what it returned.

    `perform` returns its result for this, or this where it knows how long a step that
    `may_change_nothing` rests.

    Attributes:
        result: What `perform` returned.
        again_after_s: Seconds for which it rests from its end; None until the `again_at_s` of its plan.
        began_s: When a worker took it up, on the engine's clock.
        ended_s: When the call returned.
    """

    result: R_co
    again_after_s: float | None = attrs.field(default=None, kw_only=True, validator=_seconds)
    began_s: float = attrs.field(default=0.0, kw_only=True)
    ended_s: float = attrs.field(default=0.0, kw_only=True)


_is_an_exception = checked(Exception, "an exception, as it was raised")


@attrs.frozen
class Failed(Generic[R_co]):
    """The step was not performed: nothing changed outside, or what changed was undone.

    `perform` raises for this, or returns it where it has more to tell.

    Attributes:
        error: Why.
        known: What is known all the same, or None: three of four volumes were resolved.
        again_after_s: When to try again, in seconds from the end, where the rule
            is the domain's; None leaves it to the engine's back-off.
        began_s: When a worker took it up, on the engine's clock; the engine sets it.
        ended_s: When the call returned; the engine sets it.
    """

    error: Exception = attrs.field(validator=_is_an_exception)
    known: R_co | None = attrs.field(default=None, kw_only=True)
    again_after_s: float | None = attrs.field(default=None, kw_only=True, validator=_seconds)
    began_s: float = attrs.field(default=0.0, kw_only=True)
    ended_s: float = attrs.field(default=0.0, kw_only=True)


@attrs.frozen
class Uncertain(Generic[R_co]):
    """Nobody knows whether the step was performed.

    Attributes:
        error: Why.
        still_running: The deadline passed and the call has not returned. Its
            scope stays closed until it does; then a second outcome follows.
        known: What is known all the same, or None.
        again_after_s: As for `Failed`.
        began_s: When a worker took it up, on the engine's clock; the engine sets it.
        ended_s: When the call returned, or the deadline passed; the engine sets it.
    """

    error: Exception = attrs.field(validator=_is_an_exception)
    still_running: bool = False
    known: R_co | None = attrs.field(default=None, kw_only=True)
    again_after_s: float | None = attrs.field(default=None, kw_only=True, validator=_seconds)
    began_s: float = attrs.field(default=0.0, kw_only=True)
    ended_s: float = attrs.field(default=0.0, kw_only=True)


@attrs.frozen(kw_only=True)
class Cancelled:
    """The step stopped because it was asked to, or never began.

    A call that was asked to stop and returns a result all the same is `Done`.

    Attributes:
        asked: Whether a plan, or the end of the engine, asked for it; one that
            stops of its own accord is held off like a failure.
        began_s: When a worker took it up, on the engine's clock; None when none
            did, so that nothing happened.
        ended_s: When it ended.
    """

    asked: bool = True
    began_s: float | None = None
    ended_s: float = 0.0


Outcome: TypeAlias = Union[Done[R], Failed[R], Uncertain[R], Cancelled]
"""What came of a step."""


@attrs.frozen(kw_only=True)
class Failure:
    """The last error of a step that is still to be done.

    Attributes:
        scope: The step's scope.
        verb: The step's verb.
        subject: The step's subject.
        error: Why it failed.
        tries: How often in a row.
        due_s: When the next try may start, on the engine's clock.
    """

    scope: StepScope
    verb: str
    subject: Hashable
    error: Exception
    tries: int
    due_s: float

    def __str__(self) -> str:
        """`mount: no such device (3 tries)`."""
        times = "1 try" if self.tries == 1 else f"{self.tries} tries"
        return f"{self.verb}: {error_words(self.error)} ({times})"


@attrs.frozen(kw_only=True)
class Running(Generic[S_co]):
    """An operation that has been handed to the executor and has not ended.

    Attributes:
        scope: The step's scope.
        verb: The step's verb.
        detail: The step's detail.
        since_s: When it was handed to the executor, on the engine's clock.
        began_s: When a worker took it up; None in the queue.
        cancelling: Whether it was asked to stop.
    """

    scope: StepScope
    verb: str
    detail: S_co
    since_s: float = 0.0
    began_s: float | None = None
    cancelling: bool = False

    def is_of(self, step: Step[object], /) -> bool:
        """Whether it is this very step."""
        return is_same(self, step)


def is_same(one: Step[object] | Running[object], step: Step[object], /) -> bool:
    """Whether one is the other step, on its way or not: for whom it is done says nothing of that."""
    return one.scope == step.scope and one.verb == step.verb and one.detail == step.detail
