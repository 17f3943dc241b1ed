"""Fakes and checks for the engine: a clock that stands still, an executor that waits to be told.

    clock, executor = VirtualClock(), ManualExecutor()
    reconciler = Reconciler(domain, ..., executor=executor, clock=clock)
    run_to_rest(reconciler, executor, clock)

Nothing here starts a thread or sleeps, so a test of a two-minute back-off
takes microseconds, and an order of events that goes wrong goes wrong again.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from typing import Generic, ParamSpec, TypeVar

from nodealloc import _attrs as attrs
from nodealloc.dsw_asw import (
    Cancel,
    Clock,
    Domain,
    Driven,
    Executor,
    Journal,
    Outcome,
    Plan,
    Step,
    Summary,
    Transitions,
    View,
)

__all__ = [
    "ManualCancel",
    "ManualExecutor",
    "MemoryJournal",
    "RecordingObserver",
    "VirtualClock",
    "check_cancel",
    "check_clock",
    "check_executor",
    "check_journal",
    "check_plan",
    "check_transitions",
    "run_to_rest",
]

P = ParamSpec("P")
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
W = TypeVar("W")
H = TypeVar("H")
S = TypeVar("S")
R = TypeVar("R")
Row = TypeVar("Row")
State = TypeVar("State", bound=enum.Enum)
Event = TypeVar("Event", bound=enum.Enum)


class VirtualClock:
    """A `Clock` that stands still until it is told to advance."""

    def __init__(self, now_s: float = 0.0) -> None:
        self._now_s = now_s

    def monotonic_s(self) -> float:
        """The moment that was set."""
        return self._now_s

    def advance(self, seconds: float, /) -> None:
        """Let time pass; raises `ValueError` for going back."""
        if seconds < 0:
            raise ValueError(f"a monotonic clock does not go back by {-seconds:g} s; advance by 0 or more")
        self._now_s += seconds


class ManualExecutor:
    """An `Executor` that queues calls until a test runs them, in the order that the test likes.

    A call that is left in the queue is one that hangs.
    """

    def __init__(self) -> None:
        self._queue: list[tuple[Callable[[], bool], Callable[[], None]]] = []

    def __len__(self) -> int:
        return sum(not done() for done, _ in self._queue)

    def submit(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Queue it."""
        future = Future[T]()

        def run() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    result = call(*args, **kwargs)
                except Exception as error:  # noqa: BLE001 - belongs to the future's reader
                    future.set_exception(error)
                else:
                    future.set_result(result)

        self._queue.append((future.done, run))
        return future

    def run(self, at: int = 0, /) -> bool:
        """Run the call at this place of the queue, modulo its length; False when it is empty."""
        self._queue = [(done, run) for done, run in self._queue if not done()]
        if not self._queue:
            return False
        self._queue.pop(at % len(self._queue))[1]()
        return True

    def run_all(self) -> int:
        """Run what is queued, oldest first, with what that queues; how many calls ran."""
        count = 0
        while self.run():
            count += 1
        return count


