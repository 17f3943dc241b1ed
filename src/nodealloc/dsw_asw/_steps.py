"""Values of the plan: a step, its scope, and what came of it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeAlias, TypeVar, Union

import attrs

__all__ = ["Done", "Failed", "Failure", "Outcome", "Running", "Scope", "Step", "Uncertain"]

S_co = TypeVar("S_co", covariant=True)
R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")

Scope: TypeAlias = tuple[Hashable, ...]
"""What a step touches, from the outside in: `("volume",)`, `("volume", "pod")`.

Two steps exclude each other when one's scope begins with the other's: the
volume's own operation excludes all of its pods', two pods do not wait for
each other.
"""


@attrs.frozen(kw_only=True)
class Step(Generic[S_co]):
    """One thing to do next for a key.

    Attributes:
        scope: What it touches; at least one part, hashable.
        verb: What it does, for messages, metrics and the back-off: `mount`.
        detail: What the domain needs to do it.
        phase: Among the steps of one pass, lower phases start first.
        deadline_s: Seconds from its start on a worker after which the result
            counts as uncertain; None waits for ever.
        subject: For whom it is done. A failure holds off further tries for the
            same subject alone: give it a generation, and a pod that was removed
            and added again starts afresh.
    """

    scope: Scope = attrs.field(validator=attrs.validators.min_len(1))
    verb: str
    detail: S_co
    phase: int = 0
    deadline_s: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.gt(0))
    )
    subject: Hashable = None


@attrs.frozen
class Done(Generic[R_co]):
    """The step was performed, and this is what it returned."""

    result: R_co


@attrs.frozen
class Failed:
    """The step was not performed: nothing changed outside, or what changed was undone."""

    error: Exception


@attrs.frozen
class Uncertain:
    """Nobody knows whether the step was performed.

    Attributes:
        error: Why.
        still_running: The deadline passed and the call has not returned. Its
            scope stays closed until it does; then a second outcome follows.
    """

    error: Exception
    still_running: bool = False


Outcome: TypeAlias = Union[Done[R], Failed, Uncertain]
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

    scope: Scope
    verb: str
    subject: Hashable
    error: Exception
    tries: int
    due_s: float

    def __str__(self) -> str:
        """`mount: no such device (3 tries)`."""
        times = "1 try" if self.tries == 1 else f"{self.tries} tries"
        return f"{self.verb}: {str(self.error) or type(self.error).__name__} ({times})"


@attrs.frozen(kw_only=True)
class Running:
    """An operation that has been handed to the executor and has not ended.

    Attributes:
        scope: The step's scope.
        verb: The step's verb.
        began_s: When a worker took it up, on the engine's clock; None in the queue.
    """

    scope: Scope
    verb: str
    began_s: float | None
