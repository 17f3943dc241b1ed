"""Values only: what came of asking once."""

from __future__ import annotations

import enum

from nodealloc import _attrs as attrs
from nodealloc._typed import typed_fields

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
    REFUSED = "refused"
    """What was to be run in it is not there."""

    @property
    def is_success(self) -> bool:
        """Whether it counts towards passing."""
        return self is ReplyKind.SUCCESS or self is ReplyKind.WARNING


@typed_fields
@attrs.frozen
class Reply:
    """What came of asking once.

    Attributes:
        kind: Which way it went.
        message: For people, or ""; shown in events.
        timed_out: Whether nobody answered in time, by the clock of whoever asked.
            Where that clock ran on without the agent, it says nothing.
    """

    kind: ReplyKind
    message: str = ""
    timed_out: bool = attrs.field(default=False, kw_only=True)
