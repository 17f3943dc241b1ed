"""Exchanges that share one thread: whoever waits for an answer waits for all of them."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import logging
import select
import selectors
import socket
from collections.abc import Callable
from typing import Final, Generic, TypeVar, cast

from nodealloc._error_words import error_words
from nodealloc._logged import logged
from nodealloc.probes._exchange import LONGEST_S
from nodealloc.probes._ports import Exchange
from nodealloc.probes._replies import Reply, ReplyKind

__all__ = ["Sockets"]

T = TypeVar("T")

_log = logging.getLogger("nodealloc.probes")
_ENOUGH: Final = 64
"""Bytes of wake-ups that are read at a time; all of them say the same."""
_STEP_S: Final = 0.005
"""In which a near host has taken the next step of a handshake, or the next request."""
_MOST_STEPS: Final = 20
_GOES_ON: Final = "no answer in time, and the prober goes on"
_MASKS: Final = {
    selectors.EVENT_READ: select.EPOLLIN,
    selectors.EVENT_WRITE: select.EPOLLOUT,
    selectors.EVENT_READ | selectors.EVENT_WRITE: select.EPOLLIN | select.EPOLLOUT,
}


class _Running(Generic[T]):
    """One exchange under way."""

    __slots__ = ("awaits", "events", "exchange", "fd", "is_new", "socket", "token", "until_s")

    def __init__(self, exchange: Exchange, token: T, until_s: float) -> None:
        self.exchange, self.token, self.until_s = exchange, token, until_s
        self.socket: socket.socket | None = None
        self.awaits: socket.socket | None = None
        self.events = 0
        self.fd = -1
        self.is_new = True


class Sockets(Generic[T]):
    """Exchanges under way; everything but `wake` belongs to one thread.

    Args:
        ended: Is told what came of each exchange, by its token.
    """

    def __init__(self, ended: Callable[[T, Reply], None]) -> None:
        self._ended = ended
        # Used as it is: `selectors` looks through all that are registered when one was closed.
        self._epoll = select.epoll()
        self._by_fd: dict[int, _Running[T]] = {}
        self._running: dict[T, _Running[T]] = {}
        self._ends: list[tuple[float, int, _Running[T]]] = []
        self._sent: list[_Running[T]] = []
        self._numbers = itertools.count()
        self._hears, self._says = socket.socketpair()
        for end in (self._hears, self._says):
            end.settimeout(0)
        self._hears_fd = self._hears.fileno()
        self._epoll.register(self._hears_fd, select.EPOLLIN)
        self._woken = False

    def __len__(self) -> int:
        return len(self._running)

    def wake(self) -> None:
        """Have `turn` return; from any thread."""
        if not self._woken:
            self._woken = True
            try:
                self._says.send(b"!")
            except BlockingIOError:  # full, so that it is awake
                pass
            except OSError:  # no memory just now, so that the next word is to be said; or closed
                self._woken = False

    def begin(self, token: T, exchange: Exchange, until_s: float, /) -> None:
        """Send a question on its way; it may have ended when this returns."""
        running = _Running(exchange, token, until_s)
        self._running[token] = running
        self._go_on(running, late=False)
        if self._running.get(token) is running:
            heapq.heappush(self._ends, (until_s, next(self._numbers), running))

    def drop(self, token: T, /) -> None:
        """Nobody wants to hear of it any more."""
        running = self._running.pop(token, None)
        if running is not None:
            self._leave(running)
            _end(running.exchange)

    def next_end_s(self) -> float | None:
        """When the next one runs out of time."""
        while self._ends and self._running.get(self._ends[0][2].token) is not self._ends[0][2]:
            heapq.heappop(self._ends)
        return self._ends[0][0] if self._ends else None

    def turn(self, timeout_s: float | None, now_s: Callable[[], float], /) -> None:
        """Wait for sockets, at most so many seconds; what came is looked at before the time is.

        Whoever has just begun to wait for an answer is looked at without waiting: by the next
        turn a near host has answered, and the kernel need not be asked to watch for it. Who has
        taken a step and waits for the next one is looked at again in the same turn: between
        two turns the thread sleeps, and what is asked in many steps would run out of time.
        """
        sent, self._sent = self._sent, []
        steps = self._looked(0.0 if sent else timeout_s)
        for running in sent:
            if self._running.get(running.token) is running:
                asked = running.awaits
                self._go_on(running, late=False)
                steps |= running.awaits is not asked
        for _ in range(_MOST_STEPS):
            if not steps:
                break
            steps = self._looked(_STEP_S)
        while (end_s := self.next_end_s()) is not None and end_s <= now_s():
            running = heapq.heappop(self._ends)[2]
            self._go_on(running, late=True)
            if self._running.get(running.token) is running:
                _end(running.exchange)
                self._over(running, Reply(ReplyKind.FAILURE, _GOES_ON, timed_out=True))

    def _looked(self, timeout_s: float | None) -> bool:
        """Wait for sockets, at most so many seconds; whether one that was ready waits for more."""
        steps = False
        for fd, _ in self._epoll.poll(None if timeout_s is None else min(max(0.0, timeout_s), LONGEST_S)):
            if fd == self._hears_fd:
                with contextlib.suppress(OSError):
                    while self._hears.recv(_ENOUGH):
                        pass
                # Only now: a word that comes before it is taken off as well would be the last one heard.
                self._woken = False
            elif (waiting := self._by_fd.get(fd)) is not None:  # else it went in this very turn
                self._go_on(waiting, late=False)
                steps |= self._running.get(waiting.token) is waiting
        return steps

    def close(self) -> None:
        """End all of them; nobody is told."""
        for token in tuple(self._running):
            self.drop(token)
        self._epoll.close()
        self._hears.close()
        self._says.close()

    def _go_on(self, running: _Running[T], *, late: bool) -> None:
        """Let it run to where it waits, or to its end."""
        try:
            one, events = running.exchange.throw(TimeoutError()) if late else next(running.exchange)
            self._wait_for(running, one, events)
        except StopIteration as done:
            self._over(running, cast("Reply", done.value))
        except Exception as error:  # noqa: BLE001 - one prober's fault is an error of its own probe
            _end(running.exchange)
            self._over(running, Reply(ReplyKind.ERROR, error_words(error)))

    def _wait_for(self, running: _Running[T], one: socket.socket, events: int) -> None:
        running.awaits = one
        if running.is_new and events == selectors.EVENT_READ:
            running.is_new = False
            self._sent.append(running)
            return
        running.is_new = False
        if running.socket is one:
            if running.events != events:
                self._epoll.modify(running.fd, _MASKS[events])
        else:
            self._leave(running)
            running.fd = one.fileno()
            try:
                self._epoll.register(running.fd, _MASKS[events])
            except FileExistsError:  # TLS took the socket before over, as the kernel watches it
                self._epoll.modify(running.fd, _MASKS[events])
            self._by_fd[running.fd] = running
        running.socket, running.events = one, events

    def _over(self, running: _Running[T], reply: Reply) -> None:
        del self._running[running.token]
        if running.socket is not None:
            self._leave(running)
        self._ended(running.token, reply)

    def _leave(self, running: _Running[T]) -> None:
        """Wait for its socket no more. By the time an exchange has ended, the kernel has forgotten it."""
        one, running.socket = running.socket, None
        if one is None:
            return
        if self._by_fd.get(running.fd) is running:
            del self._by_fd[running.fd]
        if one.fileno() == running.fd:
            with contextlib.suppress(OSError):
                self._epoll.unregister(running.fd)


def _end(exchange: Exchange) -> None:
    """End an exchange that nobody waits for any more."""
    logged(_log, exchange.close, "a prober's exchange did not end well; it is over all the same")
