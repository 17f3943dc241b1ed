"""gRPC: the service to which plugins introduce themselves, and how one does it."""

from __future__ import annotations

import contextlib
import logging
import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import grpc

from nodealloc import _rpc, _sockets
from nodealloc._proto import deviceplugin_v1beta1_pb2 as wire
from nodealloc.devices import _codec as codec
from nodealloc.devices._errors import PluginUnavailableError, RegistrationRefusedError
from nodealloc.errors import DecodeError, NodeallocError, PermanentError

__all__ = ["RegistrationService", "introduce"]

_log = logging.getLogger("nodealloc.devices")

_WORKERS = 8
"""Introductions that are handled at once; each takes a moment."""
_STOP_S = 5.0
"""How long the calls of a stopped server are waited for; it listens no more in any case."""
_LARGEST_INTRODUCTION = 1 << 20
"""Bytes of a registration at most; it has no business being large."""


class RegistrationService:
    """Serves `v1beta1.Registration` on a Unix socket.

    Args:
        path: The socket, `.../device-plugins/kubelet.sock`; its directory exists.
        register: Called for each plugin that introduces itself, on a thread of
            the service; raises `PermanentError` to refuse, and its text goes to
            the plugin.

    Attributes:
        path: The socket.
    """

    def __init__(self, path: Path, register: Callable[[codec.RegisterRequest], None], /) -> None:
        self.path = path
        self._register = register
        self._server: _rpc.Server | None = None
        self._identity: tuple[int, int, bytes] | None = None

    def check(self) -> None:
        """Whether it could start; changes nothing.

        Raises:
            PermanentError: The path is longer than a socket's may be, is no
                socket, or is one on which somebody listens.
        """
        if fault := _sockets.too_long(self.path):
            raise PermanentError(f"{self.path}: {fault}")
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISSOCK(self.path.lstat().st_mode):
                raise PermanentError(f"{self.path} is there and is no socket; move it away")
        if _sockets.is_served(self.path):
            raise PermanentError(
                f"{self.path}: somebody listens there already; end the other agent, "
                "or choose another directory"
            )

    def start(self) -> None:
        """Listen; a socket that somebody left behind is replaced.

        Raises:
            PermanentError: As `check`.
            OSError: The directory is not there or not writable.
        """
        self.check()
        options = (("grpc.max_receive_message_length", _LARGEST_INTRODUCTION),)
        pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="plugin registration")
        server = cast("_rpc.Server", grpc.server(pool, options=options))
        service = wire.DESCRIPTOR.services_by_name["Registration"].full_name
        methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            "Register": grpc.unary_unary_rpc_method_handler(self._answer)
        }
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, methods)])
        # gRPC removes what stands at the path that it was given once it ends, be it another's
        # socket: it is given a path that is gone by then. Plugins see the socket with its rights.
        first, rest = self.path.name[0], self.path.name[1:]
        hidden = self.path.with_name(("_" if first == "." else ".") + (rest or "_"))
        hidden.unlink(missing_ok=True)
        if not server.add_insecure_port(_rpc.target(hidden)):
            raise PermanentError(f"{self.path}: nobody can listen there; check the directory's rights")
        try:
            hidden.chmod(0o660)
            self.path.unlink(missing_ok=True)
            os.link(hidden, self.path)
        except OSError:
            server.stop(0)
            raise
        hidden.unlink()
        server.start()
        self._server = server
        self._identity = _sockets.identity(self.path)

    def is_listening(self) -> bool:
        """Whether the socket on disk is still the one that this service listens on."""
        return self._server is not None and _sockets.identity(self.path) == self._identity

    def is_taken(self) -> bool:
        """Whether somebody else listens there now."""
        return not self.is_listening() and _sockets.is_served(self.path)

    def stop(self) -> None:
        """Stop listening; calls under way are cut off. May be repeated."""
        server, self._server = self._server, None
        if server is None:
            return
        # With None instead of 0, gRPC itself would wait without a bound.
        if not server.stop(0).wait(_STOP_S):
            _log.warning("%s: calls under way do not end; they are left behind", self.path)
        if _sockets.identity(self.path) == self._identity:
            self.path.unlink(missing_ok=True)

    def _answer(self, request: bytes, context: _rpc.Context) -> bytes:
        try:
            self._register(codec.decode_register(request))
        except (DecodeError, RegistrationRefusedError) as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except NodeallocError as error:
            context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
        return wire.Empty().SerializeToString()


def introduce(kubelet_socket: Path, request: codec.RegisterRequest, /, *, timeout_s: float = 10.0) -> None:
    """Register as a plugin does; for tests and for plugins in Python.

    Raises:
        PluginUnavailableError: Nobody listens there.
        RegistrationRefusedError: The agent refused, in these words.
    """
    channel = _rpc.dial(kubelet_socket, largest_bytes=_LARGEST_INTRODUCTION)
    try:
        call = channel.unary_unary(_rpc.method(wire.DESCRIPTOR, "Registration", "Register"))
        call(codec.encode_register(request), timeout=timeout_s, wait_for_ready=False)
    except grpc.RpcError as error:
        status, detail, is_away = _rpc.failure(error)
        if is_away:
            raise PluginUnavailableError(str(kubelet_socket), "Register", status, detail) from error
        raise RegistrationRefusedError(f"{kubelet_socket}: {detail} ({status})") from error
    finally:
        channel.close()
