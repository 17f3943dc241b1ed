"""Whatever is called may raise, lie or hang: it costs its own key, no key is forgotten, memory stays flat."""

from __future__ import annotations

import gc
import logging
import os
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import cast

import attrs
import pytest

from nodealloc.dsw_asw import (
    BackOff,
    BadPlanError,
    Cancel,
    CancelledOperationError,
    InlineExecutor,
    NotTakenUpError,
    Outcome,
    Plan,
    RestlessPlanError,
    Step,
    ThreadExecutor,
    WaitTimeoutError,
    World,
)
from nodealloc.dsw_asw._operations import Operation, Operations
from nodealloc.dsw_asw._timers import Timer
from nodealloc.errors import ConfigurationError
from tests.unit.dsw_asw_sizes import Bench, Detail, Sizes, SizeStep, SizeView, lacks


def interrupting(times: int) -> Callable[[str], None]:
    """Ctrl-C so many times, then work."""
    left = [times]

    def fault(_key: str) -> None:
        if left[0]:
            left[0] -= 1
            raise KeyboardInterrupt

    return fault


def test_a_call_that_cancels_itself_is_tried_again() -> None:
    """`perform` raised CancelledError though nobody asked: a failure with a back-off, not a lost key."""
    bench = Bench(resync_s=None)
    left = [CancelledError()]

    def fault(_key: str) -> None:
        if left:
            raise left.pop()

    bench.domain.fault = fault
    bench.desired.put("a", 1)
    bench.reconciler.run_until_quiet()
    bench.executor.run_all()
    summary = bench.reconciler.run_until_quiet()
    assert (summary.cancelled, summary.held_off) == (1, 1)
    assert isinstance(bench.reconciler.failures("a")[0].error, CancelledOperationError)
    bench.rest()
    assert bench.domain.machine == {"a": 1}


def test_a_call_that_its_executor_cancelled_is_tried_again() -> None:
    """The future was cancelled before a worker took it up: the key is held off, and comes back."""
    futures: list[Future[object]] = []

    class Cancelling:
        def submit(self, call: Callable[..., object], /, *args: object, **options: object) -> Future[object]:
            futures.append(Future())
            if len(futures) == 1:
                return futures[0]
            return InlineExecutor().submit(call, *args, **options)

    bench = Bench(Cancelling(), resync_s=None, back_off=BackOff(initial_s=0.0))  # type: ignore[arg-type]
    bench.desired.put("a", 1)
    bench.reconciler.run_until_quiet()
    assert futures[0].cancel()
    bench.reconciler.run_until_quiet()
    assert bench.domain.machine == {"a": 1}
    assert len(futures) == 2


def test_a_pool_that_is_shut_down_forgets_no_key() -> None:
    """`shutdown(cancel_futures=True)` under a running engine: what was queued is a failure, and shown."""
    pool, hang, began = ThreadPoolExecutor(1), threading.Event(), threading.Event()
    bench = Bench(pool, resync_s=None)

    def fault(_key: str) -> None:
        began.set()
        hang.wait(10)

    bench.domain.fault = fault
    for key in "abc":
        bench.desired.put(key, 1)
    bench.reconciler.reconcile()
    assert began.wait(10)
    pool.shutdown(wait=False, cancel_futures=True)
    hang.set()
    pool.shutdown()
    bench.reconciler.run_until_quiet()
    assert bench.actual.get("a") == 1
    for key in "bc":
        (failure,) = bench.reconciler.failures(key)
        assert isinstance(failure.error, CancelledOperationError)
        assert "set was cancelled" in str(failure.error)


def raising_steps(step: Step[Detail]) -> Iterator[Step[Detail]]:
    """Steps that end in an error."""
    yield step
    raise ArithmeticError("half way")


def twisted(**changes: object) -> Callable[[Step[Detail]], object]:
    """A plan of a step with something in it that no type checker would let pass."""
    evolve = cast("Callable[..., Step[Detail]]", attrs.evolve)
    return lambda step: Plan(steps=[evolve(step, **changes)])


