"""Errors of device plugins: which plugin, which call, and whether to try again."""

from __future__ import annotations

from nodealloc.errors import PermanentError, RetryableError

__all__ = ["PluginRefusedError", "PluginUnavailableError", "RegistrationRefusedError"]

_SHOWN = 500
"""Characters of a plugin's own words that are kept; it may say a megabyte."""


class PluginUnavailableError(RetryableError):
    """A plugin did not answer: away, hung, too slow, or its stream ended.

    Attributes:
        plugin: Its socket or resource.
        call: The call that got no answer.
        status: Status code in words (`UNAVAILABLE`, `DEADLINE_EXCEEDED`).
    """

    def __init__(self, plugin: str, call: str, status: str, detail: str = "", /) -> None:
        self.plugin = plugin
        self.call = call
        self.status = status
        said = f": {detail[:_SHOWN]}" if detail else ""
        super().__init__(f"{plugin}: {call} got no answer ({status}){said}; is the plugin running?")


class PluginRefusedError(PermanentError):
    """A plugin answered, and the answer is a refusal or makes no sense.

    Attributes:
        plugin: Its socket or resource.
        call: The call that it refused.
        status: Status code in words, or `BAD ANSWER` for one that cannot be read.
    """

    def __init__(self, plugin: str, call: str, status: str, detail: str = "", /) -> None:
        self.plugin = plugin
        self.call = call
        self.status = status
        said = f": {detail[:_SHOWN]}" if detail else ""
        super().__init__(f"{plugin}: {call} was refused ({status}){said}; see the plugin's own log")


class RegistrationRefusedError(PermanentError):
    """A plugin may not register as it asked to; the text goes back to it."""
