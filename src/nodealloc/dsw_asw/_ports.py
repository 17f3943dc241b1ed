"""Protocols that the engine calls: time, somebody to run slow work, a domain, an onlooker."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

from nodealloc.dsw_asw._steps import Outcome, Step

if TYPE_CHECKING:
    from nodealloc.dsw_asw._summary import Summary

__all__ = ["Clock", "Domain", "Executor", "Observer"]

P = ParamSpec("P")
T = TypeVar("T")
K_contra = TypeVar("K_contra", bound=Hashable, contravariant=True)
D_contra = TypeVar("D_contra", contravariant=True)
A_contra = TypeVar("A_contra", contravariant=True)
S = TypeVar("S")
R = TypeVar("R")


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


class Domain(Protocol[K_contra, D_contra, A_contra, S, R]):
    """What the engine reconciles: the rules of volumes, of plugins, of cpusets."""

    def plan(self, key: K_contra, desired: D_contra | None, actual: A_contra | None, /) -> Sequence[Step[S]]:
        """The next steps for a key, from its two records; None where one is absent.

        A pure function: no clock, no I/O, no world, the same answer for the
        same arguments. Empty means that the key is in line. Steps whose scope
        is closed or that are held off by back-off are passed over and planned
        anew when that ends, so there is nothing to remember.
        """
        ...

    def perform(self, step: Step[S], /) -> R:
        """Do a step; called on a worker, never twice at a time within a scope.

        May be called again for a step that failed or whose end nobody saw.
        Raise any exception for "not done"; raise `UncertainError` where it may
        have been done.
        """
        ...

    def settle(self, step: Step[S], outcome: Outcome[R], /) -> None:
        """Write what came of a step into the actual world; quick, no I/O.

        Called on the thread that reconciles, one at a time. A `Done` that
        changes no record counts as "no progress" and is held off like a
        failure, so that a planner that asks for it for ever costs little.
        """
        ...


class Observer(Protocol):
    """Progress, for log lines and counters; an exception of it is logged and dropped."""

    def started(self, step: Step[object], /) -> None:
        """An operation was handed to the executor."""
        ...

    def ended(self, step: Step[object], outcome: Outcome[object], took_s: float, /) -> None:
        """An operation ended, or passed its deadline (`Uncertain.still_running`)."""
        ...

    def passed(self, summary: Summary, /) -> None:
        """A pass is over; an idle loop makes none."""
        ...
