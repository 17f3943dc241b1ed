"""Values only: what came of asking once."""

from __future__ import annotations

import enum

import attrs

__all__ = ["Reply", "ReplyKind"]


class ReplyKind(enum.Enum):
    """What came of asking once."""

    SUCCESS = "success"
    WARNING = "warning"
    """A success with a word on it: a redirect that leads elsewhere."""
    FAILURE = "failure"
    UNKNOWN = "unknown"
    """Nobody can say how the container is: the agent was late itself, or the answer makes no sense."""
    ERROR = "error"
    """It could not be asked: the runtime is away, the port has no such name."""

    @property
    def is_success(self) -> bool:
        """Whether it counts towards passing."""
        return self in {ReplyKind.SUCCESS, ReplyKind.WARNING}


@attrs.frozen
class Reply:
    """What came of asking once.

    Attributes:
        kind: Which way it went.
        message: For people, or ""; shown in events.
    """

    kind: ReplyKind
    message: str = ""