class ManualCancel:
    """A `Cancel` that a test sets by hand."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._calls: list[Callable[[], None]] = []

    def is_set(self) -> bool:
        """Whether `set` was called."""
        return self._event.is_set()

    def wait(self, timeout_s: float | None = None, /) -> bool:
        """Block until `set` is called, at most so many real seconds."""
        return self._event.wait(timeout_s)

    def on_cancel(self, call: Callable[[], None], /) -> Callable[[], None]:
        """Have `call` called by `set`, or now if that was called."""
        if self._event.is_set():
            call()
        else:
            self._calls.append(call)
        return lambda: self._calls.remove(call) if call in self._calls else None

    def set(self) -> None:
        """Ask the call to stop."""
        self._event.set()
        calls, self._calls = self._calls, []
        for call in calls:
            call()


class MemoryJournal(Generic[Row]):
    """A `Journal` in memory.

    Attributes:
        rows: What was committed and not forgotten.
        commits: Each commit that went well, in order.
        fault: Called before each commit; raises for one that fails.
    """

    def __init__(self, rows: Mapping[str, Row] | None = None) -> None:
        self.rows: dict[str, Row] = dict(rows or {})
        self.commits: list[Mapping[str, Row | None]] = []
        self.fault: Callable[[], None] = lambda: None

    def commit(self, changes: Mapping[str, Row | None], /) -> None:
        """All of them, unless `fault` raises."""
        self.fault()
        self.commits.append(dict(changes))
        for name, row in changes.items():
            if row is None:
                self.rows.pop(name, None)
            else:
                self.rows[name] = row


@attrs.define
class RecordingObserver:
    """An `Observer` that keeps what it is told.

    Attributes:
        starts: `verb scope` of each operation that started.
        ends: `verb scope` and the outcome of each that ended.
        summaries: One a pass.
    """

    starts: list[str] = attrs.field(factory=list[str])
    ends: list[tuple[str, Outcome[object]]] = attrs.field(factory=list[tuple[str, Outcome[object]]])
    summaries: list[Summary] = attrs.field(factory=list[Summary])

    def started(self, step: Step[object], /) -> None:
        """Keep the step's verb and scope."""
        self.starts.append(_named(step))

    def ended(self, step: Step[object], outcome: Outcome[object], took_s: float, /) -> None:
        """Keep the outcome; a negative time fails."""
        assert took_s >= 0, f"{_named(step)} took {took_s} s"
        self.ends.append((_named(step), outcome))

    def passed(self, summary: Summary, /) -> None:
        """Keep the summary."""
        self.summaries.append(summary)


def run_to_rest(
    reconciler: Driven,
    executor: ManualExecutor,
    clock: VirtualClock,
    *,
    within_s: float = 3600.0,
) -> Summary:
    """Make passes, run operations and let time pass, until nothing is left to do.

    Jumps from one due time to the next, `within_s` virtual seconds at most, so
    that back-off is waited out and a resync of a world in line is not.

    Raises:
        AssertionError: Something is still being tried when the time is over.
    """
    until_s = clock.monotonic_s() + within_s
    total = reconciler.run_until_quiet()
    while True:
        while executor.run_all():
            total += reconciler.run_until_quiet()
        if not (total.held_off or total.running) or total.next_due_s is None:
            return total
        assert total.next_due_s <= until_s, f"still {total.held_off} steps held off after {within_s:g} s"
        clock.advance(max(0.0, total.next_due_s - clock.monotonic_s()))
        total += reconciler.run_until_quiet()


def check_clock(clock: Clock, /) -> None:
    """Hold a clock to its promise: it never goes back."""
    moments = [clock.monotonic_s() for _ in range(1000)]
    assert moments == sorted(moments), "the clock went back"


def check_executor(executor: Executor, run: Callable[[], object] = lambda: None, /) -> None:
    """Hold an executor to its promise: results, exceptions and callbacks arrive.

    Args:
        executor: What to check.
        run: Makes a queueing executor run what it holds.
    """
    told = threading.Event()
    ran: list[int] = []
    good = executor.submit(int, "101", base=2)
    counted = executor.submit(ran.append, 1)
    good.add_done_callback(lambda _: told.set())
    broken = executor.submit(int, "one hundred and one")
    run()
    assert good.result(timeout=10) == 5, "the future has another result than the call"
    counted.result(timeout=10)
    assert ran == [1], f"one call was submitted, and ran {len(ran)} times"
    assert isinstance(broken.exception(timeout=10), ValueError), "what the call raised is not in its future"
    assert told.wait(10), "nobody was told of the end"