class Vicious:
    """Compares with nothing."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise TypeError("not comparable")


@pytest.mark.parametrize(
    "answer",
    [
        lambda _: None,
        lambda step: [step],
        lambda _: Plan(steps=cast("list[Step[Detail]]", ["rubbish"])),
        lambda step: Plan(steps=raising_steps(step)),
        lambda step: Plan(steps=[step], again_at_s=float("nan")),
        lambda step: Plan(steps=[step], again_at_s=cast("float", "soon")),
        lambda step: Plan(steps=[step], have=cast("int", Vicious())),
        lambda step: Plan(steps=[step], cancel=cast("bool", 7)),
        twisted(scope=([],)),
        twisted(scope="whole"),
        twisted(verb=[]),
        twisted(phase="high"),
        twisted(subject=[]),
        twisted(deadline_s="long"),
    ],
)
def test_one_bad_answer_costs_its_own_key_alone(
    answer: Callable[[Step[Detail]], object], caplog: pytest.LogCaptureFixture
) -> None:
    """Nonsense of every kind from `plan` is a failure of that key, and nobody else waits for it."""

    class Bad(Sizes):
        def plan(self, view: SizeView, /) -> Plan[int, Detail]:
            if view.key == "bad" and view.want == 1:
                step = Step(scope=(view.key,), verb="set", detail=(view.key, view.want))
                return cast("Plan[int, Detail]", answer(step))
            return super().plan(view)

    bench = Bench(domain=Bad(), resync_s=None)
    with caplog.at_level(logging.CRITICAL, "nodealloc.dsw_asw"):
        for key in ["bad", *map(str, range(20))]:
            bench.desired.put(key, 1)
        bench.reconciler.run_until_quiet()
        bench.executor.run_all()
        bench.reconciler.run_until_quiet()
    assert bench.domain.machine == {str(number): 1 for number in range(20)}
    assert bench.reconciler.failures("bad")
    bench.desired.put("bad", 2)
    bench.rest()
    assert bench.domain.machine["bad"] == 2


def test_details_that_do_not_compare_cost_their_key_alone() -> None:
    """Whether a step runs already is asked of its detail, and the answer may be an error."""

    class Bad(Sizes):
        def plan(self, view: SizeView, /) -> Plan[int, Detail]:
            plan = super().plan(view)
            if view.key != "bad":
                return plan
            return Plan(steps=[attrs.evolve(one, detail=cast("Detail", Vicious())) for one in plan.steps])

    bench = Bench(domain=Bad(), resync_s=None)
    bench.desired.put("bad", 1)
    bench.reconciler.run_until_quiet()
    bench.desired.put("bad", 2)
    bench.desired.put("a", 1)
    assert bench.reconciler.run_until_quiet().started == 1
    assert str(bench.reconciler.failures("bad")[0].error) == "not comparable"


def test_details_that_do_not_compare_with_one_that_rests_cost_their_key_alone() -> None:
    """Whether a step rests is asked of its detail, too: others start, and passes go on."""

    class Bad(Sizes):
        def plan(self, view: SizeView, /) -> Plan[int, Detail]:
            plan = super().plan(view)
            if view.key != "bad":
                return plan
            return Plan(
                steps=[
                    attrs.evolve(one, detail=cast("Detail", Vicious()), may_change_nothing=True)
                    for one in plan.steps
                ]
            )

        def perform(self, step: SizeStep, cancel: Cancel, /) -> None:
            if not isinstance(cast("object", step.detail), Vicious):
                super().perform(step, cancel)

        def settled(self, have: int | None, step: SizeStep, outcome: Outcome[None], /) -> int | None:
            if isinstance(cast("object", step.detail), Vicious):
                return have
            return super().settled(have, step, outcome)

    bench = Bench(InlineExecutor(), domain=Bad(), resync_s=None)
    bench.desired.put("bad", 1)
    bench.reconciler.run_until_quiet()
    bench.desired.put("a", 1)
    bench.reconciler.run_until_quiet()
    assert bench.domain.machine == {"a": 1}
    assert str(bench.reconciler.failures("bad")[0].error) == "not comparable"


def test_a_bad_answer_is_shown() -> None:
    """The error says what was answered, and what to answer."""
    bench = Bench()
    bench.domain.plan = lambda _: None  # type: ignore[method-assign, assignment, return-value]
    bench.desired.put("a", 1)
    bench.reconciler.run_until_quiet()
    error = bench.reconciler.failures("a")[0].error
    assert isinstance(error, BadPlanError)
    assert error.answer == "None"
    assert "answer a Plan" in str(error)


def test_a_plan_that_never_rests_is_held_off() -> None:
    """A record that each plan changes again costs its key, and no endless pass."""

    class Restless(Sizes):
        def plan(self, view: SizeView, /) -> Plan[int, Detail]:
            return Plan(have=(view.have or 0) + 1)

    bench = Bench(domain=Restless(), resync_s=None)
    bench.desired.put("a", 1)
    bench.reconciler.run_until_quiet(passes=500)
    error = bench.reconciler.failures("a")[0].error
    assert isinstance(error, RestlessPlanError)
    assert error.times > 10


def test_a_restless_plan_is_asked_again_after_its_back_off() -> None:
    """A change in between does not shorten it."""
    plans: list[int] = []

    class Restless(Sizes):
        def plan(self, view: SizeView, /) -> Plan[int, Detail]:
            plans.append(1)
            return Plan(have=(view.have or 0) + 1)

    bench = Bench(domain=Restless(), resync_s=None)
    bench.desired.put("a", 1)
    bench.reconciler.run_until_quiet(passes=500)
    count = len(plans)
    bench.desired.put("a", 2)
    bench.reconciler.run_until_quiet()
    assert len(plans) == count
    bench.clock.advance(1.0)
    bench.reconciler.run_until_quiet(passes=500)
    assert len(plans) > count


def test_a_failure_of_what_nobody_wants_any_more_is_forgotten() -> None:
    """Two longest waits after it was due, nothing is left of it."""
    bench = Bench(resync_s=None, back_off=BackOff(max_s=10.0))
    bench.domain.fault = lambda _: busy_once()
    bench.desired.put("a", 1)
    bench.reconciler.run_until_quiet()
    bench.executor.run_all()
    bench.reconciler.run_until_quiet()
    bench.actual.put("a", 1)
    bench.reconciler.run_until_quiet()
    assert bench.reconciler.failures("a")
    bench.clock.advance(20.5)
    bench.reconciler.run_until_quiet()
    assert bench.reconciler.failures("a") == ()
    assert bench.reconciler.seconds_to_next() is None


def busy_once() -> None:
    """Fail."""
    raise OSError("busy")


def test_a_call_that_never_began_and_whose_future_failed_is_a_failure() -> None:
    """An executor that ends a future with an error of its own has not performed the step."""
    futures: list[Future[object]] = []

    class Broken:
        def submit(self, *_: object, **__: object) -> Future[object]:
            futures.append(Future())
            return futures[0]

    bench = Bench(Broken(), resync_s=None)  # type: ignore[arg-type]
    bench.desired.put("a", 1)
    bench.reconciler.run_until_quiet()
    futures[0].set_exception(RuntimeError("the pool is broken"))
    assert bench.reconciler.run_until_quiet().failed == 1
    assert "the pool is broken" in str(bench.reconciler.failures("a")[0])


def test_a_pass_from_within_a_pass_does_nothing() -> None:
    """A call on the thread of the pass may say that there is work; the next pass does it."""
    bench = Bench(InlineExecutor(), resync_s=None)
    seen: list[int] = []

    def fault(_key: str) -> None:
        bench.desired.put("b", 2)
        seen.append(bench.reconciler.reconcile().planned)

    bench.domain.fault = fault
    bench.desired.put("a", 1)
    bench.reconciler.run_until_quiet()
    assert seen == [0, 0]
    assert bench.domain.machine == {"a": 1, "b": 2}
    assert "a" in bench.actual


def test_a_listener_that_raises_keeps_no_other_from_hearing(caplog: pytest.LogCaptureFixture) -> None:
    """The value is stored, the put returns, later listeners and other engines hear of it."""
    world: World[str, int] = World("w")
    heard: list[str] = []

    def broken() -> None:
        raise RuntimeError("the loop is closed")

    world.watch(broken)
    world.watch(lambda: heard.append("world"))
    bench = Bench()
    bench.reconciler.add_listener(broken)
    bench.reconciler.add_listener(lambda: heard.append("engine"))
    with caplog.at_level(logging.ERROR, "nodealloc.dsw_asw"):
        assert world.put("a", 1).generation == 1
        bench.desired.put("a", 1)
    assert heard == ["world", "engine"]
    assert caplog.text.count("raised; it is called again") == 2
    bench.rest()
    assert bench.domain.machine == {"a": 1}


def test_ctrl_c_around_a_pass_forgets_no_key() -> None:
    """In a plan, a `settled`, and on the thread of the pass in `perform`."""
    bench = Bench(InlineExecutor(), resync_s=None, back_off=BackOff(initial_s=0.0))
    plan, settled, calls = bench.domain.plan, bench.domain.settled, list[str]()

    def stopping(name: str) -> None:
        calls.append(name)
        if calls.count(name) in {7, 13}:
            raise KeyboardInterrupt(name)

    def planning(view: SizeView, /) -> Plan[int, Detail]:
        stopping("plan")
        return plan(view)

    def settling(*given: object) -> int | None:
        stopping("settled")
        return settled(*given)  # type: ignore[arg-type]

    bench.domain.plan = planning  # type: ignore[method-assign]
    bench.domain.settled = settling  # type: ignore[method-assign]
    bench.domain.fault = lambda _: stopping("perform")
    for number in range(20):
        bench.desired.put(str(number), 1)
    interrupts = 0
    for _ in range(20):
        try:
            bench.reconciler.run_until_quiet()
        except KeyboardInterrupt:
            interrupts += 1
    assert interrupts == 6
    # A call that was interrupted may have been done: uncertain, and held off for a second.
    doubted = [key for key, record in bench.actual.snapshot().items() if record.value == -1]
    assert len(doubted) == 2
    for key in doubted:
        bench.reconciler.retry_now(key)
    bench.reconciler.run_until_quiet()
    assert bench.domain.machine == {str(number): 1 for number in range(20)}
    assert sorted(bench.actual.snapshot()) == sorted(bench.domain.machine)


def test_ctrl_c_in_an_executor_forgets_no_key() -> None:
    """`submit` is interrupted before and after it queued the call: nothing runs that nobody knows of."""

    class Interrupted(InlineExecutor):
        def __init__(self) -> None:
            self.calls = 0
            self.queued: list[Callable[[], object]] = []

        def submit(self, call: Callable[..., object], /, *args: object, **options: object) -> Future[object]:  # type: ignore[override]
            self.calls += 1
            if self.calls in {3, 7}:
                self.queued.append(lambda: call(*args, **options))
                raise KeyboardInterrupt
            return super().submit(call, *args, **options)

    executor = Interrupted()
    bench = Bench(executor, resync_s=None)  # type: ignore[arg-type]
    for number in range(20):
        bench.desired.put(str(number), 1)
    interrupts = 0
    for _ in range(20):
        try:
            bench.reconciler.run_until_quiet()
        except KeyboardInterrupt:
            interrupts += 1
    assert interrupts == 2
    assert bench.domain.machine == {str(number): 1 for number in range(20)}
    assert bench.domain.calls == 20
    for late in executor.queued:
        late()
    assert bench.domain.calls == 20


def test_a_driver_lives_through_ctrl_c_in_a_call(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A thread that makes passes goes on after a call that interrupts itself."""
    monkeypatch.setattr("nodealloc.dsw_asw._driven._AFTER_A_FAULT_S", 0.01)
    bench = Bench(InlineExecutor(), resync_s=None, back_off=BackOff(initial_s=0.0))
    bench.domain.fault = interrupting(1)
    with caplog.at_level(logging.ERROR, "nodealloc.dsw_asw"), bench.reconciler:
        bench.desired.put("a", 1)
        bench.reconciler.wait_until(["a"], lacks, timeout_s=10.0)
    assert "a pass was interrupted" in caplog.text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch": 0}, "Reconciler: batch: expected one key or more, found 0"),
        ({"batch": -1}, "Reconciler: batch: expected one key or more, found -1"),
        ({"resync_s": 0.0}, "Reconciler: resync_s: expected seconds above 0, or None for never, found 0.0"),
    ],
)
def test_what_would_keep_a_pass_from_ending_is_refused(options: dict[str, object], words: str) -> None:
    """A pass that plans no key is followed by the next at once; all keys are due as soon as they were."""
    with pytest.raises(ConfigurationError, match=re.escape(words)):
        Bench(**options)  # type: ignore[arg-type]


