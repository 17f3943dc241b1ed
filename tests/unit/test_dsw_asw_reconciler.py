"""The reconciler, step by step, on a machine that is a dict."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from nodealloc.dsw_asw import (
    BackOff,
    DeadlineError,
    Done,
    Executor,
    InlineExecutor,
    LivelockError,
    Loop,
    NoProgressError,
    Outcome,
    Reconciler,
    Running,
    ShutDownError,
    Step,
    Summary,
    SystemClock,
    ThreadExecutor,
    Uncertain,
    UncertainError,
    WaitTimeoutError,
    World,
)
from nodealloc.errors import RetryableError
from nodealloc.testing.dsw_asw import (
    ManualExecutor,
    RecordingObserver,
    VirtualClock,
    check_clock,
    check_executor,
    check_plan,
    run_to_rest,
)


class Sizes:
    """A domain: keys have sizes; a fault can be put in anywhere."""

    def __init__(self, actual: World[str, int]) -> None:
        self.actual = actual
        self.machine: dict[str, int] = {}
        self.calls = 0
        self.plans = 0
        self.fault: Callable[[str], None] = lambda _key: None
        self.deadline_s: float | None = None
        self.subject: object = None
        self.records = True

    def plan(self, key: str, want: int | None, have: int | None, /) -> Sequence[Step[tuple[str, int | None]]]:
        """Set what differs."""
        self.plans += 1
        if key == "unplannable":
            raise TypeError(key)
        if want == have:
            return []
        return [
            Step(
                scope=(key,),
                verb="set",
                detail=(key, want),
                deadline_s=self.deadline_s,
                subject=str(self.subject),
                phase=0 if want is None else 1,
            )
        ]

    def perform(self, step: Step[tuple[str, int | None]], /) -> None:
        """Fail if told so, or do it."""
        self.calls += 1
        key, want = step.detail
        self.fault(key)
        self.machine.pop(key, None)
        if want is not None:
            self.machine[key] = want

    def settle(self, step: Step[tuple[str, int | None]], outcome: Outcome[None], /) -> None:
        """Record it; -1 is uncertain."""
        key, want = step.detail
        if isinstance(outcome, Done) and self.records:
            self.actual.alter(key, lambda _: want)
        elif isinstance(outcome, Uncertain):
            self.actual.put(key, -1)


def busy_plan(*_: object) -> Sequence[Step[tuple[str, int | None]]]:
    """A planner that cannot."""
    raise RuntimeError("not now")


class Bench:
    """A reconciler of sizes with everything in the test's hand."""

    def __init__(self, executor: Executor | None = None, **options: object) -> None:
        self.desired: World[str, int] = World("desired")
        self.actual: World[str, int] = World("actual")
        self.domain = Sizes(self.actual)
        self.clock = VirtualClock()
        self.executor = ManualExecutor()
        self.observer = RecordingObserver()
        self.reconciler = Reconciler(
            self.domain,
            desired=self.desired,
            actual=self.actual,
            executor=self.executor if executor is None else executor,
            clock=self.clock if executor is None else None,
            observer=self.observer,
            **options,  # type: ignore[arg-type]
        )

    def rest(self) -> None:
        """Let everything happen that is due."""
        run_to_rest(self.reconciler, self.executor, self.clock)


def busy(times: int) -> Callable[[str], None]:
    """Fail so many times, then work."""
    left = [times]

    def fault(_key: str) -> None:
        if left[0]:
            left[0] -= 1
            raise OSError("busy")

    return fault


def test_fakes_keep_the_promises_of_their_protocols() -> None:
    """Clock and executors, fake and real, pass the same checks."""
    check_clock(VirtualClock())
    check_clock(SystemClock())
    manual = ManualExecutor()
    check_executor(manual, manual.run_all)
    check_executor(InlineExecutor())
    check_executor(ThreadExecutor())
    with ThreadPoolExecutor(1) as pool:
        check_executor(pool)


