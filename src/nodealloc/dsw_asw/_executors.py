"""Two executors beside those of `concurrent.futures`, and what all of ours do with a call."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import ParamSpec, TypeVar, cast

from nodealloc._typed import typed
from nodealloc.dsw_asw._operations import Operation
from nodealloc.dsw_asw._steps import Step
from nodealloc.errors import ConfigurationError

__all__ = ["InlineExecutor", "ThreadExecutor", "fill", "step_of"]

_LINGERS_S = 0.1
"""How long a thread waits for another call. To start one takes longer than most calls, and a pass hands
over hundreds."""
_LAST_LINGERS_S = 15.0
"""The same for the last one that waits: of what an engine does every few seconds, starting the thread
would be most of the work."""

P = ParamSpec("P")
T = TypeVar("T")


class InlineExecutor:
    """Runs a call at once, on the thread that submits it: for steps that never block."""

    def submit(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run it; the future is done when this returns."""
        future = Future[T]()
        fill(future, lambda: call(*args, **kwargs))
        return future


class ThreadExecutor:
    """A thread for every call, as the kubelet starts a goroutine for every operation.

    No pool to run dry: a hundred calls that hang delay no other one. A thread whose
    call has ended takes the next that comes within 0.1 s, the last one within 15 s,
    and ends else. Threads are daemons, so one that hangs in the kernel does not keep the program from
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
            raise ConfigurationError(
                f"ThreadExecutor: {most} calls at once would be none; give 1 or more, or None"
            )
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
            fill(future, lambda: call(*args, **kwargs))

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
                is_first = not self._idle
                self._idle.append(box)
            try:
                work = box.get(timeout=_LAST_LINGERS_S if is_first else _LINGERS_S)
            except Empty:
                with self._lock:
                    if box in self._idle:
                        self._idle.remove(box)
                        self._running -= 1
                        return
                work = box.get()  # handed over at this very moment


def _phase_of(*args: object) -> int:
    """Of the step that is handed over; 0 for a call that is none of an engine's."""
    step = step_of(*args)
    return 0 if step is None else step.phase


def step_of(*args: object) -> Step[object] | None:
    """The step that is handed over; None for a call that is none of an engine's."""
    if not args or not isinstance(args[0], Operation):
        return None
    return cast("Operation[str, object, object]", args[0]).step


def fill(future: Future[T], call: Callable[[], T]) -> None:
    """Run a call whose future nobody cancelled, and give that what came of it."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001 - whatever it is belongs to the future's reader
        future.set_exception(error)
    else:
        future.set_result(result)
