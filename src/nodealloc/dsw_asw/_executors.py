"""Executors beside those of `concurrent.futures`."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import Empty, SimpleQueue
from typing import ParamSpec, TypeVar, cast

from nodealloc._typed import typed
from nodealloc.dsw_asw._operations import Operation
from nodealloc.dsw_asw._ports import Executor
from nodealloc.dsw_asw._steps import Step
from nodealloc.errors import ConfigurationError

__all__ = ["FewAtOnce", "InlineExecutor", "ThreadExecutor"]

_LINGERS_S = 0.1
"""How long a thread waits for another call. To start one takes longer than most calls, and a pass hands
over hundreds."""

P = ParamSpec("P")
T = TypeVar("T")


class InlineExecutor:
    """Runs a call at once, on the thread that submits it: for steps that never block."""

    def submit(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run it; the future is done when this returns."""
        future = Future[T]()
        _fill(future, lambda: call(*args, **kwargs))
        return future


class ThreadExecutor:
    """A thread for every call, as the kubelet starts a goroutine for every operation.

    No pool to run dry: a hundred calls that hang delay no other one. A thread whose
    call has ended takes the next that comes within 0.1 s, and ends else. Threads
    are daemons, so one that hangs in the kernel does not keep the program from
    ending. May be used from any thread.

    Args:
        name: Of the threads.
        most: Calls at once; more wait for one that ends, and of those that wait
            steps of a lower phase are first. None for any number. A bound is for
            calls that end by themselves: as many that hang as it allows would keep
            out all others.

    Raises:
        ConfigurationError: `most` is below 1.
    """

    @typed
    def __init__(self, name: str = "operation", *, most: int | None = None) -> None:
        if most is not None and most < 1:
            raise ConfigurationError(f"{most} calls at once would be none: give 1 or more, or None")
        self._name = name
        self._most = most
        self._lock = threading.Lock()
        self._running = 0
        self._waiting: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        # Of each thread that waits for another call, where it waits; the last one is first.
        self._idle: list[SimpleQueue[Callable[[], None]]] = []

    def submit(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Start a thread for it, or leave it to the first that is free."""
        future = Future[T]()

        def work() -> None:
            _fill(future, lambda: call(*args, **kwargs))

        with self._lock:
            if self._idle:
                self._idle.pop().put(work)
                return future
            if self._most is not None and self._running >= self._most:
                heapq.heappush(self._waiting, (_phase_of(*args), next(self._numbers), work))
                return future
            self._running += 1
        try:
            threading.Thread(target=self._work, args=(work,), name=self._name, daemon=True).start()
        except RuntimeError:  # the system gives no more threads
            with self._lock:
                self._running -= 1
            raise
        return future

    def _work(self, work: Callable[[], None]) -> None:
        box: SimpleQueue[Callable[[], None]] = SimpleQueue()
        while True:
            work()
            del work  # with all that hangs on it
            with self._lock:
                if self._waiting:
                    _, _, work = heapq.heappop(self._waiting)
                    continue
                self._idle.append(box)
            try:
                work = box.get(timeout=_LINGERS_S)
            except Empty:
                with self._lock:
                    if box in self._idle:
                        self._idle.remove(box)
                        self._running -= 1
                        return
                work = box.get()  # handed over at this very moment


class FewAtOnce:
    """An executor over another one: of steps that burden the machine a few at once, all others as they come.

    Fifty starts that share two cores all end late; a few at a time end sooner, each
    and all together. One that has not returned after `held_s` counts no longer, so that as many as hang
    keep the others waiting that long, and not for ever. May be used from any thread.

    Args:
        below: Runs them.
        most: How many.
        burdens: From a step to 0 where it does not, else to its place among those that wait, which go
            in the order they came within one place; pure and quick.
        held_s: How long one counts at most, in real seconds.

    Raises:
        ConfigurationError: `most` is below 1.
    """

    @typed
    def __init__(
        self, below: Executor, *, most: int, burdens: Callable[[Step[object]], int], held_s: float = 2.0
    ) -> None:
        if most < 1:
            raise ConfigurationError(f"{most} calls at once would be none: give 1 or more")
        self._below, self._most, self._burdens, self._held_s = below, most, burdens, held_s
        self._changed = threading.Condition()
        self._numbers = itertools.count()
        self._running: dict[int, float] = {}
        self._waiting: list[tuple[int, int]] = []
        self._calls: dict[int, tuple[Callable[[], None], Future[object]]] = {}
        self._is_watched = False

    def submit(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Hand it on, now or when there is room."""
        step = _step_of(*args)
        place = 0 if step is None else self._burdens(step)
        if not place:
            return self._below.submit(call, *args, **kwargs)
        future, number = Future[T](), next(self._numbers)
        work = partial(_fill, future, lambda: call(*args, **kwargs))
        with self._changed:
            self._calls[number] = work, cast("Future[object]", future)
            heapq.heappush(self._waiting, (place, number))
        self._go_on()
        return future

    def _go_on(self) -> None:
        """Hand on all for which there is room, and see to it that somebody comes when there is more."""
        while (due := self._next()) is not None:
            number, work, future = due
            try:
                self._below.submit(self._work, number, work)
            except BaseException as error:  # noqa: BLE001 - its caller hears of it by the future
                self._ended(number)
                if future.set_running_or_notify_cancel():
                    future.set_exception(error)

    def _next(self) -> tuple[int, Callable[[], None], Future[object]] | None:
        with self._changed:
            if not self._waiting:
                return None
            now_s = time.monotonic()
            if sum(began_s + self._held_s > now_s for began_s in self._running.values()) >= self._most:
                if not self._is_watched:
                    threading.Thread(target=self._watch, name="few at once", daemon=True).start()
                    self._is_watched = True
                return None
            _, number = heapq.heappop(self._waiting)
            self._running[number] = now_s
            return number, *self._calls.pop(number)

    def _work(self, number: int, work: Callable[[], None]) -> None:
        try:
            work()
        finally:
            self._ended(number)
            self._go_on()

    def _ended(self, number: int) -> None:
        with self._changed:
            self._running.pop(number, None)
            self._changed.notify_all()

    def _watch(self) -> None:
        """Go on when one has been away for too long; ends when nobody waits."""
        while True:
            with self._changed:
                if not self._waiting:
                    self._is_watched = False
                    return
                now_s = time.monotonic()
                ends = [end_s for one in self._running.values() if (end_s := one + self._held_s) > now_s]
                self._changed.wait(min(ends, default=now_s) - now_s)
            self._go_on()


def _phase_of(*args: object) -> int:
    """Of the step that is handed over; 0 for a call that is none of an engine's."""
    step = _step_of(*args)
    return 0 if step is None else step.phase


def _step_of(*args: object) -> Step[object] | None:
    if not args or not isinstance(args[0], Operation):
        return None
    return cast("Operation[str, object, object]", args[0]).step


def _fill(future: Future[T], call: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001 - whatever it is belongs to the future's reader
        future.set_exception(error)
    else:
        future.set_result(result)
