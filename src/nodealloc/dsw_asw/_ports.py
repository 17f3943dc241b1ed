"""Protocols that the engine calls: time, somebody to run slow work, a domain, a journal, an onlooker."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, ParamSpec, Protocol

from typing_extensions import TypeVar

from nodealloc.dsw_asw._plans import Plan, View
from nodealloc.dsw_asw._steps import Done, Failed, Outcome, Step, Uncertain

if TYPE_CHECKING:
    from nodealloc.dsw_asw._summary import Summary

__all__ = ["Cancel", "Clock", "Domain", "Executor", "Journal", "Observer"]

P = ParamSpec("P")
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
W_contra = TypeVar("W_contra", contravariant=True)
H = TypeVar("H")
S = TypeVar("S", default=None)
R = TypeVar("R", default=None)
Row_contra = TypeVar("Row_contra", contravariant=True)


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


class Cancel(Protocol):
    """What a running call asks whether it should stop; `nodealloc.testing` has one to set by hand."""

    def is_set(self) -> bool:
        """Whether the call was asked to stop."""
        ...

    def wait(self, timeout_s: float | None = None, /) -> bool:
        """Block until asked to stop, at most so many real seconds; whether it was."""
        ...

    def on_cancel(self, call: Callable[[], None], /) -> Callable[[], None]:
        """Have `call` called when asked to stop, on any thread; returns what ends it."""
        ...


class Domain(Protocol[K, W_contra, H, S, R]):
    """What the engine reconciles: the rules of volumes, of plugins, of cpusets.

    `Domain[K, W, H]` has steps that need nothing besides their key and bring no result;
    `Domain[K, W, H, S]` has steps with a detail.
    """

    def plan(self, view: View[K, W_contra, H, S], /) -> Plan[H, S]:
        """The next steps for a key.

        A pure function: no clock, no I/O, no world, the same answer for the
        same view. It is called when a record of the key or of its `Near` keys
        changes, when a step of it ends, when `again_at_s` has come, and now and
        then without a reason.
        """
        ...

    def perform(self, step: Step[S], cancel: Cancel, /) -> R | Done[R] | Failed[R] | Uncertain[R] | Future[R]:
        """Do a step; called on a worker, never twice at a time within a scope.

        A future gives the worker back at once, and the step lasts until it is done: what
        waits for somebody else needs no thread. It is cancelled when the step should stop.

        May be called again for a step that failed or whose end nobody saw.
        Raise any exception for "not done", `UncertainError` where it may have
        been done; return `Failed` or `Uncertain` where there is more to tell, and `Done`
        where a step that `may_change_nothing` rests for a time that shows only now.
        A long call looks at `cancel`, and raises `CancelledError` (of
        `concurrent.futures`) when it stopped because of it.
        """
        ...

    def settled(self, have: H | None, step: Step[S], outcome: Outcome[R], /) -> H | None:
        """The key's record after a step, from its record before; None where nothing is left.

        A pure function, quick. The engine writes what it returns. A `Done` that
        changes nothing counts as "no progress" and is held off like a failure,
        unless the step `may_change_nothing`.
        """
        ...


class Journal(Protocol[Row_contra]):
    """Remembers: a store of `nodealloc.checkpoint` is one."""

    def commit(self, changes: Mapping[str, Row_contra | None], /) -> object:
        """Write rows, and forget those that are None: all of them or, raising, none.

        When it returns they survive a crash.
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
