"""Protocols that the engine calls: time, and somebody to run slow work."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec, Protocol, TypeVar

__all__ = ["Clock", "Executor"]

P = ParamSpec("P")
T = TypeVar("T")


class Clock(Protocol):
    """Time as the engine sees it; `nodealloc.testing` has one that stands still."""

    def monotonic_s(self) -> float:
        """Seconds since some fixed moment; never goes back."""
        ...


class Executor(Protocol):
    """Runs slow work elsewhere; any `concurrent.futures.Executor` is one."""

    def submit(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Start `call` some time soon; its result or exception is in the future."""
        ...
