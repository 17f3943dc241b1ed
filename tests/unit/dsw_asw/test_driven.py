"""Who drives a reconciler: threads, event loops, waiting callers; and how it ends."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from nodealloc.dsw_asw import (
    BackOff,
    Group,
    Running,
    ShutDownError,
    Summary,
    ThreadExecutor,
    WaitTimeoutError,
)
from nodealloc.dsw_asw._cancellation import Cancellation
from nodealloc.errors import ConfigurationError
from tests.unit.dsw_asw_sizes import Bench, busy, lacks


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
    with bench.reconciler:
        bench.desired.put("a", 1)
        bench.reconciler.wait_until(["a"], lacks, timeout_s=10.0)
        bench.reconciler.wait_for_work(0.05)
        passes = len(bench.observer.summaries)
        time.sleep(0.1)
        assert len(bench.observer.summaries) == passes > 0
    assert bench.domain.machine == {"a": 1}


def test_the_loop_sleeps_however_far_the_next_moment_is() -> None:
    """Python refuses to wait for centuries, which would have ended the thread that drives."""
    bench = Bench(ThreadExecutor(), resync_s=None)
    threading.Timer(0.05, bench.desired.put, ("a", 1)).start()
    assert bench.reconciler.wait_for_work(2.0**62)
    bench.reconciler.close()


def test_who_waits_beside_the_driver_hears_of_the_pass_that_took_the_wake_up() -> None:
    """Made between its question and its wait: there is no work any more, and nothing else would come."""
    bench = Bench(ThreadExecutor(), resync_s=None)
    bench.desired.put("a", 1)
    passes = bench.reconciler.passes_made
    with bench.reconciler:
        bench.reconciler.wait_until(["a"], lacks, timeout_s=10.0)
        until_s = time.monotonic() + 10.0
        while time.monotonic() < until_s and (
            bench.reconciler.passes_made == passes or bench.reconciler.has_work
        ):
            time.sleep(0.001)
        assert bench.reconciler.wait_for_pass(passes, 10.0)
        passes = bench.reconciler.passes_made
        threading.Timer(0.05, bench.desired.put, ("b", 1)).start()
        assert bench.reconciler.wait_for_pass(passes, 10.0)


def test_who_waits_beside_a_group_hears_of_its_passes() -> None:
    """By hand, as by its driver; and of work that nobody has done yet."""
    bench = Bench()
    group = Group(bench.reconciler)
    passes = group.passes_made
    assert not group.wait_for_pass(passes, 0.0)
    bench.desired.put("a", 1)
    assert group.wait_for_pass(passes, 0.0)
    woken = threading.Event()
    group.run_until_quiet()

    def wait() -> None:
        if group.wait_for_pass(group.passes_made, 10.0):
            woken.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    while not group._waiters:
        time.sleep(0.001)
    group.reconcile()
    assert woken.wait(10.0)
    waiter.join()
    assert not group._waiters
    assert not group.wait_for_pass(group.passes_made, 0.0)


def test_closing_makes_a_pass_when_something_has_happened_only() -> None:
    """While a call hangs it sleeps, however long: it looked ten times a second."""
    hang, began = threading.Event(), threading.Event()
    bench = Bench(ThreadExecutor(), resync_s=None)

    def fault(_key: str) -> None:
        began.set()
        hang.wait(10.0)

    bench.domain.fault = fault
    bench.desired.put("a", 1)
    bench.reconciler.reconcile()
    assert began.wait(10.0)
    before = len(bench.observer.summaries)
    assert len(bench.reconciler.close(1.0)) == 1
    assert len(bench.observer.summaries) - before <= 4
    threading.Timer(0.05, hang.set).start()
    assert bench.reconciler.close(10.0) == ()


def test_asyncio_hosts_wait_without_blocking() -> None:
    """`result_async` ends on success, and names what is missing on time-out."""
    bench = Bench(ThreadExecutor(), resync_s=None)

    async def host() -> str:
        bench.desired.put("a", 1)
        await bench.reconciler.wait(["a"], lacks).result_async(10.0)
        with pytest.raises(WaitTimeoutError) as caught:
            await bench.reconciler.wait(["never"], lambda *_: "never there").result_async(0.01)
        return str(caught.value)

    with bench.reconciler:
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
    bench.reconciler.start()
    bench.desired.put("a", 1)
    assert began.wait(10)
    bench.desired.put("b", 1)
    wait = bench.reconciler.wait(["b"], lacks)
    running = bench.reconciler.stop(0.05)
    assert [(one.scope, one.cancelling) for one in running] == [(("a",), True)]
    with pytest.raises(ShutDownError, match=r"closed; still running: set a$") as ended:
        wait.result(1.0)
    assert ended.value.running == running
    with pytest.raises(ShutDownError, match=r"still running: set a$"):
        bench.reconciler.wait_until(["b"], lacks)
    hang.set()
    assert bench.reconciler.close(10.0) == ()
    assert bench.domain.calls == 1
    assert bench.actual.get("a") == 1
    with pytest.raises(ShutDownError, match=r"closed$"):
        bench.reconciler.wait_until(["b"], lacks)
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


def test_a_driver_gives_running_operations_the_time_that_it_was_told(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the end of its block, or what the caller of `stop` says; a pass that raises ends nothing."""

    class Passing(Group):
        def __init__(self, **options: object) -> None:
            super().__init__(**options)  # type: ignore[arg-type]
            self.timeouts: list[float] = []
            self.passes: list[int] = []

        def reconcile(self) -> Summary:
            self.passes.append(1)
            if len(self.passes) == 1:
                raise ArithmeticError("a pass")
            return Summary(passes=1)

        @property
        def has_work(self) -> bool:
            return len(self.passes) == 1

        def close(self, timeout_s: float = 0.0, /) -> tuple[Running[object], ...]:
            self.timeouts.append(timeout_s)
            return super().close(timeout_s)

    monkeypatch.setattr("nodealloc.dsw_asw._driven._AFTER_A_FAULT_S", 0.01)
    one = Passing(name="a name", stop_timeout_s=0.25)
    with one, caplog.at_level(logging.ERROR, "nodealloc.dsw_asw"):
        assert "a name" in [thread.name for thread in threading.enumerate()]
        until_s = time.monotonic() + 10
        while len(one.passes) < 2 and time.monotonic() < until_s:
            time.sleep(0.001)
    assert len(one.passes) == 2
    assert "a name: a pass raised" in caplog.text
    other = Passing(stop_timeout_s=0.25)
    other.start()
    with pytest.raises(ConfigurationError, match="started before"):
        other.start()
    other.stop(0.5)
    assert one.timeouts + other.timeouts == [0.25, 0.5]


