"""A part that pods that come are asked for one after the other, in the order in which they came."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Final, ParamSpec, TypeVar

from nodealloc.dsw_asw import Executor
from nodealloc.dsw_asw._executors import step_of
from nodealloc.podlife._details import MakeReady

__all__ = ["InOrder"]

_PATIENCE_S: Final = 1.0

P = ParamSpec("P")
T = TypeVar("T")


class InOrder:
    """An executor over another one, and the line of those whose part is asked for in order.

    Threads that begin one after the other do not go on like that: of two pods that do not fit together
    the one that came first is to come in. Each has its place from when its step is handed over until its
    part was asked for, or the step has ended. Who has waited for so long that one before it must hang waits
    for none of those any more, nor does anybody else. Thread-safe.

    Args:
        below: Runs calls; begins those of a line in the order in which they were handed over.
        part: Name of the preparation.
        patience_s: How long one waits for those before it, in real seconds.

    Source: kubelet ``kubelet.go`` (`HandlePodAdditions`), where one thread admits all pods.
    """

    def __init__(self, below: Executor, *, part: str, patience_s: float = _PATIENCE_S) -> None:
        self.part = part
        self._below, self._patience_s = below, patience_s
        self._numbers = itertools.count(1)
        self._moved = threading.Condition()
        self._line: dict[int, str] = {}  # the first is the lowest
        self._places: dict[str, int] = {}
        self._expected: dict[str, int] = {}

    def expect(self, uids: Iterable[str], /) -> None:
        """Have a place for each of these pods, which were here before, until it comes."""
        for uid in uids:
            self._expected[uid] = self._line_up(uid)

    def expect_no_more(self, uids: Iterable[str], /) -> None:
        """These do not come."""
        for uid in uids:
            number = self._expected.pop(uid, None)
            if number is not None:
                self._leave(number)

    def submit(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Hand it on; where it makes the part ready for a pod that comes, that pod lines up."""
        step = step_of(*args)
        number = self._place_of(step.detail) if step and isinstance(step.detail, MakeReady) else None
        if number is None:
            return self._below.submit(call, *args, **kwargs)
        try:
            future = self._below.submit(call, *args, **kwargs)
        except BaseException:
            self._leave(number)
            raise
        future.add_done_callback(partial(self._ended, number))
        return future

    def _place_of(self, detail: MakeReady) -> int | None:
        """The place of a pod that comes: its own where it was expected, else the last one."""
        uid = detail.pod.uid
        number = self._expected.pop(uid, None) if self.part in detail.names else None
        if number is not None and number in self._line:
            return number
        return self._line_up(uid) if number is not None or self.part in detail.new else None

    @contextmanager
    def turn(self, uid: str, /) -> Generator[None, None, None]:
        """Wait for those before a pod; those behind it go on afterwards."""
        number = self._places.get(uid)
        if number is None:
            yield
            return
        with self._moved:
            if not self._moved.wait_for(lambda: next(iter(self._line), number) >= number, self._patience_s):
                for one in [one for one in self._line if one < number]:
                    self._drop(one)
                self._moved.notify_all()
        try:
            yield
        finally:
            self._leave(number)

    def _line_up(self, uid: str) -> int:
        with self._moved:
            number = next(self._numbers)
            self._line[number] = uid
            self._places[uid] = number
            return number

    def _ended(self, number: int, _future: Future[T]) -> None:
        self._leave(number)

    def _leave(self, number: int) -> None:
        with self._moved:
            self._drop(number)
            self._moved.notify_all()

    def _drop(self, number: int) -> None:
        uid = self._line.pop(number, None)
        if uid is not None and self._places.get(uid) == number:
            del self._places[uid]