def test_a_change_is_planned_started_and_settled() -> None:
    """One change, one operation, one record; then nothing."""
    bench = Bench()
    bench.desired.put("a", 1)
    assert bench.reconciler.reconcile().started == 1
    assert bench.reconciler.reconcile().is_idle
    bench.executor.run_all()
    assert bench.reconciler.reconcile().done == 1
    assert bench.domain.machine == {"a": 1}
    assert bench.reconciler.reconcile().is_idle
    assert check_plan(bench.domain, "a", 1, 1) == []


def test_one_change_plans_one_key_among_many() -> None:
    """Work is proportional to change, not to what is there."""
    bench = Bench()
    for number in range(500):
        bench.desired.put(str(number), 1)
    bench.rest()
    plans = bench.domain.plans
    bench.desired.put("7", 2)
    bench.rest()
    assert bench.domain.plans - plans == 2


def test_lower_phases_start_first() -> None:
    """What frees comes before what takes, across keys."""
    bench = Bench()
    bench.desired.put("old", 1)
    bench.rest()
    bench.desired.put("new", 1)
    bench.desired.drop("old")
    bench.observer.starts.clear()
    bench.domain.calls = 0
    bench.reconciler.reconcile()
    assert bench.observer.starts == ["set old", "set new"]


def test_back_off_doubles_and_ends_with_success() -> None:
    """0.5, 1, 2 seconds; a success forgets them."""
    bench = Bench()
    bench.domain.fault = busy(3)
    bench.desired.put("a", 1)
    moments: list[float] = []
    for _ in range(3):
        bench.reconciler.run_until_quiet()
        bench.executor.run_all()
        summary = bench.reconciler.run_until_quiet()
        assert summary.failed == 1
        assert summary.next_due_s is not None
        moments.append(summary.next_due_s - bench.clock.monotonic_s())
        assert bench.reconciler.failures("a")[0].tries == len(moments)
        bench.clock.advance(moments[-1])
    assert moments == [0.5, 1.0, 2.0]
    bench.rest()
    assert bench.domain.machine == {"a": 1}
    assert bench.reconciler.failures("a") == ()


def test_an_error_that_names_its_wait_is_obeyed() -> None:
    """`RetryableError.after_s` is a lower bound of the back-off."""
    bench = Bench()

    def fault(_key: str) -> None:
        raise RetryableError("later", after_s=30.0)

    bench.domain.fault = fault
    bench.desired.put("a", 1)
    bench.reconciler.reconcile()
    bench.executor.run_all()
    assert bench.reconciler.reconcile().next_due_s == 30.0


def test_back_off_dies_with_its_subject() -> None:
    """Another subject, or a key that went away, starts afresh."""
    bench = Bench()
    bench.domain.fault = busy(2)
    bench.desired.put("a", 1)
    bench.reconciler.reconcile()
    bench.executor.run_all()
    bench.reconciler.reconcile()
    bench.desired.put("a", 2)
    assert bench.reconciler.reconcile().held_off == 1
    bench.domain.subject = "another pod"
    bench.desired.put("a", 3)
    assert bench.reconciler.reconcile().started == 1
    bench.executor.run_all()
    bench.reconciler.reconcile()
    bench.desired.drop("a")
    bench.reconciler.reconcile()
    assert bench.reconciler.failures("a") == ()
    bench.desired.put("a", 1)
    assert bench.reconciler.reconcile().started == 1


def test_retry_now_skips_the_wait() -> None:
    """A caller that mended the cause need not wait."""
    bench = Bench()
    bench.domain.fault = busy(1)
    bench.desired.put("a", 1)
    bench.reconciler.reconcile()
    bench.executor.run_all()
    bench.reconciler.reconcile()
    bench.reconciler.retry_now("a")
    assert bench.reconciler.reconcile().started == 1


def test_one_operation_at_a_time_for_a_key() -> None:
    """A change during an operation waits for its end, then is done."""
    bench = Bench()
    bench.desired.put("a", 1)
    bench.reconciler.reconcile()
    bench.desired.put("a", 2)
    assert bench.reconciler.reconcile().blocked == 1
    assert len(bench.executor) == 1
    bench.rest()
    assert bench.domain.machine == {"a": 2}


