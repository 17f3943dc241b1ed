"""gRPC: the connection to a plugin. Introductions, the other way round, are in `_registration`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import attrs
import grpc

from nodealloc import _rpc, _sockets
from nodealloc._proto import deviceplugin_v1beta1_pb2 as wire
from nodealloc.devices import _codec as codec
from nodealloc.devices._errors import PluginRefusedError, PluginUnavailableError
from nodealloc.devices._inventory import Device, PluginOptions
from nodealloc.devices._preferences import PreferenceQuestion
from nodealloc.errors import DecodeError

__all__ = ["Deadlines", "GrpcConnection"]

T = TypeVar("T")

_STOP_S = 5.0
"""How long the thread of a stream that was cancelled is waited for."""
MAX_MESSAGE_BYTES = 64 << 20
"""Largest message of a plugin: 100,000 devices take about 6 MB; gRPC's own limit is 4 MB."""


@attrs.frozen(kw_only=True)
class Deadlines:
    """How long a plugin may take, in seconds.

    Attributes:
        connect_s: To be there and answer `GetDevicePluginOptions`.
        preferred_s: For `GetPreferredAllocation`.
        allocate_s: For `Allocate`; the kubelet sets no limit.
        pre_start_s: For `PreStartContainer`; the kubelet's limit is 30 s too.
    """

    connect_s: float = 10.0
    preferred_s: float = 10.0
    allocate_s: float = 60.0
    pre_start_s: float = 30.0


def _failed(plugin: str, name: str, error: grpc.RpcError, /) -> PluginUnavailableError | PluginRefusedError:
    status, detail, is_away = _rpc.failure(error)
    kind = PluginUnavailableError if is_away else PluginRefusedError
    return kind(plugin, name, status, detail)


def _method(name: str) -> str:
    return _rpc.method(wire.DESCRIPTOR, "DevicePlugin", name)


class _Newest:
    """A slot for the newest message: putting overwrites, taking waits; closing ends both."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._message: bytes | None = None
        self._end: PluginUnavailableError | PluginRefusedError | None = None

    def put(self, message: bytes) -> None:
        with self._changed:
            self._message = message
            self._changed.notify()

    def end(self, error: PluginUnavailableError | PluginRefusedError) -> None:
        with self._changed:
            self._end = self._end or error
            self._changed.notify_all()

    def take(self) -> bytes:
        with self._changed:
            while self._message is None:
                if self._end is not None:
                    raise self._end
                self._changed.wait()
            message, self._message = self._message, None
            return message


class GrpcConnection:
    """A plugin's connection over its Unix socket; a `PluginConnection`.

    Nothing is dialled before the first call. Safe to call from several threads.

    Args:
        path: The plugin's socket.
        deadlines: How long it may take.
    """

    def __init__(self, path: str, /, *, deadlines: Deadlines = Deadlines()) -> None:
        self._path = path
        self._deadlines = deadlines
        self._channel = _rpc.dial(path, largest_bytes=MAX_MESSAGE_BYTES)
        self._newest = _Newest()
        self._stream: _rpc.Stream | None = None
        self._reader: threading.Thread | None = None
        self._lock = threading.Lock()
        self._closed = False

    def options(self) -> PluginOptions:
        """See `PluginWatch`."""
        limit = self._deadlines.connect_s
        try:
            data = self._call("GetDevicePluginOptions", b"", limit, wait_for_ready=True)
        except PluginRefusedError as error:
            if error.status == grpc.StatusCode.UNIMPLEMENTED.name:
                return PluginOptions()
            raise
        except PluginUnavailableError as error:
            # gRPC tried until the deadline and says no more than that.
            seen = _sockets.seen_at(self._path)
            raise PluginUnavailableError(self._path, error.call, error.status, seen) from error
        return self._decoded("GetDevicePluginOptions", codec.decode_options, data)

    def lists(self) -> Iterator[Sequence[Device]]:
        """See `PluginWatch`."""
        self._start_reading()
        while True:
            yield self._decoded("ListAndWatch", codec.decode_list, self._newest.take())

    def preferred(self, question: PreferenceQuestion, /) -> tuple[str, ...]:
        """See `PluginCalls`."""
        asked = codec.encode_preferred(question)
        data = self._call("GetPreferredAllocation", asked, self._deadlines.preferred_s)
        return self._decoded("GetPreferredAllocation", codec.decode_preferred, data)

    def allocate(self, ids: Sequence[str], /) -> bytes:
        """See `PluginCalls`."""
        data = self._call("Allocate", codec.encode_allocate(ids), self._deadlines.allocate_s)
        return self._decoded("Allocate", codec.decode_allocated, data)

    def pre_start(self, ids: Sequence[str], /) -> None:
        """See `PluginCalls`."""
        self._call("PreStartContainer", codec.encode_pre_start(ids), self._deadlines.pre_start_s)

    def close(self) -> None:
        """See `PluginWatch`."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            stream, self._stream = self._stream, None
            reader = self._reader
        if stream is not None:
            stream.cancel()
        self._newest.end(PluginUnavailableError(self._path, "ListAndWatch", "CANCELLED"))
        self._channel.close()
        if reader is not None:
            # A program that ends while this thread is inside gRPC may wait for its locks forever.
            reader.join(_STOP_S)

    def _start_reading(self) -> None:
        name = f"device lists of {Path(self._path).name}"
        with self._lock:
            if self._closed:
                raise PluginUnavailableError(self._path, "ListAndWatch", "CANCELLED")
            self._stream = self._channel.unary_stream(_method("ListAndWatch"))(b"")
            self._reader = threading.Thread(target=self._read, args=(self._stream,), name=name, daemon=True)
            self._reader.start()

    def _read(self, stream: _rpc.Stream) -> None:
        try:
            for message in stream:
                self._newest.put(message)
        except grpc.RpcError as error:
            self._newest.end(_failed(self._path, "ListAndWatch", error))
            # gRPC raises the call itself. With its traceback it would be a cycle, taken apart at the
            # end of the program at the latest, and takes a lock then that nobody may give back.
            error.__traceback__ = None
        except ValueError:  # the channel was closed between two messages
            self._newest.end(PluginUnavailableError(self._path, "ListAndWatch", "CANCELLED"))
        finally:
            # Also when the thread dies of something else: nobody would ever end the wait.
            self._newest.end(PluginUnavailableError(self._path, "ListAndWatch", "END OF STREAM"))

    def _call(self, name: str, request: bytes, limit_s: float, *, wait_for_ready: bool = False) -> bytes:
        try:
            call = self._channel.unary_unary(_method(name))
            return call(request, timeout=limit_s, wait_for_ready=wait_for_ready)
        except grpc.RpcError as error:
            raise _failed(self._path, name, error) from error
        except ValueError as error:  # grpc's own word for a channel that was closed
            raise PluginUnavailableError(self._path, name, "CANCELLED") from error

    def _decoded(self, name: str, decode: Callable[[bytes], T], data: bytes) -> T:
        try:
            return decode(data)
        except DecodeError as error:
            raise PluginRefusedError(self._path, name, "BAD ANSWER", str(error)) from error
