"""gRPC: the client of registration sockets. The only file here that knows it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from google.protobuf.message import DecodeError as ProtobufError

from nodealloc import _sockets
from nodealloc._arguments import wrong
from nodealloc._futures import then
from nodealloc._proto import pluginregistration_v1_pb2 as wire
from nodealloc._rpc.conversations import Conversations
from nodealloc._rpc.single import Answer
from nodealloc._typed import typed, typed_methods
from nodealloc.pluginreg._errors import RegistrationBrokenError, RegistrationUnavailableError
from nodealloc.pluginreg._ports import PluginInfo

__all__ = ["GrpcRegistration"]

_LARGEST_BYTES = 1 << 20
"""An introduction has no business being large."""
_LONGEST_WORDS_BYTES = 1 << 15
"""Of an error that a plugin is told."""
_MARGIN = 0.9
"""Of the time for an answer: how long a call waits for its turn besides. Both end before the step does."""

T = TypeVar("T")


@typed_methods
class GrpcRegistration:
    """Talks to `pluginregistration.Registration` over Unix sockets; a `Registration`. Thread-safe.

    Every call has a connection of its own and leaves none behind, so that a
    removed socket is never dialled again. All calls share one thread with an event
    loop, on which gRPC's own asyncio client makes them; it begins with the first
    call and lasts as long as the process.

    Args:
        info_s: Seconds for the plugin to say who it is.
        notify_s: Seconds for it to take the news.
        at_once: Connections at most, two descriptors each. Where more calls are wanted,
            newcomers are first, and whoever does not answer gives way: after 0.1 s
            the first time, eight times that the next, and so on, and at once where those
            who were called before have more than half of the connections. A process that may
            open thousands of descriptors can afford 1,024, and nobody ever gives way.

    Raises:
        ConfigurationError: No time for an answer: every plugin would count as one that gives none.

    Source: kubelet ``pluginmanager/operationexecutor``, with its 10 s and 5 s.
    """

    @typed
    def __init__(self, *, info_s: float = 10.0, notify_s: float = 5.0, at_once: int = 64) -> None:
        for name, value in (("info_s", info_s), ("notify_s", notify_s)):
            if not value > 0:
                raise wrong(f"GrpcRegistration: {name}", value, "a number of seconds above 0")
        self._info_s = info_s
        self._notify_s = notify_s
        self._conversations = Conversations(at_once)

    def info(self, socket: str, /) -> PluginInfo:
        """See `Registration`."""
        return self.info_later(socket).result()

    def notify(self, socket: str, error: str, /) -> None:
        """See `Registration`."""
        self.notify_later(socket, error).result()

    def info_later(self, socket: str, /) -> Future[PluginInfo]:
        """See `AsyncRegistration`."""

        def read(data: bytes) -> PluginInfo:
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

        return self._call(socket, "GetInfo", b"", self._info_s, read)

    def notify_later(self, socket: str, error: str, /) -> Future[None]:
        """See `AsyncRegistration`."""
        # A path in the text may be no UTF-8, which a message has to be.
        text = error.encode("utf-8", "backslashreplace")[:_LONGEST_WORDS_BYTES].decode(errors="ignore")
        status = wire.RegistrationStatus(plugin_registered=not error, error=text)
        data = status.SerializeToString()
        return self._call(socket, "NotifyRegistrationStatus", data, self._notify_s, lambda _: None)

    def _call(
        self, socket: str, name: str, request: bytes, limit_s: float, read: Callable[[bytes], T]
    ) -> Future[T]:
        if fault := _sockets.too_long(socket):
            broken = Future[T]()
            broken.set_exception(RegistrationBrokenError(socket, name, "TOO LONG", fault))
            return broken

        def ended(future: Future[Answer]) -> T:
            answer = future.result()
            if answer.status == "OK":
                return read(answer.data)
            if answer.is_away:
                raise RegistrationUnavailableError(socket, name, answer.status, answer.detail)
            raise RegistrationBrokenError(socket, name, answer.status, answer.detail)

        call = self._conversations.ask(
            _sockets.resolved(socket),
            f"/{wire.DESCRIPTOR.services_by_name['Registration'].full_name}/{name}",
            request,
            limit_s=limit_s,
            wait_s=limit_s * _MARGIN,
            largest_bytes=_LARGEST_BYTES,
        )
        return then(call, ended)
