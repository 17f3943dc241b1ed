"""Errors of device plugins: which plugin, which call, and whether to try again."""

from __future__ import annotations

from nodealloc._rpc.errors import CallRefusedError, CallUnavailableError
from nodealloc.errors import PermanentError

__all__ = ["PluginRefusedError", "PluginUnavailableError", "RegistrationRefusedError"]


class PluginUnavailableError(CallUnavailableError):
    """A plugin did not answer: away, hung, too slow, or its stream ended."""

    @property
    def plugin(self) -> str:
        """Its socket or resource."""
        return self.peer


class PluginRefusedError(CallRefusedError):
    """A plugin answered, and the answer is a refusal or makes no sense."""

    @property
    def plugin(self) -> str:
        """Its socket or resource."""
        return self.peer


class RegistrationRefusedError(PermanentError):
    """A plugin may not register as it asked to; the text goes back to it."""
