"""Errors of registration sockets: which socket, which call, and whether to try again."""

from __future__ import annotations

from typing import ClassVar

from nodealloc._rpc.errors import CallRefusedError, CallUnavailableError

__all__ = ["RegistrationBrokenError", "RegistrationUnavailableError"]


class RegistrationUnavailableError(CallUnavailableError):
    """Nobody answered on a registration socket in time."""

    wait_s: ClassVar[float] = 0.0

    @property
    def socket(self) -> str:
        """Its path."""
        return self.peer


class RegistrationBrokenError(CallRefusedError):
    """A registration socket answered, and the answer makes no sense."""

    @property
    def socket(self) -> str:
        """Its path."""
        return self.peer
