"""Protocols that the registrar calls: a plugin's registration socket, a handler."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Protocol, runtime_checkable

from nodealloc import _attrs as attrs
from nodealloc._typed import typed_fields

__all__ = ["AsyncRegistration", "PluginHandler", "PluginInfo", "Registration"]


@typed_fields
@attrs.frozen(kw_only=True)
class PluginInfo:
    """How a plugin introduces itself.

    Attributes:
        type: Which handler is meant: `DevicePlugin`, `CSIPlugin`, `DRAPlugin`, or any other word.
        name: Unique among plugins of its type.
        endpoint: Where it listens; the socket that was found unless it names another.
        versions: Of its own protocol that it speaks, as it lists them.
    """

    type: str
    name: str
    endpoint: str
    versions: tuple[str, ...] = ()


class Registration(Protocol):
    """The registration service on a plugin's socket. Safe to call from several threads.

    Raises `RetryableError` when there is no answer in time and
    `PermanentError` when the answer makes no sense.
    """

    def info(self, socket: str, /) -> PluginInfo:
        """Who is there."""
        ...

    def notify(self, socket: str, error: str, /) -> None:
        """Tell the plugin what became of it: registered, or `error` if that is not empty."""
        ...


@runtime_checkable
class AsyncRegistration(Protocol):
    """The same without a thread for each call: what `Registration` also does when it can.

    Both return at once. The future raises what the call would raise; cancelling it ends the call.
    """

    def info_later(self, socket: str, /) -> Future[PluginInfo]:
        """As `Registration.info`."""
        ...

    def notify_later(self, socket: str, error: str, /) -> Future[None]:
        """As `Registration.notify`."""
        ...


class PluginHandler(Protocol):
    """Takes plugins of one type. Calls for one name never overlap; a slow one delays no other name.

    Two versions of a plugin may be registered at once, by two endpoints.
    """

    def validate(self, name: str, endpoint: str, versions: Sequence[str], /) -> None:
        """Raise any `NodeallocError` to refuse; its text is told to the plugin. Changes nothing."""
        ...

    def register(self, name: str, endpoint: str, versions: Sequence[str], /) -> None:
        """Take it on. Comes after `validate`, and again after a failure; raising means not taken."""
        ...

    def deregister(self, name: str, endpoint: str, /) -> None:
        """Let it go: its socket is gone, or another took its path. An unknown one is no error."""
        ...
