"""Calls that are under way side by side on one thread: hundreds that hang delay nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, InvalidStateError

from nodealloc import _sockets
from nodealloc._error_words import error_words
from nodealloc._rpc.errors import GAVE_WAY
from nodealloc._rpc.places import Places
from nodealloc._rpc.single import Answer, calls_loop, single_call

__all__ = ["Conversations"]

_MOST_BEGUN = 8
"""In one pass of the event loop, so that whoever has an answer is not kept waiting by those who begin."""
_REST_S = 0.02
"""After so many, for all but the first of an owner: those who begin take as long by themselves."""
_FIRST_S = 0.1
"""How long a first turn is where others wait."""


class _Call:
    """One call: in the line, or under way while it has a task."""

    def __init__(self, path: str, begin: Callable[[], Coroutine[None, None, Answer]], wait_s: float) -> None:
        self.begin = begin
        self.begins_s = time.monotonic() + wait_s  # a turn of it begins before this
        self.peer = (path, _sockets.identity(path))
        self.owner = _sockets.listener(path) or None
        self.future: Future[Answer] = Future()
        self.task: asyncio.Task[None] | None = None
        self.reminder: asyncio.TimerHandle | None = None


class Conversations:
    """Calls, each on a connection of its own that ends with it. Thread-safe.

    So many are under way at once, by the rules of `Places`; the others wait, and
    cost nothing but their memory.

    Args:
        most: Connections at once, at least 1; each takes two descriptors.
    """

    def __init__(self, most: int, /) -> None:
        # Both belong to the loop's thread.
        self._places = Places[_Call](most, first_s=_FIRST_S)
        self._next: asyncio.TimerHandle | None = None
        self._rests_until_s = 0.0

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
            largest_bytes: Of a message, either way.
            address: Where the socket is dialled when that is not `path`, until the future is done.
        """

        def begin() -> Coroutine[None, None, Answer]:
            return single_call(
                path, method, request, limit_s=limit_s, largest_bytes=largest_bytes, address=address
            )

        call = _Call(path, begin, wait_s)
        loop = calls_loop()

        def ended(future: Future[Answer]) -> None:
            if future.cancelled():
                loop.call_soon_threadsafe(self._leave, call)

        loop.call_soon_threadsafe(self._wait, call)
        call.future.add_done_callback(ended)
        return call.future

    # What follows runs on the loop's thread.

    def _wait(self, call: _Call) -> None:
        """Stand in the line, once more after a turn."""
        if call.future.done():
            return
        left_s = call.begins_s - time.monotonic()
        if left_s <= 0:
            self._give_up(call)
            return
        is_first = self._places.wait(call, call.peer, call.owner)
        loop = asyncio.get_running_loop()
        call.reminder = loop.call_later(left_s, self._give_up, call)
        self._look_at(0.0 if is_first else self._rests_until_s)

    def _look_at(self, when_s: float) -> None:
        """At that time of the loop, or earlier."""
        if self._next is not None:
            if self._next.when() <= when_s:
                return
            self._next.cancel()
        self._next = asyncio.get_running_loop().call_at(when_s, self._look)

    def _look(self) -> None:
        """Those begin whose turn it is, a few at a time."""
        self._next, begun = None, 0
        for call, leaves in itertools.islice(self._places.begin(time.monotonic()), _MOST_BEGUN):
            begun += 1
            if leaves is not None:
                self._hang_up(leaves)
                self._wait(leaves)
            self._hang_up(call)  # its reminder
            call.task = asyncio.get_running_loop().create_task(self._hold(call))
        loop, next_s = asyncio.get_running_loop(), self._places.next_s()
        if begun == _MOST_BEGUN:
            self._rests_until_s = loop.time() + _REST_S
            self._look_at(self._rests_until_s)
        elif next_s is not None:
            self._look_at(loop.time() + max(0.001, next_s - time.monotonic()))

    async def _hold(self, call: _Call) -> None:
        try:
            answer = await call.begin()
        except OSError as error:  # no descriptor is left
            answer = Answer("UNAVAILABLE", detail=str(error), is_away=True)
        except Exception as error:  # noqa: BLE001 - one call's trouble is its own
            answer = Answer("INTERNAL", detail=error_words(error))
        self._end(call, answer)

    def _give_up(self, call: _Call) -> None:
        """No turn of it may begin any more."""
        words = "others do not answer, and it had no longer turn in its time"
        self._end(call, Answer(GAVE_WAY, detail=words, is_away=True))

    def _end(self, call: _Call, answer: Answer) -> None:
        if answer.status == "OK":
            self._places.forget(call.peer)
        call.task = None  # it ends with this
        self._leave(call)
        with contextlib.suppress(InvalidStateError):  # cancelled at this very moment
            call.future.set_result(answer)

    def _leave(self, call: _Call) -> None:
        self._places.leave(call)
        self._hang_up(call)
        if self._next is not None:
            self._look_at(self._rests_until_s)

    def _hang_up(self, call: _Call) -> None:
        if call.task is not None:
            call.task.cancel()
        if call.reminder is not None:
            call.reminder.cancel()
        call.task = call.reminder = None