def test_a_deadline_makes_the_result_uncertain_and_a_late_end_certain() -> None:
    """The scope stays closed while the call hangs; others go on; its end is settled."""
    bench = Bench()
    bench.domain.deadline_s = 10.0
    bench.desired.put("hangs", 1)
    bench.reconciler.reconcile()
    bench.desired.put("works", 1)
    bench.reconciler.reconcile()
    # Waiting in the executor's queue does not count.
    bench.clock.advance(10.0)
    assert bench.reconciler.reconcile().uncertain == 0

    began = threading.Event()
    go_on = threading.Event()

    def fault(key: str) -> None:
        if key == "hangs":
            began.set()
            assert go_on.wait(10)

    bench.domain.fault = fault
    worker = threading.Thread(target=bench.executor.run)
    worker.start()
    assert began.wait(10)
    bench.executor.run_all()
    bench.clock.advance(10.0)
    assert bench.reconciler.reconcile().uncertain == 1
    assert bench.actual.get("hangs") == -1
    assert bench.actual.get("works") == 1
    assert isinstance(bench.reconciler.failures("hangs")[0].error, DeadlineError)
    bench.clock.advance(60.0)
    assert bench.reconciler.reconcile().started == 0
    assert bench.reconciler.running()[0].verb == "set"
    go_on.set()
    worker.join()
    bench.rest()
    assert bench.actual.get("hangs") == 1
    assert bench.reconciler.failures("hangs") == ()


def test_an_adapter_can_say_that_it_does_not_know() -> None:
    """`UncertainError` is recorded as uncertain and driven to a known state."""
    bench = Bench()
    tries = busy(1)

    def fault(key: str) -> None:
        try:
            tries(key)
        except OSError as error:
            raise UncertainError("timed out", after_s=0.0) from error

    bench.domain.fault = fault
    bench.desired.put("a", 1)
    bench.reconciler.reconcile()
    bench.executor.run_all()
    assert bench.reconciler.reconcile().uncertain == 1
    assert bench.actual.get("a") == -1
    bench.rest()
    assert bench.actual.get("a") == 1


def test_success_without_progress_is_held_off() -> None:
    """A settle that records nothing costs a try a back-off, not a hot loop."""
    bench = Bench()
    bench.domain.records = False
    bench.desired.put("a", 1)
    bench.reconciler.run_until_quiet()
    bench.executor.run_all()
    assert bench.reconciler.run_until_quiet().held_off == 1
    assert isinstance(bench.reconciler.failures("a")[0].error, NoProgressError)
    assert bench.domain.calls == 1


def test_a_plan_that_raises_stops_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    """The fault is that key's alone, logged and held off."""
    bench = Bench()
    with caplog.at_level(logging.ERROR, "nodealloc.dsw_asw"):
        bench.desired.put("unplannable", 1)
        bench.desired.put("a", 1)
        bench.reconciler.run_until_quiet()
    bench.executor.run_all()
    bench.reconciler.run_until_quiet()
    assert bench.domain.machine == {"a": 1}
    assert bench.reconciler.failures("unplannable")[0].verb == "plan"
    assert "unplannable" in caplog.text


def test_a_plan_that_failed_once_is_not_held_off_for_ever() -> None:
    """As soon as the key can be planned again, nothing is left of the failure."""
    bench = Bench()
    plan = bench.domain.plan
    bench.domain.plan = busy_plan  # type: ignore[method-assign]
    bench.desired.put("a", 1)
    assert bench.reconciler.run_until_quiet().held_off == 1
    bench.domain.plan = plan  # type: ignore[method-assign]
    due_s = bench.reconciler.failures("a")[0].due_s
    bench.clock.advance(due_s)
    assert bench.reconciler.run_until_quiet().started == 1
    assert bench.reconciler.failures("a") == ()
    summary = bench.reconciler.reconcile()
    assert bench.observer.summaries[-1] is summary


