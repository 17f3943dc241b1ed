"""Between an agent and its runtime: passes every call on, and writes the changes down."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import grpc
from google.protobuf.message import Message

from nodealloc._proto import runtime_v1_pb2 as wire
from tests.stories.seen import Call

__all__ = ["Proxy"]

_WRITTEN: Final = (
    *("RunPodSandbox", "StopPodSandbox", "RemovePodSandbox"),
    *("CreateContainer", "StartContainer", "StopContainer", "RemoveContainer", "PullImage"),
)
_MOST_BYTES: Final = 16 << 20
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", _MOST_BYTES),
    ("grpc.max_send_message_length", _MOST_BYTES),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
)


class Proxy(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    """A socket that looks like the runtime's.

    Attributes:
        calls: Changes that were asked for, in order of their beginning.

    Args:
        socket: Where the agent is sent.
        runtime: Where the runtime is.
    """

    def __init__(self, socket: Path, runtime: Path) -> None:
        self._began_s = time.monotonic()
        self._lock = threading.Lock()
        self._made: list[Call | None] = []
        self._channel = grpc.insecure_channel(f"unix://{runtime}", options=_OPTIONS)
        self._server = grpc.server(ThreadPoolExecutor(64), handlers=[self], options=_OPTIONS)
        self._server.add_insecure_port(f"unix://{socket}")
        self._server.start()

    @property
    def calls(self) -> list[Call]:
        """What was asked for; calls that have not ended are left out."""
        with self._lock:
            return [one for one in self._made if one is not None]

    def close(self) -> None:
        """Pass nothing on any more."""
        self._server.stop(0).wait()
        self._channel.close()

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        """Any method."""
        method = handler_call_details.method
        if method.endswith("/GetContainerEvents"):
            return grpc.unary_stream_rpc_method_handler(
                lambda data, context: self._stream(method, data, context)
            )
        return grpc.unary_unary_rpc_method_handler(lambda data, context: self._pass(method, data, context))

    def _pass(self, method: str, data: bytes, context: grpc.ServicerContext) -> bytes:
        name = method.rpartition("/")[2]
        place, at = self._begin(name)
        call = self._channel.unary_unary(method).future(data, timeout=context.time_remaining())
        context.add_callback(call.cancel)
        try:
            answer: bytes = call.result()
        except grpc.FutureCancelledError:
            self._write(place, at, name, data, error="canceled")
            context.abort(grpc.StatusCode.CANCELLED, "canceled")
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE:  # it reached nobody
                self._write(place, at, name, data, error=str(error.details()))
            context.abort(error.code(), error.details())
        self._write(place, at, name, data, answer=answer)
        return answer

    def _stream(self, method: str, data: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        call = self._channel.unary_stream(method)(data)
        context.add_callback(call.cancel)
        try:
            yield from call
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())

    def _begin(self, name: str) -> tuple[int, float]:
        if name not in _WRITTEN:
            return -1, 0.0
        with self._lock:
            self._made.append(None)
            return len(self._made) - 1, time.monotonic()

    def _write(
        self, place: int, at: float, name: str, data: bytes, *, answer: bytes = b"", error: str = ""
    ) -> None:
        if place < 0:
            return
        request = _read(f"{name}Request", data)
        said = _read(f"{name}Response", answer) if answer else {}
        made = str(said.get("pod_sandbox_id") or said.get("container_id") or "")
        with self._lock:
            self._made[place] = Call(at=at, method=name, request=request, answer=made, error=error)


def _read(kind: str, data: bytes) -> dict[str, object]:
    made: Message = getattr(wire, kind)()
    made.ParseFromString(data)
    return _plain(made)


def _plain(message: Message) -> dict[str, object]:
    """Fields that are set, by the interface's names; numbers and enums as numbers."""
    found: dict[str, object] = {}
    for field, value in message.ListFields():
        name = field.name
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            found[name] = dict(value)
        elif isinstance(value, Message):
            found[name] = _plain(value)
        elif isinstance(value, str | int | float | bool):
            found[name] = value
        elif isinstance(value, bytes):
            found[name] = value.decode(errors="replace")
        else:
            found[name] = [_plain(one) if isinstance(one, Message) else one for one in value]
    return found
