"""gRPC: the service to which plugins introduce themselves, and how one does it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from nodealloc._proto import deviceplugin_v1beta1_pb2 as wire
from nodealloc._rpc.caller import Caller
from nodealloc._rpc.server import ServerOptions, UnixServer
from nodealloc.devices._errors import PluginRefusedError, PluginUnavailableError, RegistrationRefusedError
from nodealloc.devices.plugins import _codec as codec

__all__ = ["RegistrationService", "introduce"]

_WORKERS = 128
"""Introductions that are handled at once. Each waits for its plugin; most of them may hang and be
ended for the others."""
_LARGEST_INTRODUCTION = 1 << 20
"""Bytes of a registration at most; it has no business being large."""
_OPTIONS = ServerOptions(
    workers=_WORKERS, largest_bytes=_LARGEST_INTRODUCTION, log=logging.getLogger("nodealloc.devices")
)


class RegistrationService(UnixServer):
    """Serves `v1beta1.Registration` on a Unix socket.

    Args:
        path: The socket, `.../device-plugins/kubelet.sock`; its directory exists.
        register: Called for each plugin that introduces itself, on a thread of
            the service. What it raises goes to the plugin: a `PermanentError`
            as a refusal, another `NodeallocError` as "not now".

    Attributes:
        path: The socket.
    """

    def __init__(self, path: Path, register: Callable[[codec.RegisterRequest], None], /) -> None:
        service = wire.DESCRIPTOR.services_by_name["Registration"].full_name
        super().__init__(path, service, {"Register": self._registered}, options=_OPTIONS)
        self._register = register

    def _registered(self, request: bytes) -> bytes:
        self._register(codec.decode_register(request))
        return wire.Empty().SerializeToString()


def introduce(kubelet_socket: Path, request: codec.RegisterRequest, /, *, timeout_s: float = 15.0) -> None:
    """Register as a plugin does; for tests and for plugins in Python.

    The agent calls the plugin back before it answers: serve first.

    Raises:
        PluginUnavailableError: Nobody listens there, or the agent could not reach
            the plugin; the text says which.
        RegistrationRefusedError: The agent refused, in these words.
    """
    caller = Caller(
        kubelet_socket,
        wire.DESCRIPTOR,
        "Registration",
        largest_bytes=_LARGEST_INTRODUCTION,
        unavailable=PluginUnavailableError,
        refused=PluginRefusedError,
    )
    try:
        caller.call("Register", codec.encode_register(request), timeout_s)
    except PluginRefusedError as error:
        raise RegistrationRefusedError(f"{kubelet_socket}: {error.detail} ({error.status})") from error
    finally:
        caller.close()
