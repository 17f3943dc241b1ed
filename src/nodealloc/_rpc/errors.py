"""The two ways in which a call may bring no answer; whoever makes calls names them in its own words."""

from __future__ import annotations

from typing import ClassVar

from nodealloc._error_words import on_one_line
from nodealloc.errors import PermanentError, RetryableError

__all__ = ["GAVE_WAY", "CallRefusedError", "CallUnavailableError"]

GAVE_WAY = "GAVE WAY"
"""Status of a call that was not made, or cut, for others: too many of those who are called do not answer."""

_SHOWN = 500
"""Characters of the other side's own words that are kept; it may say a megabyte."""


class CallUnavailableError(RetryableError):
    """Nobody answered a call: away, hung, too slow, or its stream ended.

    Attributes:
        peer: Whom the call was for: a socket, or what it serves.
        call: The call that got no answer.
        status: Status code in words (`UNAVAILABLE`, `DEADLINE_EXCEEDED`).
        detail: What the other side, or whoever looked, says; cut where it is long.
    """

    wait_s: ClassVar[float] = 1.0
    """After how long to try again, by kind of error."""

    def __init__(self, peer: str, call: str, status: str, detail: str = "", /) -> None:
        self.peer = peer
        self.call = call
        self.status = status
        self.detail: str = detail[:_SHOWN]
        said = f": {on_one_line(self.detail)}" if detail else ""
        super().__init__(
            f"{peer}: {call} got no answer ({status}){said}; is the plugin running?", after_s=self.wait_s
        )


class CallRefusedError(PermanentError):
    """Somebody answered, and the answer is a refusal or makes no sense.

    Attributes:
        peer: Whom the call was for: a socket, or what it serves.
        call: The call that was refused.
        status: Status code in words, or `BAD ANSWER` for an answer that cannot be read.
        detail: What the other side says; cut where it is long.
    """

    def __init__(self, peer: str, call: str, status: str, detail: str = "", /) -> None:
        self.peer = peer
        self.call = call
        self.status = status
        self.detail: str = detail[:_SHOWN]
        said = f": {on_one_line(self.detail)}" if detail else ""
        super().__init__(f"{peer}: {call} was refused ({status}){said}; see the plugin's own log")
