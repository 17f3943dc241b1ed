"""A client of one service on one Unix socket: unary calls with deadlines, streams, one pair of errors."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from functools import partial
from pathlib import Path
from typing import Final

import grpc
from google.protobuf.descriptor import FileDescriptor

from nodealloc import _sockets
from nodealloc._rpc import channels
from nodealloc._rpc.errors import CallRefusedError, CallUnavailableError
from nodealloc._rpc.streams import Stream

__all__ = ["Caller"]

_LOOK_S = 0.02
"""Between two looks whether somebody listens; a plugin that registers begins to at the same time."""
_LONGEST_S: Final = 1e9
"""Of a call: grpc counts nanoseconds of 1970 in 63 bits, and what ends after 2262 has ended for it."""


class Caller:
    """Calls a service. Thread-safe.

    The path is resolved once, here, and the socket that is found there first is
    the one that is dialled, as long as this lives: neither a link that is turned
    later nor another program that takes the path over gets a call.

    Args:
        path: Of the socket.
        file: Describes the service.
        service: Its name in there.
        largest_bytes: Of a message, either way.
        largest_answers: Method to the bytes of its answer, where they are fewer.
        limits: Method to what says how large its answer may be, for who has to raise it.
        unavailable: What is raised when there is no answer.
        refused: What is raised for a refusal.

    Attributes:
        path: The socket, as it was given.
    """

    def __init__(
        self,
        path: str | Path,
        file: FileDescriptor,
        service: str,
        /,
        *,
        largest_bytes: int,
        largest_answers: Mapping[str, int] | None = None,
        limits: Mapping[str, str] | None = None,
        unavailable: type[CallUnavailableError] = CallUnavailableError,
        refused: type[CallRefusedError] = CallRefusedError,
    ) -> None:
        self.path = os.fspath(path)
        self._file = file
        self._service = service
        self._largest_bytes = largest_bytes
        self._full_name = full_name = file.services_by_name[service].full_name
        self._largest_answers = {(full_name, name): most for name, most in (largest_answers or {}).items()}
        self._limits = dict(limits or {})
        self._unavailable = unavailable
        self._refused = refused
        self._lock = threading.Lock()
        self._socket: _sockets.Pinned | None = None
        self._channel: channels.Channel | None = None
        self._streams: list[Stream] = []
        self._closed = threading.Event()
        self._real_path = _sockets.resolved(self.path)

    def call(
        self,
        name: str,
        request: bytes,
        limit_s: float,
        /,
        *,
        on_cancel: Callable[[Callable[[], None]], Callable[[], None]] | None = None,
    ) -> bytes:
        """The answer to a call, within so many seconds.

        Args:
            name: Of the method.
            request: What is sent.
            limit_s: Seconds for the answer.
            on_cancel: Has something called when the call is to end before; returns what ends that. None
                where nobody ends it.

        Raises:
            CallUnavailableError: In the caller's own words; so is the other.
            CallRefusedError: Somebody answered with a refusal.
            CancelledError: Of `concurrent.futures`; it was ended before there was an answer.
        """
        channel = self._dialled(name)
        try:
            calls, limit_s = channel.unary_unary(self._method(name)), min(limit_s, _LONGEST_S)
            if on_cancel is None:
                return calls(request, timeout=limit_s)
            return _unless_ended(calls.future(request, timeout=limit_s), on_cancel)
        except grpc.RpcError as error:
            raise self.failed(name, error) from error
        except ValueError as error:  # grpc's own word for a channel that was closed
            raise self.cancelled(name) from error

    def address(self, name: str, limit_s: float, /) -> str:
        """Where the socket is dialled until `close`, waiting within those seconds until somebody listens.

        Raises:
            CallUnavailableError: Nobody does; it says what is there instead.
        """
        ends_s = time.monotonic() + limit_s
        while (found := self._pinned(name)) is None:
            if time.monotonic() >= ends_s:
                raise self._nobody(name)
            self._closed.wait(_LOOK_S)
        return found.address

    def is_served(self) -> bool:
        """Whether somebody listens now on the socket that is dialled; never waits."""
        with self._lock:
            return self._socket is not None and self._socket.is_served()

    def stream(self, name: str, /, *, counts: Callable[[bytes], bool] | None = None) -> Stream:
        """Answers to an empty request, as they come, until they end or `close` ends them.

        Reading them raises as `call` does.

        Args:
            name: Of the method.
            counts: Whether an answer is handed on; quick, and asked on the loop of all calls. None for all.
        """
        with self._lock:
            found = self._found(name)
            if found is None:
                raise self._nobody(name)
            made = Stream(
                found.address,
                self._method(name),
                largest_bytes=self._largest_answers.get((self._full_name, name), self._largest_bytes),
                failed=partial(self.failed, name),
                cancelled=partial(self.cancelled, name),
                counts=counts,
            )
            self._streams = [one for one in self._streams if not one.is_over] + [made]
            return made

    def failed(self, name: str, error: grpc.RpcError, /) -> CallUnavailableError | CallRefusedError:
        """What an error of gRPC means."""
        failed = channels.failure(error)
        if failed.is_away:
            return self._unavailable(self.path, name, failed.status, failed.detail)
        detail, sizes = failed.detail, channels.beyond(failed)
        if sizes is not None:
            detail = f"its message has {sizes[0]:,} bytes, and {sizes[1]:,} are taken at the most"
            if name in self._limits:
                detail += f"; have it send less, or raise {self._limits[name]}"
        return self._refused(self.path, name, failed.status, detail)

    def cancelled(self, name: str, /) -> CallUnavailableError:
        """The error of a call that `close` ended."""
        return self._unavailable(self.path, name, grpc.StatusCode.CANCELLED.name)

    def close(self) -> None:
        """End all calls and give everything back. May be repeated."""
        with self._lock:
            self._closed.set()
            channel, self._channel = self._channel, None
            socket, self._socket = self._socket, None
            streams, self._streams = self._streams, []
        for stream in streams:
            stream.cancel()
        if channel is not None:
            channel.close()
        if socket is not None:
            socket.release()

    def _method(self, name: str) -> str:
        return channels.method(self._file, self._service, name)

    def _dialled(self, name: str) -> channels.Channel:
        channel = self._open(name)
        if channel is None:
            raise self._nobody(name)
        return channel

    def _nobody(self, name: str) -> CallUnavailableError:
        return self._unavailable(self.path, name, grpc.StatusCode.UNAVAILABLE.name, self._seen())

    def _seen(self) -> str:
        if _sockets.resolved(self._real_path) != self._real_path:
            return "the path leads elsewhere since; links that are turned are not followed"
        return _sockets.seen_at(self._real_path)

    def _open(self, name: str) -> channels.Channel | None:
        """The channel to whoever listens there first; None while nobody does."""
        with self._lock:
            found = self._found(name)
            if found is None:
                return None
            if self._channel is None:
                self._channel = channels.dial(
                    found.address, largest_bytes=self._largest_bytes, largest_answers=self._largest_answers
                )
            return self._channel

    def _pinned(self, name: str) -> _sockets.Pinned | None:
        with self._lock:
            return self._found(name)

    def _found(self, name: str) -> _sockets.Pinned | None:
        if self._closed.is_set():
            raise self.cancelled(name)
        if self._socket is None:
            found = _sockets.pin(self._real_path)
            if found is None:
                return None
            try:
                if found.is_served():
                    self._socket = found
            except OSError as error:  # no descriptor is left to look with
                words = error.strerror or str(error)
                raise self._unavailable(self.path, name, grpc.StatusCode.UNAVAILABLE.name, words) from error
            finally:
                if self._socket is None:
                    found.release()
        return self._socket


def _unless_ended(
    answer: channels.Answering, on_cancel: Callable[[Callable[[], None]], Callable[[], None]]
) -> bytes:
    """An answer that is under way, as it comes."""

    def end() -> None:
        answer.cancel()

    leave = on_cancel(end)
    try:
        return answer.result()
    except grpc.FutureCancelledError as error:
        raise CancelledError from error
    finally:
        leave()
