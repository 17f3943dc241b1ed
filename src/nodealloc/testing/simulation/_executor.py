"""An executor that a seed drives: order, latency, and everything that executors do wrong."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import ParamSpec, TypeVar

from nodealloc.dsw_asw import Cancel
from nodealloc.testing.simulation._chance import Chance
from nodealloc.testing.simulation._clock import SimulatedClock
from nodealloc.testing.simulation._threads import Left, SimulatedThread, SimulatedThreads

__all__ = ["STRAY", "Killed", "LastingExecutor", "Rest", "SeededExecutor"]

STRAY = frozenset({"executor refuses late", "executor is interrupted", "executor doubles"})
"""Faults after which a call begins although nobody waits for it, perhaps long after others were asked for."""

P = ParamSpec("P")
T = TypeVar("T")


class Killed(BaseException):  # no error: nothing is left that could handle it
    """The process ended at this call."""


class Rest:
    """What a call waits for that somebody outside ends; until then it is neither late nor hangs."""

    def __init__(self) -> None:
        self._is_over = False
        self._go_on: Callable[[], None] = lambda: None

    @property
    def is_over(self) -> bool:
        """Whether it was ended."""
        return self._is_over

    def end(self) -> None:
        """Let the call go on."""
        self._is_over = True
        self._go_on()

    def follow(self, go_on: Callable[[], None], /) -> None:
        """Call this when it is ended."""
        self._go_on = go_on


class SeededExecutor:
    """An `Executor` in virtual time: calls begin late, in any order, and may take their time.

    Faults, by name: `executor refuses`, `executor refuses late` (it raised,
    and runs the call all the same), `executor is interrupted` (Ctrl-C in
    `submit`), `executor drops`, `executor cancels`, `executor doubles`,
    `executor is late`. With `executor runs at once` it runs the call in
    `submit`, and with `call takes time` on a thread of its own, where `pause`
    lets virtual time pass.

    Args:
        clock: Virtual time.
        chance: Which faults strike, and what order calls begin in.
        threads: Where calls that take time run.
        latency_s: Mean seconds from `submit` to the beginning.
    """

    def __init__(
        self, clock: SimulatedClock, chance: Chance, threads: SimulatedThreads, *, latency_s: float = 0.05
    ) -> None:
        self._clock = clock
        self._chance = chance
        self._threads = threads
        self._latency_s = latency_s
        self._due: list[tuple[float, float, int, Callable[[], None]]] = []
        self._number = 0
        self._current: SimulatedThread | None = None
        self._paused: dict[SimulatedThread, int] = {}
        self._resting: set[SimulatedThread] = set()
        self._is_over = False

    @property
    def next_due_s(self) -> float | None:
        """When the next call begins or goes on; None when nothing is queued."""
        return self._due[0][0] if self._due else None

    @property
    def is_ready(self) -> bool:
        """Whether a call is due now."""
        return bool(self._due) and self._due[0][0] <= self._clock.monotonic_s()

    @property
    def paused(self) -> int:
        """Calls that began and have not ended, but for those that rest."""
        return len(self._paused) - len(self._resting)

    @property
    def resting(self) -> int:
        """Calls that wait for somebody outside, as streams do between two messages."""
        return len(self._resting)

    def submit(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Queue it, or do something else that executors do."""
        return self.submit_to(self._begin, partial(call, *args, **kwargs))

    def submit_to(self, begin: Callable[[Callable[[], None]], None], call: Callable[[], T], /) -> Future[T]:
        """The same, for a call that begins in a way of its own."""
        strikes = self._chance.strikes
        if self._is_over:
            raise Killed
        if strikes("executor refuses"):
            raise RuntimeError("can't start new thread")
        future = Future[T]()
        job = partial(begin, partial(_fill, future, call))
        if strikes("executor refuses late"):
            self._queue(job)
            raise RuntimeError("cannot schedule new futures after shutdown")
        if strikes("executor is interrupted"):
            self._queue(job)
            raise KeyboardInterrupt
        if strikes("executor drops"):
            return future
        if strikes("executor cancels"):
            self._at(self._after(), partial(_cancel, future))
            return future
        if strikes("executor runs at once"):
            _fill(future, call)
            return future
        if strikes("executor doubles"):
            self._queue(partial(begin, partial(_fill, Future[object](), call)))
        self._queue(job)
        return future

    def run_next(self) -> bool:
        """Begin or continue the call that is due; False when none is."""
        if not self.is_ready:
            return False
        heapq.heappop(self._due)[3]()
        return True

    def pause(self, seconds: float, cancel: Cancel | None = None, /) -> None:
        """Let the call that runs take its time; an infinite one hangs.

        Returns early when `cancel` is set. A call that is not on a thread takes no time.
        """
        thread = self._current
        if self._is_over:
            raise Killed
        if thread is None:
            return
        turn = self._paused[thread] = self._paused[thread] + 1
        go_on = partial(self._go_on, thread, turn)
        if math.isfinite(seconds):
            self._at(self._clock.monotonic_s() + seconds, go_on)
        leave = None if cancel is None else cancel.on_cancel(partial(self._at_once, go_on))
        self._current = None
        thread.pause()
        if leave is not None:
            leave()

    def rest(self, rest: Rest, /) -> None:
        """Let the call that runs wait for somebody outside; it was submitted to a `LastingExecutor`."""
        thread = self._current
        if self._is_over:
            raise Killed
        if thread is None:
            raise RuntimeError("a call that waits for somebody outside needs a LastingExecutor")
        if rest.is_over:
            return
        turn = self._paused[thread] = self._paused[thread] + 1
        self._resting.add(thread)
        rest.follow(partial(self._wake, thread, turn))
        self._current = None
        thread.pause()

    def release(self) -> None:
        """Let every call that hangs go on soon."""
        for thread, turn in tuple(self._paused.items()):
            if thread not in self._resting:
                self._at_once(partial(self._go_on, thread, turn))

    def _wake(self, thread: SimulatedThread, turn: int) -> None:
        if self._paused.get(thread) == turn:
            self._resting.discard(thread)
            self._at_once(partial(self._go_on, thread, turn))

    def kill(self) -> None:
        """The process ended: what is queued never runs, what runs goes no further."""
        self._is_over = True
        self._due.clear()

    def bury(self) -> None:
        """End what a killed process left where it is; nobody may be in the middle of a call of it."""
        self._resting.clear()
        while self._paused:
            thread, _ = self._paused.popitem()
            if thread is not self._current:
                thread.resume(Killed())

    def _queue(self, job: Callable[[], None]) -> None:
        due_s = self._after()
        if self._chance.strikes("executor is late"):
            due_s += self._chance.rng.uniform(10.0, 400.0)
        self._at(due_s, job)

    def _after(self) -> float:
        rng = self._chance.rng
        return self._clock.monotonic_s() + (
            rng.expovariate(1.0) * self._latency_s if self._latency_s else 0.0
        )

    def _at(self, due_s: float, call: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._due, (due_s, self._chance.rng.random(), self._number, call))

    def _at_once(self, call: Callable[[], None]) -> None:
        if not self._is_over:
            self._at(self._clock.monotonic_s(), call)

    def _begin(self, job: Callable[[], None]) -> None:
        if self._chance.strikes("call takes time"):
            self.begin_on_strand(job)
        else:
            job()

    def begin_on_strand(self, job: Callable[[], None], /) -> None:
        """Begin a call in which time may pass."""
        ahead = self._threads.ahead
        thread = self._current = self._threads.take() if ahead is None else ahead
        self._paused[thread] = 0

        def run() -> None:
            job()
            self._paused.pop(thread, None)

        if ahead is None:
            thread.begin(run)
        else:
            run()
            if not thread.takes_turns:
                raise Left
        self._current = None

    def _go_on(self, thread: SimulatedThread, turn: int) -> None:
        # It may have gone on before, because somebody asked it to stop.
        if self._paused.get(thread) == turn:
            self._paused[thread] += 1
            self._current = thread
            thread.resume()
            self._current = None


class LastingExecutor:
    """The same executor for calls that last, such as those that follow a stream: time may pass in each.

    Args:
        executor: It.
    """

    def __init__(self, executor: SeededExecutor) -> None:
        self._executor = executor

    def submit(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """See `SeededExecutor.submit`."""
        return self._executor.submit_to(self._executor.begin_on_strand, partial(call, *args, **kwargs))


def _fill(future: Future[T], call: Callable[[], T]) -> None:
    if future.set_running_or_notify_cancel():
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001 - whatever it is belongs to the future's reader
            future.set_exception(error)
        else:
            future.set_result(result)


def _cancel(future: Future[T]) -> None:
    future.cancel()