def test_a_resync_sooner_than_any_clock_tells_comes_a_moment_later() -> None:
    """A pass ends whatever was asked for."""
    bench = Bench(resync_s=1e-300)
    bench.clock.advance(1.0)
    summary = bench.reconciler.reconcile()
    assert summary.next_due_s is not None
    assert summary.next_due_s > bench.clock.monotonic_s()


def test_a_call_that_nobody_takes_up_is_withdrawn() -> None:
    """After `take_up_s` it fails and is tried again; taken up later, it is not performed."""
    bench = Bench(resync_s=None, take_up_s=5.0)
    bench.desired.put("a", 1)
    bench.reconciler.run_until_quiet()
    bench.clock.advance(5.0)
    assert bench.reconciler.run_until_quiet().failed == 1
    error = bench.reconciler.failures("a")[0].error
    assert isinstance(error, NotTakenUpError)
    assert error.waited_s == 5.0
    assert bench.executor.run_all() == 0
    bench.rest()
    assert bench.domain.calls == 1
    assert bench.domain.machine == {"a": 1}


def test_a_call_that_waits_longer_than_its_deadline_counts_from_its_start() -> None:
    """A queue is no reason for doubt: patience ends with `take_up_s`, the deadline begins with the call."""
    bench = Bench(resync_s=None, take_up_s=60.0)
    bench.domain.deadline_s = 1.0
    bench.desired.put("a", 1)
    bench.reconciler.run_until_quiet()
    for _ in range(30):
        bench.clock.advance(1.0)
        assert bench.reconciler.run_until_quiet().uncertain == 0
    bench.rest()
    assert bench.domain.machine == {"a": 1}
    assert bench.domain.calls == 1


