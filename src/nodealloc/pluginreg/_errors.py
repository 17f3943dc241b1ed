"""Errors of registration sockets: which socket, which call, and whether to try again."""

from __future__ import annotations

from nodealloc.errors import PermanentError, RetryableError

__all__ = ["RegistrationBrokenError", "RegistrationUnavailableError"]

_SHOWN = 500
"""Characters of a plugin's own words that are kept; it may say a megabyte."""


class RegistrationUnavailableError(RetryableError):
    """Nobody answered on a registration socket in time.

    Attributes:
        socket: Its path.
        call: The call that got no answer.
        status: Status code in words (`UNAVAILABLE`, `DEADLINE_EXCEEDED`).
    """

    def __init__(self, socket: str, call: str, status: str, detail: str = "", /) -> None:
        self.socket = socket
        self.call = call
        self.status = status
        said = f": {detail[:_SHOWN]}" if detail else ""
        super().__init__(
            f"{socket}: {call} got no answer ({status}){said}; is the plugin running?", after_s=0.0
        )


class RegistrationBrokenError(PermanentError):
    """A registration socket answered, and the answer makes no sense.

    Attributes:
        socket: Its path.
        call: The call.
        status: Status code in words, or `BAD ANSWER` for one that cannot be read.
    """

    def __init__(self, socket: str, call: str, status: str, detail: str = "", /) -> None:
        self.socket = socket
        self.call = call
        self.status = status
        said = f": {detail[:_SHOWN]}" if detail else ""
        super().__init__(f"{socket}: {call} went wrong ({status}){said}; see the plugin's own log")
