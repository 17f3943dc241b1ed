"""gRPC over Unix sockets: how one is dialled, which end of a call means what, and the types that it lacks."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, cast
from urllib.parse import quote

import grpc
import grpc.aio
from google.protobuf.descriptor import FileDescriptor

__all__ = [
    "Answering",
    "AsyncChannel",
    "AsyncStream",
    "Channel",
    "Context",
    "Failure",
    "Server",
    "Unary",
    "beyond",
    "dial",
    "dial_async",
    "dial_host",
    "failure",
    "method",
    "target",
]

LONGEST_WORDS_BYTES = 1 << 20
"""Of a refusal in the other side's own words. Past it gRPC drops them with the status that they came with;
by itself it would at 8 KiB."""

_BEYOND = re.compile(r"message larger than max \((\d{1,20}) vs\. (\d{1,20})\)")

_AWAY = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.ABORTED,
}


class Answering(Protocol):
    """A call whose answer is under way."""

    def result(self) -> bytes: ...

    def cancel(self) -> bool: ...


class Unary(Protocol):
    """A call with one answer."""

    def __call__(self, request: bytes, /, *, timeout: float) -> bytes: ...

    def future(self, request: bytes, /, *, timeout: float) -> Answering: ...


class Channel(Protocol):
    """A client's side."""

    def unary_unary(self, method: str, /) -> Unary: ...

    def close(self) -> None: ...


class AsyncUnary(Protocol):
    """A call with one answer, for an event loop; cancelling whoever waits for it ends the call."""

    def __call__(self, request: bytes, /, *, timeout: float) -> Awaitable[bytes]: ...


class AsyncStream(Protocol):
    """Answers as they come, for an event loop."""

    def read(self) -> Awaitable[object]:
        """The next one; no bytes at the end."""
        ...

    def cancel(self) -> bool: ...


class AsyncChannel(Protocol):
    """A client's side, for an event loop."""

    def unary_unary(self, method: str, /) -> AsyncUnary: ...

    def unary_stream(self, method: str, /) -> Callable[[bytes], AsyncStream]: ...

    async def close(self) -> None: ...


class Context(Protocol):
    """What a server knows of one call."""

    def abort(self, code: object, details: str, /) -> None: ...

    def is_active(self) -> bool: ...


class Server(Protocol):
    """A server's side."""

    def add_generic_rpc_handlers(self, handlers: Sequence[object], /) -> None: ...

    def add_insecure_port(self, address: str, /) -> int: ...

    def start(self) -> None: ...

    def stop(self, grace: float | None, /) -> threading.Event: ...


class Failure(NamedTuple):
    """How a call ended that brought no answer.

    Attributes:
        status: Status code in words (`UNAVAILABLE`, `DEADLINE_EXCEEDED`).
        detail: What the other side, or gRPC itself, says.
        is_away: Nobody was there or nobody answered in time; otherwise
            somebody said no.
    """

    status: str
    detail: str
    is_away: bool


def target(path: str | Path, /) -> str:
    """A socket as gRPC wants it named: its paths are URIs, so `%`, `#` and `?` have to be quoted."""
    return f"unix:{quote(os.fsencode(path))}"


def dial(
    path: str | Path, /, *, largest_bytes: int, largest_answers: Mapping[tuple[str, str], int] | None = None
) -> Channel:
    """A channel to a socket; the first call connects.

    Args:
        path: The socket.
        largest_bytes: Of a message, either way.
        largest_answers: Service and method to the bytes of an answer, where
            they are fewer; what is larger is refused unread.
    """
    narrower = [
        {"name": [{"service": service, "method": name}], "maxResponseMessageBytes": most}
        for (service, name), most in (largest_answers or {}).items()
    ]
    options = (
        *_options(largest_bytes, first_word_ms=2000),
        ("grpc.service_config", json.dumps({"methodConfig": narrower})),
    )
    return cast("Channel", grpc.insecure_channel(target(path), options=options))


def dial_async(path: str | Path, /, *, largest_bytes: int, first_word_ms: int = 1000) -> AsyncChannel:
    """The same for one call on the event loop that runs; there are no second tries."""
    options = (*_options(largest_bytes, first_word_ms=first_word_ms), ("grpc.enable_retries", 0))
    return cast("AsyncChannel", grpc.aio.insecure_channel(target(path), options=options))


def _options(largest_bytes: int, *, first_word_ms: int) -> Sequence[tuple[str, object]]:
    return (
        ("grpc.service_config_disable_resolution", 1),
        ("grpc.max_metadata_size", LONGEST_WORDS_BYTES),
        ("grpc.absolute_max_metadata_size", LONGEST_WORDS_BYTES),
        ("grpc.max_receive_message_length", largest_bytes),
        ("grpc.max_send_message_length", largest_bytes),
        # Servers in Go and Rust refuse the percent-encoded path that would stand here.
        ("grpc.default_authority", "localhost"),
        ("grpc.enable_http_proxy", 0),
        # A plugin that comes back on the same path must not inherit the dead connection.
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.initial_reconnect_backoff_ms", 100),
        # How long the other side may take for its first word. Until then its connection stays open,
        # even when the channel is closed before; by itself gRPC would wait 20 s.
        ("grpc.min_reconnect_backoff_ms", first_word_ms),
        ("grpc.max_reconnect_backoff_ms", 1000),
    )


def dial_host(
    where: str,
    /,
    *,
    largest_bytes: int,
    user_agent: str,
    tls: bool = False,
    roots: bytes | None = None,
    server_name: str = "",
) -> Channel:
    """A channel to an address that is used for one call: no proxy, no name service, no tries of its own.

    Args:
        where: `host:port`; an IPv6 address in brackets.
        largest_bytes: Of a message, either way.
        user_agent: Who asks; gRPC adds itself behind it.
        tls: Whether to talk TLS.
        roots: Certificates to trust, in PEM; None for gRPC's own.
        server_name: Name in the certificate; "" for the host.
    """
    options: tuple[tuple[str, object], ...] = (
        ("grpc.enable_retries", 0),
        ("grpc.service_config_disable_resolution", 1),
        ("grpc.max_receive_message_length", largest_bytes),
        ("grpc.max_send_message_length", largest_bytes),
        ("grpc.enable_http_proxy", 0),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.primary_user_agent", user_agent),
    )
    if not tls:
        return cast("Channel", grpc.insecure_channel(where, options=options))
    if server_name:
        options = (*options, ("grpc.ssl_target_name_override", server_name))
    credentials = grpc.ssl_channel_credentials(root_certificates=roots)
    return cast("Channel", grpc.secure_channel(where, credentials, options=options))


def failure(error: grpc.RpcError, /) -> Failure:
    """What an error of a call means."""
    code: grpc.StatusCode = error.code()
    return Failure(code.name, str(error.details() or ""), code in _AWAY)


def beyond(failed: Failure, /) -> tuple[int, int] | None:
    """Bytes of a message that was refused unread, and how many are taken; None for every other end.

    gRPC tells them in its own words alone.
    """
    said = _BEYOND.search(failed.detail) if failed.status == "RESOURCE_EXHAUSTED" else None
    return None if said is None else (int(said[1]), int(said[2]))


def method(file: FileDescriptor, service: str, name: str, /) -> str:
    """A method's path; raises `KeyError` for one that the protocol does not have."""
    described = file.services_by_name[service]
    return f"/{described.full_name}/{described.methods_by_name[name].name}"