def test_a_call_that_nobody_takes_up_is_withdrawn_in_time_whatever_its_deadline() -> None:
    """A deadline that is over in the queue, where it does not count, has nobody wait beyond `take_up_s`."""
    bench = Bench(resync_s=None, take_up_s=60.0)
    bench.domain.deadline_s = 50.0
    bench.desired.put("a", 1)
    bench.reconciler.run_until_quiet()
    bench.clock.advance(50.0)
    assert bench.reconciler.run_until_quiet().failed == 0
    bench.clock.advance(10.0)
    assert bench.reconciler.run_until_quiet().failed == 1
    error = bench.reconciler.failures("a")[0].error
    assert isinstance(error, NotTakenUpError)
    assert error.waited_s == 60.0


def test_a_call_that_begins_as_it_is_withdrawn_has_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker may take it up at that very moment: it is not withdrawn, and is watched from then on."""
    bench = Bench(resync_s=None, take_up_s=5.0)
    bench.domain.deadline_s = 10.0
    bench.desired.put("a", 1)
    bench.reconciler.run_until_quiet()
    take_back = Operations[str, object, object].take_back

    def too_late(operations: Operations[str, object, object], one: Operation[str, object, object]) -> bool:
        one.began_s = 5.0 + began_s
        return take_back(operations, one)

    began_s = bench.clock.monotonic_s()
    monkeypatch.setattr(Operations, "take_back", too_late)
    bench.clock.advance(5.0)
    assert bench.reconciler.run_until_quiet().failed == 0
    bench.clock.advance(10.0)
    assert bench.reconciler.run_until_quiet().uncertain == 1


def test_a_call_that_runs_twice_is_performed_once() -> None:
    """Whatever an executor does with a call, the step is done once at most."""

    class Doubling(InlineExecutor):
        def submit(self, call: Callable[..., object], /, *args: object, **options: object) -> Future[object]:  # type: ignore[override]
            super().submit(call, *args, **options)
            return super().submit(call, *args, **options)

    bench = Bench(Doubling())  # type: ignore[arg-type]
    bench.desired.put("a", 1)
    bench.reconciler.run_until_quiet()
    assert bench.domain.calls == 1


def test_a_question_that_raises_costs_its_own_wait_alone() -> None:
    """`lacks` raised: whoever asked it is told, passes go on, and other waits end."""
    bench = Bench(resync_s=None)

    def broken(_key: str, _want: int | None, have: int | None) -> str:
        if have is not None:
            raise ArithmeticError("of the question")
        return "nothing yet"

    bad = bench.reconciler.wait(["a"], broken)
    good = bench.reconciler.wait(["a"], lacks)
    bench.desired.put("a", 1)
    bench.rest()
    good.result(0.0)
    with pytest.raises(ArithmeticError, match="of the question"):
        bad.result(0.0)
    with pytest.raises(WaitTimeoutError):
        bench.reconciler.wait_until(["b"], lambda *_: "never", timeout_s=0.0)


def churn(bench: Bench, changes: int) -> None:
    """So many changes, each carried out by an operation with a deadline far away."""
    for turn in range(changes):
        bench.desired.put(str(turn % 50), turn + 1)
        bench.reconciler.run_until_quiet()


def live() -> tuple[int, int]:
    """Operations and timers that somebody holds."""
    gc.collect()
    found = [type(one) for one in gc.get_objects()]
    return found.count(Operation), found.count(Timer)


def test_an_operation_that_ended_waits_for_no_garbage_collector() -> None:
    """What is over is freed at once: nothing of it holds itself."""
    bench = Bench(resync_s=None)
    before, _ = live()
    gc.disable()
    try:
        for turn in range(200):
            bench.desired.put("a", turn + 1)
            bench.reconciler.run_until_quiet()
            bench.executor.run_all()
            bench.reconciler.run_until_quiet()
        found = [type(one) for one in gc.get_objects()]
    finally:
        gc.enable()
    assert bench.domain.calls == 200
    assert found.count(Operation) - before < 10


MILLION = [
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        os.environ.get("NODEALLOC_HYPOTHESIS") != "ci",
        reason="a million changes take minutes: nox -s properties",
    ),
]


@pytest.mark.parametrize(
    "changes",
    [2_000, pytest.param(50_000, marks=pytest.mark.slow), pytest.param(1_000_000, marks=MILLION)],
)
def test_memory_is_flat_over_changes_with_deadlines(changes: int) -> None:
    """A finished operation is let go of at once, not at its deadline."""
    began, before = threading.Event(), live()
    bench = Bench(InlineExecutor(), resync_s=None)
    bench.domain.deadline_s = 10_000.0
    churn(bench, changes)
    assert live()[0] <= before[0] + 1
    assert live()[1] <= before[1] + 40
    threaded = Bench(ThreadExecutor(), resync_s=None)
    threaded.domain.deadline_s = 10_000.0
    threaded.domain.fault = lambda _: began.set()
    with threaded.reconciler:
        for turn in range(200):
            threaded.desired.put("a", turn + 1)
            threaded.reconciler.wait_until(["a"], lacks, timeout_s=10.0)
    assert began.is_set()
    assert live()[0] <= before[0] + 2
    # Cancelled timers are swept out when they are more than half.
    assert live()[1] <= before[1] + 120


class Later(Sizes):
    """Whatever it does, it promises."""

    def __init__(self) -> None:
        super().__init__()
        self.promised: list[Future[None]] = []

    def perform(self, step: SizeStep, _cancel: Cancel, /) -> Future[None]:  # type: ignore[override]
        """At once; the step lasts until the future is done."""
        self.machine["begun"] = step.detail[1] or 0
        self.promised.append(Future())
        return self.promised[-1]


def test_a_step_lasts_until_its_future_is_done() -> None:
    """No worker waits for it; its result and its error count as if the call had brought them."""
    domain = Later()
    bench = Bench(domain=domain)
    bench.desired.put("a", 1)
    bench.reconciler.run_until_quiet()
    bench.executor.run_all()
    bench.reconciler.run_until_quiet()
    assert [one.verb for one in bench.reconciler.running()] == ["set"]
    assert len(bench.executor) == 0
    domain.promised[0].set_exception(OSError("busy"))
    bench.reconciler.run_until_quiet()
    assert [str(one.error) for one in bench.reconciler.failures("a")] == ["busy"]
    bench.clock.advance(1.0)
    bench.reconciler.run_until_quiet()
    bench.executor.run_all()
    domain.promised[1].set_result(None)
    bench.reconciler.run_until_quiet()
    assert bench.actual.snapshot()["a"].value == 1
    assert bench.reconciler.failures("a") == ()


def test_a_future_is_cancelled_when_its_step_should_stop() -> None:
    """At its deadline, as a call is asked; its scope is open again at once."""
    domain = Later()
    domain.deadline_s = 5.0
    bench = Bench(domain=domain, resync_s=None)
    bench.desired.put("a", 1)
    bench.reconciler.run_until_quiet()
    bench.executor.run_all()
    bench.clock.advance(5.0)
    bench.reconciler.run_until_quiet()
    assert domain.promised[0].cancelled()
    assert bench.reconciler.running() == ()
    assert bench.actual.snapshot()["a"].value == -1


def test_a_bug_in_what_is_called_is_logged_once_with_where_it_is(caplog: pytest.LogCaptureFixture) -> None:
    """`failures` has it, for which whoever wrote what is called has not asked; a refusal is no bug."""
    bench = Bench(resync_s=None)
    errors: list[Exception] = [KeyError("conditions"), KeyError("conditions"), ConfigurationError("no")]

    def fault(_key: str) -> None:
        if errors:
            raise errors.pop(0)

    bench.domain.fault = fault
    bench.desired.put("a", 1)
    with caplog.at_level(logging.WARNING, "nodealloc.dsw_asw"):
        bench.rest()
    assert (errors, bench.domain.machine) == ([], {"a": 1})
    (record,) = caplog.records
    assert "of 'a' raised KeyError: 'conditions'" in record.getMessage()
    assert record.exc_info is not None
    assert "raise errors.pop(0)" in caplog.text