def test_a_settle_or_observer_that_raises_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """Both are logged; the step that could not be settled is held off."""
    bench = Bench()
    settle = bench.domain.settle

    def broken(step: Step[tuple[str, int | None]], outcome: Outcome[None], /) -> None:
        if step.detail[0] == "a":
            raise RuntimeError("settle")
        settle(step, outcome)

    bench.domain.settle = broken  # type: ignore[method-assign]
    bench.observer.starts = ()  # type: ignore[assignment]
    with caplog.at_level(logging.ERROR, "nodealloc.dsw_asw"):
        bench.desired.put("a", 1)
        bench.desired.put("b", 1)
        bench.reconciler.run_until_quiet()
        bench.executor.run_all()
        bench.reconciler.run_until_quiet()
    assert bench.actual.get("b") == 1
    assert isinstance(bench.reconciler.failures("a")[0].error, RuntimeError)
    assert "an observer raised" in caplog.text


def test_an_executor_that_refuses_is_tried_again() -> None:
    """A full or closed executor is a failure like any other."""

    class Refusing:
        def submit(self, *_: object, **__: object) -> Future[object]:
            raise RuntimeError("no more threads")

    bench = Bench(Refusing())  # type: ignore[arg-type]
    bench.desired.put("a", 1)
    assert bench.reconciler.reconcile().failed == 1
    assert "no more threads" in str(bench.reconciler.failures("a")[0])


def test_steps_that_undo_each_other_are_found() -> None:
    """A plan and its results that chase each other raise instead of spinning."""
    bench = Bench(InlineExecutor())

    def chase(_step: object, _outcome: object, /) -> None:
        bench.actual.alter("a", lambda have: -2 if have == -3 else -3)

    bench.domain.settle = chase  # type: ignore[method-assign]
    bench.desired.put("a", 1)
    with pytest.raises(LivelockError, match="after 50 passes"):
        bench.reconciler.run_until_quiet(passes=50)


def test_resync_finds_what_no_event_told_of() -> None:
    """Every key is planned again after the interval, in batches, without a call for those in line."""
    bench = Bench(resync_s=60.0)
    for number in range(1500):
        bench.desired.put(str(number), 1)
    bench.rest()
    calls, plans = bench.domain.calls, bench.domain.plans
    assert not bench.reconciler.has_work
    bench.clock.advance(60.0)
    summary = bench.reconciler.run_until_quiet()
    assert summary.passes > 2
    assert bench.domain.plans - plans >= 1500
    assert bench.domain.calls == calls


def test_a_wait_names_what_is_missing_and_why() -> None:
    """Only the keys that lack something, each with its last error."""
    bench = Bench()
    bench.domain.fault = lambda key: busy(1)(key) if key == "a" else None
    bench.desired.put("a", 1)
    bench.desired.put("b", 1)
    wait = bench.reconciler.wait(["a", "b", "a"], lacks)
    bench.reconciler.reconcile()
    bench.executor.run_all()
    bench.reconciler.reconcile()
    with pytest.raises(WaitTimeoutError) as caught:
        wait.result(0.0)
    assert [one.key for one in caught.value.missing] == ["a"]
    assert "a: has None, wants 1; last error: set: busy (1 try)" in str(caught.value)
    elsewhere = bench.reconciler.wait(["a"], lacks, scope=lambda key: (f"{key}-elsewhere",))
    assert [(one.what, one.failures) for one in elsewhere.missing()] == [("has None, wants 1", ())]


def test_a_wait_ends_when_the_last_key_is_in_line() -> None:
    """Also when it was so before, and for no keys at all."""
    bench = Bench()
    bench.desired.put("a", 1)
    wait = bench.reconciler.wait(["a"], lacks)
    assert not wait.is_over
    bench.rest()
    wait.result(0.0)
    bench.reconciler.wait_until(["a"], lacks, timeout_s=0.0)
    bench.reconciler.wait_until([], lacks, timeout_s=0.0)