def test_an_event_loop_drives_passes_until_it_is_stopped(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`run()` sleeps until something changes or is due, and lives through a pass that raises."""
    monkeypatch.setattr("nodealloc.dsw_asw._driven._AFTER_A_FAULT_S", 0.01)
    bench = Bench(ThreadExecutor(), resync_s=None, back_off=BackOff(initial_s=0.01))
    bench.domain.fault = busy(1)
    reconcile, faults = bench.reconciler.reconcile, [1]

    def faulty() -> Summary:
        if faults:
            faults.pop()
            raise ArithmeticError("a pass")
        return reconcile()

    bench.reconciler.reconcile = faulty  # type: ignore[method-assign]

    async def host() -> int:
        driver = asyncio.create_task(bench.reconciler.run())
        bench.desired.put("a", 1)
        await bench.reconciler.wait(["a"], lacks).result_async(10.0)
        await asyncio.sleep(0.05)
        passes = len(bench.observer.summaries)
        await asyncio.sleep(0.05)
        idle = len(bench.observer.summaries) - passes
        await asyncio.to_thread(bench.reconciler.stop)
        await asyncio.wait_for(driver, 10.0)
        return idle

    with caplog.at_level(logging.ERROR, "nodealloc.dsw_asw"):
        assert asyncio.run(host()) == 0
    assert bench.domain.machine == {"a": 1}
    assert bench.domain.calls == 2
    assert "a pass raised" in caplog.text


def test_a_driver_whose_task_is_cancelled_leaves_nothing_behind() -> None:
    """The loop may be closed: later changes wake nobody, and the engine goes on elsewhere."""
    bench = Bench(resync_s=None)

    async def host() -> None:
        driver = asyncio.create_task(bench.reconciler.run())
        await asyncio.sleep(0.01)
        driver.cancel()
        with pytest.raises(asyncio.CancelledError):
            await driver

    asyncio.run(host())
    bench.desired.put("a", 1)
    bench.rest()
    assert bench.domain.machine == {"a": 1}


def test_a_key_that_came_and_went_is_named_as_such() -> None:
    """The wait ran out while nothing is missing any more."""
    bench = Bench()
    bench.desired.put("a", 1)
    answers = iter(["not yet", ""])
    wait = bench.reconciler.wait(["a"], lambda *_: next(answers))
    with pytest.raises(WaitTimeoutError, match="came and went while it was waited for"):
        wait.result(0.0)


def gathering(count: int, gather_s: float) -> tuple[int, float]:
    """Passes of a group that carries out so many steps which end one after the other, and seconds for all.

    Where nothing is gathered, the next step ends when a pass has followed the one before, or after 10 s.
    """
    go = threading.Semaphore(0)
    bench = Bench(ThreadExecutor(), resync_s=None)

    def until_told(_key: str) -> None:
        go.acquire(timeout=10.0)

    bench.domain.fault = until_told
    keys = [f"key {number}" for number in range(count)]
    for key in keys:
        bench.desired.put(key, 1)
    with Group(bench.reconciler, gather_s=gather_s):
        while len(bench.reconciler.running()) < count:
            time.sleep(0.001)
        before, began_s = len(bench.observer.summaries), time.monotonic()
        for _ in keys:
            seen, late_s = len(bench.observer.summaries), time.monotonic() + 10.0
            go.release()
            time.sleep(0.005)
            while not gather_s and len(bench.observer.summaries) == seen and time.monotonic() < late_s:
                time.sleep(0.001)
        bench.reconciler.wait_until(keys, lacks, timeout_s=10.0)
        return len(bench.observer.summaries) - before, time.monotonic() - began_s


def test_a_group_gathers_what_ends_while_much_is_under_way() -> None:
    """One pass for several ends; where few things happen nobody waits, and all are done in the end."""
    assert gathering(30, 0.5)[0] < 15
    passes, took_s = gathering(30, 0.0)
    assert passes >= 15
    assert took_s < 10.0
    assert gathering(3, 30.0)[1] < 10.0


@pytest.mark.parametrize("gather_s", [math.inf, 1e300, -1.0, math.nan])
def test_a_time_that_nobody_can_wait_is_refused(gather_s: float) -> None:
    """The driver's thread would end at it, while much is under way."""
    with pytest.raises(ConfigurationError, match="gather_s"):
        Group(gather_s=gather_s)


def test_a_driver_without_a_thread_was_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system gives none: nobody drives, it can be stopped or started later, and nothing hides why."""
    bench = Bench(ThreadExecutor(), resync_s=None)
    starts = threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        if thread.name == bench.reconciler.name:
            raise RuntimeError("can't start new thread")
        starts(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        with pytest.raises(RuntimeError, match="can't start"):
            bench.reconciler.start()
    assert not bench.reconciler.is_driven
    bench.desired.put("a", 1)
    bench.reconciler.start()
    bench.reconciler.wait_until(["a"], lacks, timeout_s=10.0)
    assert bench.reconciler.stop() == ()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        other = Bench(resync_s=None).reconciler
        with pytest.raises(RuntimeError, match="can't start"):
            other.start()
    assert other.stop() == ()


def test_who_waits_for_ever_may_say_so_by_infinity() -> None:
    """Of a wait for keys, of a call for its end, and of a stop: Python itself refuses so long a wait."""
    bench = Bench(ThreadExecutor(), resync_s=None)
    bench.desired.put("a", 1)
    with bench.reconciler:
        bench.reconciler.wait_until(["a"], lacks, timeout_s=math.inf)
        asyncio.run(bench.reconciler.wait(["a"], lacks).result_async(math.inf))
    assert bench.reconciler.stop(math.inf) == ()
    cancellation = Cancellation(threading.Lock())
    threading.Timer(0.05, cancellation.set).start()
    assert cancellation.wait(math.inf)
