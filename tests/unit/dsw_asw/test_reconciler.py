"""The reconciler, pass by pass, on a machine that is a dict."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

import attrs
import pytest

from nodealloc.dsw_asw import (
    BackOff,
    DeadlineError,
    InlineExecutor,
    LivelockError,
    NoProgressError,
    Outcome,
    Plan,
    SystemClock,
    ThreadExecutor,
    UncertainError,
    View,
)
from nodealloc.errors import RetryableError
from nodealloc.testing.devices import wait_until
from nodealloc.testing.dsw_asw import ManualExecutor, VirtualClock, check_clock, check_executor, check_plan
from tests.unit.dsw_asw_sizes import Bench, Detail, Sizes, SizeStep, SizeView, busy


def busy_plan(*_: object) -> Plan[int, Detail]:
    """A planner that cannot."""
    raise RuntimeError("not now")


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


def test_a_thread_takes_the_next_call_that_comes_soon() -> None:
    """A hundred quick calls, one after the other, take few threads, two at once two; later none is left."""
    executor, ran = ThreadExecutor("quick calls"), set[int]()

    def there() -> int:
        return sum(one.name == "quick calls" for one in threading.enumerate())

    for _ in range(100):
        ran.add(executor.submit(threading.get_ident).result(10.0))
        time.sleep(0.001)  # the future is done a moment before the thread looks for more
    assert len(ran) < 10
    together = threading.Barrier(2)
    both = [executor.submit(together.wait, 10.0) for _ in range(2)]
    assert sorted(one.result(10.0) for one in both) == [0, 1]
    wait_until(lambda: there() == 0, what="threads end")
    assert executor.submit(lambda: 7).result(10.0) == 7


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
    assert check_plan(bench.domain, View(key="a", want=1, have=1)) == Plan()


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


def test_keys_that_share_a_scope_take_turns_and_are_planned_a_few_times_each() -> None:
    """In the order in which they came; who has changed its mind meanwhile keeps nobody waiting."""

    class Shared(Sizes):
        def plan(self, view: SizeView, /) -> Plan[int, Detail]:
            plan = super().plan(view)
            return Plan(steps=[attrs.evolve(one, scope=("disk",)) for one in plan.steps])

    bench = Bench(domain=Shared())
    keys = [str(number) for number in range(100)]
    for key in keys:
        bench.desired.put(key, 1)
    bench.reconciler.reconcile()
    for key in keys[1::3]:
        bench.desired.drop(key)
    bench.reconciler.reconcile()
    bench.rest()
    left = [key for key in keys if key not in keys[1::3]]
    assert list(bench.domain.machine) == left
    assert bench.domain.plans <= 4 * len(keys)


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
    """A `settled` that records nothing costs a try a back-off, not a hot loop."""
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


def test_a_settled_or_observer_that_raises_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """Both are logged; the step that could not be settled is held off."""
    bench = Bench()
    settled = bench.domain.settled

    def broken(have: int | None, step: SizeStep, outcome: Outcome[None], /) -> int | None:
        if step.detail[0] == "a":
            raise RuntimeError("settled")
        return settled(have, step, outcome)

    bench.domain.settled = broken  # type: ignore[method-assign]
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

    def chase(have: int | None, _step: object, _outcome: object, /) -> int | None:
        return -2 if have == -3 else -3

    bench.domain.settled = chase  # type: ignore[method-assign]
    bench.desired.put("a", 1)
    with pytest.raises(LivelockError, match="after 50 passes"):
        bench.reconciler.run_until_quiet(passes=50)


def test_a_reconciler_that_forgoes_resyncs_needs_an_event() -> None:
    """What no event told of stays as it is, however long it takes: a test sees that a wake-up was lost."""
    bench = Bench(resync_s=60.0)
    bench.desired.put("a", 1)
    bench.rest()
    plans = bench.domain.plans
    bench.reconciler.forgo_resync()
    bench.clock.advance(600.0)
    bench.reconciler.run_until_quiet()
    assert bench.domain.plans == plans
    assert bench.reconciler.seconds_to_next() is None


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


def test_back_off_refuses_nonsense_and_does_not_overflow() -> None:
    """A million failures wait as long as the longest wait."""
    assert BackOff().after(10**6) == 122.0
    assert BackOff(factor=1e6).after(10**6) == 122.0
    with pytest.raises(ValueError, match="factor"):
        BackOff(factor=0.5)
