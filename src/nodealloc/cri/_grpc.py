"""gRPC: calls of a runtime over its socket, one at a time for each target; only here it is known."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Hashable
from pathlib import Path
from typing import Final

import grpc

from nodealloc._proto import runtime_v1_pb2 as wire
from nodealloc._rpc.caller import Caller
from nodealloc._rpc.errors import CallRefusedError, CallUnavailableError
from nodealloc.dsw_asw import Cancel
from nodealloc.runtime import (
    AnswerLostError,
    NameReservedError,
    NoSuchRecordError,
    RuntimeRefusedError,
    RuntimeUnavailableError,
)

__all__ = ["Line"]

_LARGEST_BYTES: Final = 64 << 20
"""A listing of 10,000 containers with a kilobyte of labels each takes 15 MB."""
_AT_ONCE_S: Final = 1.0
_NOT_UP: Final = "not initialized yet"
_TAKEN: Final = ("is reserved", "already exists", "reserved for")
_NOT_REACHED: Final = (
    "failed to connect",
    "Connection refused",
    "No such file",
    "connection attempt timed out",
)


class Line:
    """A runtime's socket: calls with deadlines, dialled anew after a restart. Thread-safe.

    Args:
        path: The socket.
        unix_s: The time, in Unix seconds.

    Attributes:
        outages: When the runtime was away: from its last answer before to its first
            one after, in Unix seconds; the newest are kept.
    """

    def __init__(self, path: str | Path, /, *, unix_s: Callable[[], float] = time.time) -> None:
        self._path = path
        self._unix_s = unix_s
        self._lock = threading.Lock()
        self._callers: dict[str, Caller] = {}
        self._under_way: Counter[tuple[str, Hashable]] = Counter()
        self._heard_s = unix_s()
        self._away = False
        self.outages: tuple[tuple[float, float], ...] = ()

    def call(
        self,
        name: str,
        request: bytes,
        limit_s: float,
        /,
        *,
        about: Hashable = "",
        shown: str = "",
        changes: bool = False,
        service: str = "RuntimeService",
        at_once: int = 1,
    ) -> bytes:
        """One call; while the same one about the same target is under way, another is refused at once.

        Args:
            name: The method.
            request: What is asked.
            limit_s: How long it may take.
            about: What it is about; "" for the runtime as a whole.
            shown: That, in words; by default as it is.
            changes: Whether it changes anything, so that it matters if its answer is lost.
            service: Of the method.
            at_once: So many of the same may be under way.
        """
        told = shown or (about if isinstance(about, str) else "")
        with self._only(name, about, at_once):
            caller = self._caller(service)
            try:
                answer = caller.call(name, request, limit_s)
            except CallUnavailableError as error:
                self._lost(service, caller, error)
                raise _meaning(error, changes=changes) from error
            except CallRefusedError as error:
                if _NOT_UP not in error.detail:
                    self._heard()
                raise _refusal(error, told) from error
            self._heard()
            return answer

    def follow(
        self,
        name: str,
        on_message: Callable[[], None],
        cancel: Cancel,
        /,
        *,
        counts: Callable[[bytes], bool] | None = None,
    ) -> None:
        """Call `on_message` once the stream is asked for, then at each message, until asked to stop.

        A connection of its own, since a stream may last as long as the program. With `counts`, at
        each message of which that is true.
        """
        caller = Caller(self._path, wire.DESCRIPTOR, "RuntimeService", largest_bytes=_LARGEST_BYTES)
        leave = cancel.on_cancel(caller.close)
        try:
            began_s, has_told = time.monotonic(), False
            stream = caller.stream(name, counts=counts)
            on_message()
            for _ in stream:
                has_told = True
                on_message()
            if not cancel.is_set():
                raise _ended(name, at_once=not has_told and time.monotonic() - began_s < _AT_ONCE_S)
        except CallUnavailableError as error:
            if not cancel.is_set():
                raise RuntimeUnavailableError(name, _where(error)) from error
        except CallRefusedError as error:
            if not cancel.is_set():
                raise _stream_fault(name, error) from error
        finally:
            leave()
            caller.close()

    def close(self) -> None:
        """End all calls. May be repeated."""
        with self._lock:
            callers, self._callers = list(self._callers.values()), {}
        for one in callers:
            one.close()

    @contextlib.contextmanager
    def _only(self, name: str, about: Hashable, at_once: int) -> Generator[None]:
        key = (name, about)
        with self._lock:
            if self._under_way[key] >= at_once:
                raise RuntimeUnavailableError(name, "the same call has not returned yet; one is under way")
            self._under_way[key] += 1
        try:
            yield
        finally:
            with self._lock:
                self._under_way[key] -= 1
                if not self._under_way[key]:
                    del self._under_way[key]

    def _caller(self, service: str) -> Caller:
        with self._lock:
            found = self._callers.get(service)
            if found is None:
                found = Caller(self._path, wire.DESCRIPTOR, service, largest_bytes=_LARGEST_BYTES)
                self._callers[service] = found
            return found

    def _lost(self, service: str, caller: Caller, error: CallUnavailableError) -> None:
        """It may have been restarted, on another socket at the same path: dial anew the next time.

        A runtime that still listens said so itself, as of a registry that is away: its other calls go on.
        """
        if error.status == grpc.StatusCode.DEADLINE_EXCEEDED.name or _NOT_UP in error.detail:
            return
        try:
            if caller.is_served():
                return
        except OSError:  # no descriptor is left to look with; the next call that fails looks again
            return
        with self._lock:
            self._away = True
            if self._callers.get(service) is caller:
                del self._callers[service]
        caller.close()

    def _heard(self) -> None:
        now_s = self._unix_s()
        with self._lock:
            if self._away:
                self.outages = (*self.outages[-15:], (self._heard_s, now_s))
                self._away = False
            self._heard_s = now_s


def _meaning(error: CallUnavailableError, *, changes: bool) -> RuntimeUnavailableError | AnswerLostError:
    words = error.detail or error.status
    reached = isinstance(error.__cause__, grpc.RpcError) and not any(one in words for one in _NOT_REACHED)
    if changes and reached and _NOT_UP not in words:
        return AnswerLostError(error.call, words)
    return RuntimeUnavailableError(error.call, _where(error))


def _where(error: CallUnavailableError) -> str:
    """The socket, and what is the matter there."""
    return f"{error.peer}: {error.detail or error.status}"


def _refusal(error: CallRefusedError, about: str) -> Exception:
    words = error.detail or error.status
    if _NOT_UP in words:
        return RuntimeUnavailableError(error.call, words)
    if error.status == grpc.StatusCode.NOT_FOUND.name and about:
        return NoSuchRecordError(error.call, about, words)
    if any(one in words for one in _TAKEN) or error.status == grpc.StatusCode.ALREADY_EXISTS.name:
        return NameReservedError(error.call, about, words)
    return RuntimeRefusedError(error.call, error.status, words)


def _ended(name: str, *, at_once: bool) -> Exception:
    """A runtime whose events are off ends the stream as soon as it is asked for, without an error."""
    if at_once:
        return RuntimeRefusedError(
            name, "OK", "the stream ended before any event; switch them on there (CRI-O: enable_pod_events)"
        )
    return RuntimeUnavailableError(name, "the stream ended")


def _stream_fault(name: str, error: CallRefusedError) -> Exception:
    if _NOT_UP in error.detail:
        return RuntimeUnavailableError(name, error.detail)
    return RuntimeRefusedError(name, error.status, error.detail)