def check_cancel(cancel: Cancel, ask: Callable[[], object], /) -> None:
    """Hold a cancellation to its promise: asked once, everybody hears of it, early or late.

    Args:
        cancel: What to check; nobody has asked yet.
        ask: Asks it to stop.
    """
    heard: list[str] = []
    assert not cancel.is_set(), "it is set before anybody asked"
    assert cancel.wait(0.0) is False, "it waited for nothing, and says that it was asked"
    cancel.on_cancel(lambda: heard.append("early"))
    cancel.on_cancel(lambda: heard.append("left"))()
    assert heard == [], "a call was told before anybody asked"
    ask()
    assert cancel.is_set(), "it was asked, and does not say so"
    assert cancel.wait(10.0), "it was asked, and does not say so to whoever waits"
    assert heard == ["early"], f"of two calls one left before it was asked; {heard} were told"
    cancel.on_cancel(lambda: heard.append("late"))()
    assert heard == ["early", "late"], "a call that came after it was asked was not told"


def check_journal(
    journal: Journal[Row],
    read: Callable[[], Mapping[str, Row]],
    rows: tuple[Row, Row],
    /,
    bad: Row | None = None,
) -> None:
    """Hold a journal to its promise: all rows of a commit are there when it returns, or none when it raises.

    Args:
        journal: What to check; empty.
        read: Its rows as the next process would find them.
        rows: Two rows that differ.
        bad: A row that it has to refuse, if there is one.
    """
    one, other = rows
    journal.commit({"a": one, "b": other})
    assert dict(read()) == {"a": one, "b": other}, "what was committed is not there"
    journal.commit({"a": None, "b": one, "c": other})
    assert dict(read()) == {"b": one, "c": other}, "of one commit not everything is there"
    if bad is not None:
        try:
            journal.commit({"b": other, "d": bad})
        except Exception:  # noqa: BLE001 - how it refuses is its own affair
            assert dict(read()) == {"b": one, "c": other}, "a refused commit changed something"
        else:
            raise AssertionError(f"a row that is to be refused was taken: {bad!r}")


def check_plan(domain: Domain[K, W, H, S, R], view: View[K, W, H, S], /) -> Plan[H, S]:
    """Hold one plan to the promise of purity: the same answer twice, each step with a scope of its own.

    Args:
        domain: Whose plan.
        view: What it looks at.

    Returns:
        The plan.
    """
    first, second = domain.plan(view), domain.plan(view)
    assert isinstance(first, Plan), f"plan of {view.key!r} answered {first!r}, which is no Plan"
    assert first == second, f"plan of {view.key!r} differs between two calls"
    names = [(step.scope, step.verb) for step in first.steps]
    assert len(set(names)) == len(names), f"plan of {view.key!r} has one step twice: {names}"
    return first


def check_transitions(
    table: Transitions[State, Event],
    /,
    *,
    ends: Sequence[State] = (),
    drive: Callable[[Sequence[Event]], State] | None = None,
) -> int:
    """Walk a table exhaustively: every state that can be reached, every event in it.

    Args:
        table: What to walk.
        ends: States that nothing leads out of; every other one has a way back
            to the start.
        drive: Does these events to the real thing, from its start, and returns
            the state that it is in; compared with the table.

    Returns:
        How many (state, event) pairs were tried.
    """
    paths = table.paths()
    lost = [state for state in table.states if state not in paths]
    assert not lost, f"{table.name}: no events lead to {lost}"
    for state in table.states:
        way_back = attrs.evolve(table, start=state).paths()
        assert state in ends or table.start in way_back, f"{table.name}: no way back from {state}"
    tried = 0
    for state, path in paths.items():
        for event in table.events:
            expected = table.after(state, event)
            assert table.takes(state, event) or expected is state, f"{state} does not take {event} and leaves"
            assert state not in ends or not table.takes(state, event), f"{state} is no end: it takes {event}"
            if drive is not None:
                got = drive([*path, event])
                assert got is expected, f"{table.name}: {event} in {state} led to {got}, not to {expected}"
            tried += 1
    return tried


def _named(step: Step[object]) -> str:
    return f"{step.verb} {'/'.join(map(str, step.scope))}"
