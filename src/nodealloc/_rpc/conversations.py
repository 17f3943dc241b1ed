"""Calls that are under way side by side on one thread: hundreds that hang delay nobody else."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError

from nodealloc import _sockets
from nodealloc._rpc.places import Places
from nodealloc._rpc.unary import GAVE_WAY, Answer, UnaryCall

__all__ = ["Conversations"]

_READ_BYTES = 1 << 16
_QUEUE_S = 0.02
"""Between two looks whether there is room in a queue of callers."""
_IDLE_S = 1.0
"""How long the thread stays when there is nothing to do."""


class _Talk:
    """One call: in the line, or under way while it has a socket."""

    def __init__(
        self, path: str, address: str, new_call: Callable[[], UnaryCall], limit_s: float, begins_s: float
    ) -> None:
        self.path = path
        self.address = address
        self.new_call = new_call
        self.limit_s = limit_s
        self.begins_s = begins_s  # a turn of it begins before this
        self.ends_s = 0.0
        self.peer = (path, _sockets.identity(path))
        self.future: Future[Answer] = Future()
        self.call: UnaryCall | None = None
        self.socket: socket.socket | None = None
        self.is_connected = False
        self.unsent = b""


class Conversations:
    """Calls, each on a connection of its own that ends with it. Thread-safe.

    So many are under way at once, by the rules of `Places`; the others wait, and
    cost nothing but their memory. The thread ends when there is nothing to do.

    Args:
        most: Connections at once, at least 1; each is a descriptor.
        first_s: How long a first turn is where others wait.
    """

    def __init__(self, most: int, /, *, first_s: float = 0.06) -> None:
        self._places = Places[_Talk](most, first_s=first_s)
        self._lock = threading.Lock()
        self._coming: list[_Talk] = []
        self._cancelled: list[_Talk] = []
        self._wake: int | None = None
        # What follows belongs to the thread.
        self._poll: select.epoll
        self._by_number: dict[int, _Talk] = {}
        self._timers: list[tuple[float, int, _Talk]] = []
        self._numbers = itertools.count()

    def ask(
        self,
        path: str,
        method: str,
        request: bytes,
        /,
        *,
        limit_s: float,
        wait_s: float,
        largest_bytes: int,
        address: str = "",
    ) -> Future[Answer]:
        """How a call ends. The future raises nothing, unless somebody cancels it, which ends the call.

        Args:
            path: The socket, without symbolic links on its way.
            method: Path of the method.
            request: What is sent.
            limit_s: Seconds for the answer, from the begin of a turn.
            wait_s: Seconds for a turn to begin.
            largest_bytes: Of the answer.
            address: Where the socket is dialled when that is not `path`, until the future is done.
        """

        def new_call() -> UnaryCall:
            return UnaryCall(method, request, limit_s=limit_s, largest_bytes=largest_bytes)

        talk = _Talk(path, address, new_call, limit_s, time.monotonic() + wait_s)
        with self._lock:
            if self._wake is None:
                self._wake = self._started()
            self._coming.append(talk)
            os.eventfd_write(self._wake, 1)
        talk.future.add_done_callback(lambda future: self._cancel(talk) if future.cancelled() else None)
        return talk.future

    def _started(self) -> int:
        wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        try:
            threading.Thread(target=self._run, args=(wake,), name="calls", daemon=True).start()
        except BaseException:
            os.close(wake)
            raise
        return wake

    def _cancel(self, talk: _Talk) -> None:
        with self._lock:
            if self._wake is not None:
                self._cancelled.append(talk)
                os.eventfd_write(self._wake, 1)

    # What follows runs on the thread.

    def _run(self, wake: int) -> None:
        self._poll = select.epoll()
        self._poll.register(wake, select.EPOLLIN)
        rest_s = _IDLE_S
        while True:
            events = self._poll.poll(rest_s)
            if self._take_in(wake, came=bool(events)):
                return
            for number, _ in events:
                if (talk := self._by_number.get(number)) is not None:
                    self._guarded(talk, self._read)
            now_s = time.monotonic()
            self._look_at_timers(now_s)
            for talk, leaves in self._places.begin(now_s):
                if leaves is not None:
                    self._give_way(leaves, now_s)
                self._guarded(talk, self._begin)
            rest_s = self._rest_s()

    def _take_in(self, wake: int, *, came: bool) -> bool:
        """Those who came stand in the line, those who were cancelled are let go; whether that is all."""
        with self._lock:
            if came:
                with contextlib.suppress(BlockingIOError):
                    os.eventfd_read(wake)
            coming, self._coming = self._coming, []
            cancelled, self._cancelled = self._cancelled, []
            is_over = not (came or coming or len(self._places))
            if is_over:
                self._wake = None
                self._poll.close()
                self._timers.clear()
                os.close(wake)
        for talk in coming:
            self._places.wait(talk, talk.peer)
            self._remind(talk.begins_s, talk)
        for talk in cancelled:
            self._leave(talk)
        return is_over

    def _rest_s(self) -> float:
        """For how long nothing is due."""
        if not len(self._places):
            self._timers.clear()
            return _IDLE_S
        due_s = min(self._timers[0][0] if self._timers else _IDLE_S, self._places.next_s() or float("inf"))
        return max(0.0, due_s - time.monotonic())

    def _remind(self, due_s: float, talk: _Talk) -> None:
        heapq.heappush(self._timers, (due_s, next(self._numbers), talk))

    def _look_at_timers(self, now_s: float) -> None:
        while self._timers and self._timers[0][0] <= now_s:
            talk = heapq.heappop(self._timers)[2]
            if talk.future.done():
                continue
            if talk.socket is None:
                self._give_up(talk, now_s)
            elif now_s >= talk.ends_s:
                self._end(talk, Answer("DEADLINE_EXCEEDED", detail=_sockets.seen_at(talk.path)))
            elif not talk.is_connected:
                self._guarded(talk, self._connect)

    def _give_way(self, talk: _Talk, now_s: float) -> None:
        self._hang_up(talk)
        if not self._give_up(talk, now_s):
            self._places.wait(talk, talk.peer)
            self._remind(talk.begins_s, talk)

    def _give_up(self, talk: _Talk, now_s: float) -> bool:
        """Whether no turn of it may begin any more."""
        if now_s < talk.begins_s:
            return False
        self._end(
            talk, Answer(GAVE_WAY, detail="others do not answer, and it had no longer turn in its time")
        )
        return True

    def _guarded(self, talk: _Talk, step: Callable[[_Talk], None]) -> None:
        """One call's trouble is its own."""
        try:
            step(talk)
        except Exception as error:  # noqa: BLE001 - whatever it is belongs to the future's reader
            words = str(error) or type(error).__name__
            self._end(talk, Answer("UNAVAILABLE" if isinstance(error, OSError) else "INTERNAL", detail=words))

    def _begin(self, talk: _Talk) -> None:
        if talk.future.done():
            self._leave(talk)
            return
        talk.call = talk.new_call()
        talk.unsent = talk.call.greeting
        talk.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        talk.ends_s = time.monotonic() + talk.limit_s
        self._remind(talk.ends_s, talk)
        self._connect(talk)

    def _connect(self, talk: _Talk) -> None:
        found = None if talk.address else _sockets.pin(talk.path)
        address = talk.address if found is None else found.address
        if not address or talk.socket is None:
            self._end(talk, Answer("UNAVAILABLE", detail=_sockets.seen_at(talk.path)))
            return
        try:
            talk.socket.connect(address)
        except BlockingIOError:  # more callers wait there than it takes at once
            self._remind(time.monotonic() + _QUEUE_S, talk)
            return
        except OSError:
            self._end(talk, Answer("UNAVAILABLE", detail=_sockets.seen_at(talk.path)))
            return
        finally:
            if found is not None:
                found.release()
        talk.is_connected = True
        self._by_number[talk.socket.fileno()] = talk
        self._poll.register(talk.socket, select.EPOLLIN)
        self._write(talk)

    def _read(self, talk: _Talk) -> None:
        if talk.socket is None or talk.call is None:
            return
        try:
            data = talk.socket.recv(_READ_BYTES)
        except BlockingIOError:  # there is room to write
            self._write(talk)
            return
        talk.unsent += talk.call.received(data)
        if talk.call.answer is not None:
            self._end(talk, talk.call.answer)
        elif talk.unsent:
            self._write(talk)

    def _write(self, talk: _Talk) -> None:
        if talk.socket is None:
            return
        # What broke while it was sent, reading says better: the other side's last words are there.
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            talk.unsent = talk.unsent[talk.socket.send(talk.unsent) :]
        self._poll.modify(talk.socket, select.EPOLLIN | (select.EPOLLOUT if talk.unsent else 0))

    def _end(self, talk: _Talk, answer: Answer) -> None:
        if answer.status == "OK":
            self._places.forget(talk.peer)
        self._leave(talk)
        with contextlib.suppress(InvalidStateError):  # cancelled at this very moment
            talk.future.set_result(answer)

    def _leave(self, talk: _Talk) -> None:
        self._places.leave(talk)
        self._hang_up(talk)

    def _hang_up(self, talk: _Talk) -> None:
        if talk.socket is not None:
            self._by_number.pop(talk.socket.fileno(), None)
            talk.socket.close()
        talk.socket, talk.call, talk.is_connected, talk.unsent = None, None, False, b""
