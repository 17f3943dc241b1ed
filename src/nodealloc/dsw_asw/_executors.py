"""Two executors beside those of `concurrent.futures`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

__all__ = ["InlineExecutor", "ThreadExecutor"]

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

    No pool to run dry: a hundred calls that hang delay no other one. Threads
    are daemons, so one that hangs in the kernel does not keep the program from
    ending. May be used from any thread.
    """

    def __init__(self, name: str = "operation") -> None:
        self._name = name

    def submit(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Start a thread for it."""
        future = Future[T]()
        threading.Thread(
            target=_fill, args=(future, lambda: call(*args, **kwargs)), name=self._name, daemon=True
        ).start()
        return future


def _fill(future: Future[T], call: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001 - whatever it is belongs to the future's reader
        future.set_exception(error)
    else:
        future.set_result(result)