def test_the_loop_sleeps_until_something_changes() -> None:
    """In a thread: a change is carried out, and an idle loop makes no pass."""
    bench = Bench(ThreadExecutor(), resync_s=None)
    with Loop(bench.reconciler):
        bench.desired.put("a", 1)
        bench.reconciler.wait_until(["a"], lacks, timeout_s=10.0)
        bench.reconciler.wait_for_work(0.05)
        passes = len(bench.observer.summaries)
        time.sleep(0.1)
        assert len(bench.observer.summaries) == passes > 0
    assert bench.domain.machine == {"a": 1}


def test_asyncio_hosts_wait_without_blocking() -> None:
    """`result_async` ends on success, and names what is missing on time-out."""
    bench = Bench(ThreadExecutor(), resync_s=None)

    async def host() -> str:
        bench.desired.put("a", 1)
        await bench.reconciler.wait(["a"], lacks).result_async(10.0)
        with pytest.raises(WaitTimeoutError) as caught:
            await bench.reconciler.wait(["never"], lambda *_: "never there").result_async(0.01)
        return str(caught.value)

    with Loop(bench.reconciler):
        assert "never: never there" in asyncio.run(host())


def test_closing_reports_what_hangs_and_cancels_what_has_not_begun() -> None:
    """One worker hangs; the queued one never runs; waiters are told."""
    hang = threading.Event()
    pool = ThreadPoolExecutor(1)
    bench = Bench(pool)
    began = threading.Event()

    def fault(_key: str) -> None:
        began.set()
        hang.wait(10)

    bench.domain.fault = fault
    loop = Loop(bench.reconciler)
    loop.start()
    bench.desired.put("a", 1)
    assert began.wait(10)
    bench.desired.put("b", 1)
    wait = bench.reconciler.wait(["b"], lacks)
    running = loop.stop(0.05)
    assert [one.scope for one in running] == [("a",)]
    with pytest.raises(ShutDownError):
        wait.result(1.0)
    with pytest.raises(ShutDownError):
        bench.reconciler.wait_until(["b"], lacks)
    hang.set()
    assert bench.reconciler.close(10.0) == ()
    assert bench.domain.calls == 1
    assert bench.actual.get("a") == 1
    assert "still running: set a" in str(ShutDownError(running))
    pool.shutdown()


def test_listeners_hear_of_work_and_can_leave() -> None:
    """What an event loop hangs its wake-up on."""
    bench = Bench()
    heard: list[int] = []
    leave = bench.reconciler.add_listener(lambda: heard.append(1))
    bench.desired.put("a", 1)
    bench.desired.put("b", 1)
    assert heard == [1]
    bench.reconciler.reconcile()
    leave()
    bench.desired.put("c", 1)
    assert heard == [1]
    bench.reconciler.add_listener(lambda: heard.append(2))
    assert heard == [1, 2]


def test_back_off_refuses_nonsense_and_does_not_overflow() -> None:
    """A million failures wait as long as the longest wait."""
    assert BackOff().after(10**6) == 122.0
    with pytest.raises(ValueError, match="factor"):
        BackOff(factor=0.5)


def lacks(_key: str, want: int | None, have: int | None) -> str:
    """What the tests wait for."""
    return "" if want == have else f"has {have}, wants {want}"


def test_a_loop_gives_running_operations_the_time_that_it_was_told() -> None:
    """At the end of its block, or what the caller of `stop` says; a pass that raises ends nothing."""

    class Passing:
        def __init__(self) -> None:
            self.timeouts: list[float] = []
            self.closed = threading.Event()
            self.raised = threading.Event()

        def reconcile(self) -> Summary:
            self.raised.set()
            raise ArithmeticError("a pass")

        def wait_for_work(self, timeout_s: float | None = None, /) -> bool:
            return self.closed.wait(timeout_s)

        def close(self, timeout_s: float = 0.0, /) -> tuple[Running, ...]:
            self.timeouts.append(timeout_s)
            self.closed.set()
            return ()

    passing = Passing()
    with Loop(passing, name="a name", stop_timeout_s=0.25):
        assert passing.raised.wait(10)
        assert "a name" in [thread.name for thread in threading.enumerate()]
    other = Loop(passing, stop_timeout_s=0.25)
    other.start()
    other.stop(0.5)
    assert passing.timeouts == [0.25, 0.5]
