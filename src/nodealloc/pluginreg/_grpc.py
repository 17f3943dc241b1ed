"""gRPC: the client of registration sockets. The only file here that knows it."""

from __future__ import annotations

from typing import Protocol, cast
from urllib.parse import quote

import grpc
from google.protobuf.message import DecodeError as ProtobufError

from nodealloc._proto import pluginregistration_v1_pb2 as wire
from nodealloc.pluginreg._errors import RegistrationBrokenError, RegistrationUnavailableError
from nodealloc.pluginreg._ports import PluginInfo

__all__ = ["GrpcRegistration"]

CHANNEL_OPTIONS = (
    # An introduction has no business being large.
    ("grpc.max_receive_message_length", 1 << 20),
    # Servers in Go and Rust refuse the percent-encoded path that would stand here.
    ("grpc.default_authority", "localhost"),
    ("grpc.enable_http_proxy", 0),
    # A plugin that comes back on the same path must not inherit the dead connection.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
)

_AWAY = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.ABORTED,
}


class _Unary(Protocol):
    def __call__(self, request: bytes, /, *, timeout: float, wait_for_ready: bool = False) -> bytes: ...


class _Channel(Protocol):
    def unary_unary(self, method: str, /) -> _Unary: ...

    def close(self) -> None: ...


class GrpcRegistration:
    """Talks to `pluginregistration.Registration` over Unix sockets; a `Registration`. Thread-safe.

    Every call has a connection of its own and leaves none behind, so that a
    removed socket is never dialled again.

    Args:
        info_s: Seconds for the plugin to be there and say who it is.
        notify_s: Seconds for it to take the news.

    Source: kubelet ``pluginmanager/operationexecutor``, with its 10 s and 5 s.
    """

    def __init__(self, *, info_s: float = 10.0, notify_s: float = 5.0) -> None:
        self._info_s = info_s
        self._notify_s = notify_s

    def info(self, socket: str, /) -> PluginInfo:
        """See `Registration`."""
        data = self._call(socket, "GetInfo", b"", self._info_s)
        try:
            said = wire.PluginInfo.FromString(data)
        except (ProtobufError, UnicodeDecodeError) as error:
            raise RegistrationBrokenError(socket, "GetInfo", "BAD ANSWER", str(error)) from error
        return PluginInfo(
            type=said.type,
            name=said.name,
            endpoint=said.endpoint or socket,
            versions=tuple(said.supported_versions),
        )

    def notify(self, socket: str, error: str, /) -> None:
        """See `Registration`."""
        status = wire.RegistrationStatus(plugin_registered=not error, error=error)
        self._call(socket, "NotifyRegistrationStatus", status.SerializeToString(), self._notify_s)

    def _call(self, socket: str, name: str, request: bytes, limit_s: float) -> bytes:
        service = wire.DESCRIPTOR.services_by_name["Registration"]
        path = f"/{service.full_name}/{service.methods_by_name[name].name}"
        # gRPC takes paths for URIs, so `%`, `#` and `?` have to be quoted.
        target = f"unix:{quote(socket)}"
        channel = cast("_Channel", grpc.insecure_channel(target, options=CHANNEL_OPTIONS))
        try:
            return channel.unary_unary(path)(request, timeout=limit_s)
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            detail = str(error.details() or "")
            kind = RegistrationUnavailableError if code in _AWAY else RegistrationBrokenError
            raise kind(socket, name, code.name, detail) from error
        finally:
            channel.close()
