"""gRPC: the connection to a plugin. Introductions, the other way round, are in `_registration`."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import TypeVar

from nodealloc._proto import deviceplugin_v1beta1_pb2 as wire
from nodealloc._rpc.caller import Caller
from nodealloc._rpc.conversations import Conversations
from nodealloc._rpc.errors import CallRefusedError, CallUnavailableError
from nodealloc._rpc.single import Answer
from nodealloc._rpc.streams import Stream
from nodealloc.devices._errors import PluginRefusedError, PluginUnavailableError
from nodealloc.devices._inventory import Device, PluginOptions
from nodealloc.devices._limits import Deadlines, PluginLimits
from nodealloc.devices._ports import Connect
from nodealloc.devices._preferences import PreferenceQuestion
from nodealloc.devices.plugins import _codec as codec
from nodealloc.dsw_asw import Cancel
from nodealloc.errors import DecodeError

__all__ = ["GrpcConnection", "dialling"]

T = TypeVar("T")

_log = logging.getLogger("nodealloc.devices")

_LEAST_S = 0.1
"""For the answer of one who began to listen at the last moment."""
_STOP_S = 5.0
"""How long the thread of a stream that was cancelled is waited for."""
_ANSWERS = ("GetDevicePluginOptions", "GetPreferredAllocation", "Allocate", "PreStartContainer")


class _Newest:
    """A slot for the newest message: putting overwrites, taking waits; closing ends both."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._message: bytes | None = None
        self._end: CallUnavailableError | CallRefusedError | None = None

    def put(self, message: bytes) -> None:
        with self._changed:
            self._message = message
            self._changed.notify()

    def end(self, error: CallUnavailableError | CallRefusedError) -> None:
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

    The path is resolved once, and nothing is dialled before the first call: the
    socket that is there then is the one that is called from then on. Safe to
    call from several threads.

    Args:
        path: The plugin's socket.
        deadlines: How long it may take.
        limits: How large its messages may be.
        calls: Ask plugins whether they answer at all, without a thread for each.
    """

    def __init__(
        self,
        path: str,
        /,
        *,
        deadlines: Deadlines | None = None,
        limits: PluginLimits | None = None,
        calls: Conversations | None = None,
    ) -> None:
        limits = PluginLimits() if limits is None else limits
        self._limits = limits
        self._calls = Conversations(1) if calls is None else calls
        self._asking: Future[Answer] | None = None
        self._path = path
        self._deadlines = Deadlines() if deadlines is None else deadlines
        self._caller = Caller(
            path,
            wire.DESCRIPTOR,
            "DevicePlugin",
            largest_bytes=max(limits.list_bytes, limits.answer_bytes),
            largest_answers=dict.fromkeys(_ANSWERS, limits.answer_bytes)
            | {"ListAndWatch": limits.list_bytes},
            limits=dict.fromkeys(_ANSWERS, "PluginLimits.answer_bytes")
            | {"ListAndWatch": "PluginLimits.list_bytes"},
            unavailable=PluginUnavailableError,
            refused=PluginRefusedError,
        )
        self._newest = _Newest()
        self._stream: Stream | None = None
        self._reader: threading.Thread | None = None
        self._lock = threading.Lock()
        self._closed = False

    def options(self) -> PluginOptions:
        """See `PluginWatch`."""
        name, ends_s = "GetDevicePluginOptions", time.monotonic() + self._deadlines.connect_s
        address = self._caller.address(name, self._deadlines.connect_s)
        asking = self._calls.ask(
            self._path,
            f"/{wire.DESCRIPTOR.services_by_name['DevicePlugin'].full_name}/{name}",
            b"",
            limit_s=max(ends_s - time.monotonic(), _LEAST_S),
            wait_s=self._deadlines.connect_s,
            largest_bytes=self._limits.answer_bytes,
            address=address,
        )
        with self._lock:
            self._asking = asking
            if self._closed:
                asking.cancel()
        try:
            answer = asking.result()
        except CancelledError:
            raise self._caller.cancelled(name) from None
        if answer.status == "UNIMPLEMENTED":
            return PluginOptions()
        if answer.status != "OK":
            made = PluginUnavailableError if answer.is_away else PluginRefusedError
            raise made(self._path, name, answer.status, answer.detail)
        data = answer.data
        return self._decoded("GetDevicePluginOptions", codec.decode_options, data)

    def lists(self) -> Iterator[Sequence[Device]]:
        """See `PluginWatch`."""
        self._start_reading()
        while True:
            yield self._decoded("ListAndWatch", codec.decode_list, self._newest.take())

    def preferred(self, question: PreferenceQuestion, /) -> tuple[str, ...]:
        """See `PluginCalls`."""
        asked = codec.encode_preferred(question)
        data = self._caller.call("GetPreferredAllocation", asked, self._deadlines.preferred_s)
        return self._decoded("GetPreferredAllocation", codec.decode_preferred, data)

    def allocate(self, ids: Sequence[str], /, *, cancel: Cancel | None = None) -> bytes:
        """See `PluginCalls`."""
        data = self._caller.call(
            "Allocate",
            codec.encode_allocate(ids),
            self._deadlines.allocate_s,
            on_cancel=None if cancel is None else cancel.on_cancel,
        )
        answer, count = self._decoded("Allocate", codec.decode_allocated, data)
        if count > 1:
            _log.warning(
                "%s: Allocate answered for %d containers; the first of them counts", self._path, count
            )
        return answer

    def pre_start(self, ids: Sequence[str], /, *, cancel: Cancel | None = None) -> None:
        """See `PluginCalls`."""
        self._caller.call(
            "PreStartContainer",
            codec.encode_pre_start(ids),
            self._deadlines.pre_start_s,
            on_cancel=None if cancel is None else cancel.on_cancel,
        )

    def close(self) -> None:
        """See `PluginWatch`."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            stream, self._stream = self._stream, None
            reader, asking = self._reader, self._asking
        if asking is not None:
            asking.cancel()
        if stream is not None:
            stream.cancel()
        self._newest.end(self._caller.cancelled("ListAndWatch"))
        self._caller.close()
        if reader is not None:
            # A program that ends while this thread is inside gRPC may wait for its locks forever.
            reader.join(_STOP_S)

    def _start_reading(self) -> None:
        name = f"device lists of {Path(self._path).name}"
        with self._lock:
            if self._closed:
                raise self._caller.cancelled("ListAndWatch")
            self._stream = self._caller.stream("ListAndWatch")
            reader = threading.Thread(target=self._read, args=(self._stream,), name=name, daemon=True)
            reader.start()  # raises where the system gives no more threads: nobody is waited for then
            self._reader = reader

    def _read(self, stream: Stream) -> None:
        try:
            for message in stream:
                self._newest.put(message)
        except (CallUnavailableError, CallRefusedError) as error:
            self._newest.end(error)
        finally:
            # Also when the thread dies of something else: nobody would ever end the wait.
            self._newest.end(PluginUnavailableError(self._path, "ListAndWatch", "END OF STREAM"))

    def _decoded(self, name: str, decode: Callable[[bytes], T], data: bytes) -> T:
        try:
            return decode(data)
        except DecodeError as error:
            raise PluginRefusedError(self._path, name, "BAD ANSWER", str(error)) from error


def dialling(deadlines: Deadlines | None, limits: PluginLimits, /) -> Connect:
    """Makes connections that share their calls; as many at once as plugins may be called back."""
    calls = Conversations(limits.introductions)

    def dial(socket: str) -> GrpcConnection:
        return GrpcConnection(socket, deadlines=deadlines, limits=limits, calls=calls)

    return dial
