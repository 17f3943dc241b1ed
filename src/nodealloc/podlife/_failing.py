"""What a call that failed comes to, and why a container does not start."""

from __future__ import annotations

from nodealloc.dsw_asw import Failed, Uncertain, UncertainError
from nodealloc.podlife._details import Acted
from nodealloc.podlife._images import words_of
from nodealloc.podlife._look import StartFailure

__all__ = ["CannotStartError", "not_done"]


class CannotStartError(Exception):
    """A container does not start, for a reason that is told of it.

    Attributes:
        failure: What is told.
        error: Why.
        made: Id of the instance that was told to start; "" where none was.
        again_after_s: When it is tried again, in seconds; None for the engine's back-off.
    """

    def __init__(
        self, reason: str, error: Exception, failure: StartFailure | None = None, *, made: str = ""
    ) -> None:
        super().__init__(f"{reason}: {error}")
        self.failure = failure or StartFailure(reason=reason, message=words_of(error))
        self.error = error
        self.made = made
        self.again_after_s: float | None = None


def not_done(
    error: Exception, known: Acted, again_after_s: float | None, /
) -> Failed[Acted] | Uncertain[Acted]:
    """An outcome: nobody knows what an uncertain call did; `again_after_s` is None for a back-off."""
    if isinstance(error, UncertainError):
        return Uncertain(error, known=known, again_after_s=again_after_s)
    return Failed(error, known=known, again_after_s=again_after_s)
