"""An executor that goes easy on the machine: of steps that burden it a few at once."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import ParamSpec, TypeVar, cast

from nodealloc._typed import typed
from nodealloc.dsw_asw._executors import fill, step_of
from nodealloc.dsw_asw._ports import Executor
from nodealloc.dsw_asw._steps import Step
from nodealloc.errors import ConfigurationError

__all__ = ["FewAtOnce"]

P = ParamSpec("P")
T = TypeVar("T")


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
            raise ConfigurationError(f"FewAtOnce: {most} calls at once would be none; give 1 or more")
        self._below, self._most, self._burdens, self._held_s = below, most, burdens, held_s
        self._changed = threading.Condition()
        self._numbers = itertools.count()
        self._running: dict[int, float] = {}
        self._waiting: list[tuple[int, int]] = []
        self._calls: dict[int, tuple[Callable[[], None], Future[object]]] = {}
        self._is_watched = False

    def submit(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Hand it on, now or when there is room."""
        step = step_of(*args)
        place = 0 if step is None else self._burdens(step)
        if not place:
            return self._below.submit(call, *args, **kwargs)
        future, number = Future[T](), next(self._numbers)
        work = partial(fill, future, lambda: call(*args, **kwargs))
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
                    # Without a thread to be had, those that run hand the others on as they end.
                    with contextlib.suppress(RuntimeError):
                        threading.Thread(target=self._watch, name="few at once", daemon=True).start()
                        self._is_watched = True
                return None
            _, number = heapq.heappop(self._waiting)
            if not self._waiting:
                self._changed.notify_all()
            self._running[number] = now_s
            return number, *self._calls.pop(number)

    def _work(self, number: int, work: Callable[[], None]) -> None:
        """Run one, whose faults its future has, and then the next on the same thread: waking others costs."""
        while True:
            try:
                work()
            finally:
                self._ended(number)
            if (due := self._next()) is None:
                return
            number, work, _ = due
            self._go_on()

    def _ended(self, number: int) -> None:
        with self._changed:
            self._running.pop(number, None)

    def _watch(self) -> None:
        """Go on when one has been away for too long; ends when nobody waits."""
        while True:
            with self._changed:
                if not self._waiting:
                    self._is_watched = False
                    return
                now_s = time.monotonic()
                ends = [end_s for one in self._running.values() if (end_s := one + self._held_s) > now_s]
                # Whoever ends goes on by itself, and whoever begins later is to be waited for longer.
                self._changed.wait(min(ends, default=now_s) - now_s)
            self._go_on()
