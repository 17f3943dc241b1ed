"""The simulation's own parts: a seed is a life, faults strike where they say, a violation names its seed."""

from __future__ import annotations

import math
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future

import pytest

from nodealloc.checkpoint import FileStore, JsonCheckpoint, StoreFailedError
from nodealloc.dsw_asw import (
    BackOff,
    Cancel,
    Done,
    Driven,
    Group,
    Near,
    Outcome,
    Plan,
    Reconciler,
    Remember,
    Step,
    Summary,
    View,
    World,
)
from nodealloc.testing.dsw_asw import ManualCancel, check_clock, check_executor, check_journal
from nodealloc.testing.simulation import (
    Chance,
    DurableRows,
    Killed,
    LastingExecutor,
    Life,
    MachineDisk,
    Rest,
    SeededExecutor,
    SimulatedClock,
    SimulatedThreads,
    Simulation,
    ViolationError,
)


def executor_with(
    odds: Mapping[str, float], *, latency_s: float = 0.0
) -> tuple[SeededExecutor, SimulatedClock, SimulatedThreads]:
    """One with these faults."""
    clock, threads = SimulatedClock(), SimulatedThreads()
    return SeededExecutor(clock, Chance(random.Random(1), odds), threads, latency_s=latency_s), clock, threads


def ran(executor: SeededExecutor) -> int:
    """How many calls were due."""
    count = 0
    while executor.run_next():
        count += 1
    return count


def test_the_simulated_parts_keep_the_promises_of_their_protocols() -> None:
    """Clock, executor and journal pass the checks that real ones pass."""
    check_clock(SimulatedClock())
    executor, _, _ = executor_with({})
    check_executor(executor, lambda: ran(executor))
    rows: DurableRows[int] = DurableRows(Chance(random.Random(1)))
    check_journal(rows, lambda: rows.rows, (1, 2))


def test_calls_begin_in_an_order_that_the_seed_says() -> None:
    """Another seed, another order; the same seed, the same one."""

    def order(seed: int) -> list[int]:
        clock, done = SimulatedClock(), list[int]()
        executor = SeededExecutor(clock, Chance(random.Random(seed)), SimulatedThreads(), latency_s=1.0)
        for number in range(20):
            executor.submit(done.append, number)
        while executor.next_due_s is not None:
            clock.advance(max(0.0, executor.next_due_s - clock.monotonic_s()))
            executor.run_next()
        return done

    assert order(1) == order(1)
    assert order(1) != order(2)
    assert sorted(order(1)) == list(range(20))


@pytest.mark.parametrize(
    ("fault", "raises", "calls"),
    [
        ("executor refuses", RuntimeError, 0),
        ("executor refuses late", RuntimeError, 1),
        ("executor is interrupted", KeyboardInterrupt, 1),
        ("executor drops", None, 0),
        ("executor cancels", None, 0),
        ("executor doubles", None, 2),
        ("executor runs at once", None, 1),
        ("call takes time", None, 1),
    ],
)
def test_an_executor_does_wrong_what_it_says(
    fault: str, raises: type[BaseException] | None, calls: int
) -> None:
    """Each fault by itself."""
    executor, _, threads = executor_with({fault: 1.0})
    done: list[int] = []
    future: Future[None] | None = None
    if raises is None:
        future = executor.submit(done.append, 1)
    else:
        with pytest.raises(raises):
            executor.submit(done.append, 1)
    assert len(done) == (fault == "executor runs at once")
    ran(executor)
    assert len(done) == calls
    assert future is None or future.cancelled() is (fault == "executor cancels")
    threads.close()


def test_a_late_call_begins_after_seconds_or_minutes() -> None:
    """Long enough for every patience to end."""
    executor, clock, _ = executor_with({"executor is late": 1.0})
    executor.submit(int)
    assert ran(executor) == 0
    clock.advance(400.0)
    assert ran(executor) == 1


def test_a_call_takes_virtual_time_and_others_go_on() -> None:
    """It stops at `pause`, goes on when its time has come or it is asked to stop; a hung one never."""
    executor, clock, threads = executor_with({"call takes time": 1.0})
    story: list[str] = []
    cancel = ManualCancel()

    def slow(name: str, seconds: float, cancel: Cancel | None) -> str:
        story.append(f"{name} begins")
        executor.pause(seconds, cancel)
        story.append(f"{name} ends at {clock.monotonic_s():g}")
        return name

    first = executor.submit(slow, "a", 10.0, None)
    second = executor.submit(slow, "b", math.inf, cancel)
    third = executor.submit(slow, "c", math.inf, None)
    ran(executor)
    assert executor.paused == 3
    assert not first.done()
    cancel.set()
    ran(executor)
    assert second.result(0) == "b"
    clock.advance(10.0)
    ran(executor)
    assert story[3:] == ["b ends at 0", "a ends at 10"]
    executor.release()
    ran(executor)
    assert third.result(0) == "c"
    assert executor.paused == 0
    executor.pause(5.0)  # nobody is on a thread: no time passes
    threads.close()


def test_what_runs_when_its_process_is_killed_ends_where_it_is() -> None:
    """What is queued never runs, a paused call goes no further, and nothing is taken any more."""
    executor, _, threads = executor_with({"call takes time": 1.0})
    story: list[str] = []

    def slow() -> None:
        try:
            executor.pause(math.inf)
            story.append("went on")
        finally:
            story.append("unwound")
            with pytest.raises(Killed):
                executor.pause(1.0)

    executor.submit(slow)
    ran(executor)
    executor.submit(story.append, "ran after the end")
    executor.kill()
    assert ran(executor) == 0
    assert story == []
    executor.bury()
    assert story == ["unwound"]
    with pytest.raises(Killed):
        executor.submit(int)
    threads.close()


def test_a_call_that_lasts_waits_for_somebody_outside() -> None:
    """It neither hangs nor keeps a node from being quiet, and goes on when it is told to."""
    executor, _, threads = executor_with({})
    rest, heard = Rest(), list[str]()

    def follow() -> None:
        executor.rest(rest)
        heard.append("a message")

    LastingExecutor(executor).submit(follow)
    ran(executor)
    assert (executor.paused, executor.resting, heard) == (0, 1, [])
    executor.release()
    assert ran(executor) == 0
    rest.end()
    ran(executor)
    assert (executor.resting, heard) == (0, ["a message"])
    executor.submit(executor.rest, Rest())
    ran(executor)  # without a thread there is nobody to wait: it raised
    threads.close()


def test_a_killed_program_is_away_for_a_while() -> None:
    """Time passes between two lives, and what a life had of the real machine goes with it."""
    shop = Shop(0, odds={"killed": 0.2}, away_s=(5.0,))
    ended: list[int] = []
    with shop.simulation as simulation:
        simulation.act(2.0, shop.wish)
        simulation.on_end(lambda _power_lost: ended.append(simulation.life.number))
        simulation.life.on_end(lambda: ended.append(-1))
        report = simulation.run(200)
    assert ended[0] == -1
    assert len(ended) >= report.lives - 1
    assert report.passed_s >= 5.0 * (report.lives - 1)


def test_a_clock_jumps_sleeps_and_boots() -> None:
    """Durations are monotonic, moments survive a boot by the wall clock; somebody may set that."""
    clock = SimulatedClock(unix_s=1000.0)
    clock.advance(5.0)
    stored = clock.moment().at(65.0)
    clock.sleep(100.0)
    assert clock.moment().monotonic_of(stored) == 65.0
    clock.set_wall(-50.0)
    assert (clock.monotonic_s(), clock.moment().unix_s, clock.passed_s) == (5.0, 1055.0, 105.0)
    clock.reboot(down_s=3.0)
    assert clock.monotonic_s() == 0.0
    assert clock.moment().boot_id == "boot 2"
    assert clock.moment().monotonic_of(stored) == 7.0
    with pytest.raises(ValueError, match="does not go back by 1 s"):
        clock.advance(-1.0)


class Counters:
    """Keys to numbers; the outside counts how often each was set."""

    def __init__(self, life: Life, outside: list[tuple[str, int]]) -> None:
        self.life = life
        self.outside = life.port(outside)

    def plan(self, view: View[str, int, int, tuple[str, int]], /) -> Plan[int, tuple[str, int]]:
        """Set what differs."""
        if view.want is None or view.want == view.have:
            return Plan()
        return Plan(steps=[Step(scope=(view.key,), verb="set", detail=(view.key, view.want))])

    def perform(self, step: Step[tuple[str, int]], cancel: Cancel, /) -> int:
        """Tell the outside, in a second."""
        self.life.pause(1.0, cancel)
        if cancel.is_set():
            raise CancelledError
        self.outside.append(step.detail)
        return step.detail[1]

    def settled(self, have: int | None, _step: Step[tuple[str, int]], outcome: Outcome[int], /) -> int | None:
        """As it was set."""
        return outcome.result if isinstance(outcome, Done) else have


class Shop:
    """Counters in a simulation."""

    def __init__(
        self, seed: int, odds: Mapping[str, float] | None = None, *, away_s: Sequence[float] = (0.0,)
    ) -> None:
        self.wishes: World[str, int] = World("wishes")
        self.outside: list[tuple[str, int]] = []
        self.simulation = Simulation(seed, self.build, odds=odds, away_s=away_s)
        self.durable: DurableRows[int] = DurableRows(self.simulation.chance)
        self.actual: World[str, int] = World("actual")

    def build(self, life: Life) -> Driven:
        """From what is durable."""
        self.actual = World("actual")
        for key, value in self.durable.rows.items():
            self.actual.put(key, value)
        return Reconciler(
            Counters(life, self.outside),
            desired=self.wishes,
            actual=self.actual,
            executor=life.executor,
            clock=life.clock,
            remember=Remember(journal=life.port(self.durable), rows=lambda key, have: {key: have}),
            resync_s=None,
        )

    def wish(self, rng: random.Random) -> None:
        """Another number for a key."""
        self.wishes.put(rng.choice("abc"), rng.randrange(100))


ODDS = {
    "killed": 0.01,
    "killed before a call": 0.01,
    "killed after a call": 0.01,
    "power lost": 0.005,
    "machine sleeps": 0.01,
    "clock jumps": 0.01,
    "pass without reason": 0.05,
    "journal fails": 0.02,
    "journal is interrupted": 0.01,
    "executor drops": 0.02,
    "call takes time": 0.5,
}


def life_of(seed: int) -> tuple[object, ...]:
    """One seed, told."""
    shop = Shop(seed, ODDS)
    with shop.simulation as simulation:
        simulation.act(2.0, shop.wish)
        simulation.run(400)
        report = simulation.settle()
        return tuple(shop.outside), str(report), tuple(simulation.chance.struck.items())


def test_who_takes_turns_keeps_its_thread_until_a_call_pauses() -> None:
    """A call that takes no time needs no other thread; one that does leaves the turns to another."""
    executor, _, threads = executor_with({"call takes time": 1.0})
    ran_on: dict[str, int] = {}
    turns: list[int] = []

    def call(name: str, seconds: float) -> None:
        ran_on[f"{name} begins"] = threading.get_ident()
        if seconds:
            executor.pause(seconds)
            ran_on[f"{name} ends"] = threading.get_ident()

    def turn() -> bool:
        executor.run_next()
        return ended()

    def ended() -> bool:
        turns.append(threading.get_ident())
        if len(turns) == 3:
            executor.release()
        return len(turns) < 6

    for name, seconds in (("a", 0.0), ("b", math.inf), ("c", 0.0)):
        executor.submit(call, name, seconds)
    threads.drive(turn, ended)
    assert len(turns) == 6
    assert executor.paused == 0
    assert ran_on["b begins"] == ran_on["b ends"]
    assert threading.get_ident() not in {*turns, *ran_on.values()}
    assert len(set(turns)) == 2  # one until the pause, the other one from then on
    assert turns[-1] != ran_on["b begins"]
    threads.close()


def test_what_turns_raise_reaches_who_drives_and_ctrl_c_ends_them() -> None:
    """A turn under way ends first; the threads can be used again."""
    threads = SimulatedThreads()

    def fails() -> bool:
        raise ArithmeticError("of a turn")

    with pytest.raises(ArithmeticError, match="of a turn"):
        threads.drive(fails, fails)
    turns = 0

    def interrupted() -> bool:
        nonlocal turns
        turns += 1
        if turns == 1:
            os.kill(os.getpid(), signal.SIGINT)  # the thread that waits gets it
        time.sleep(0.001)
        return turns < 20_000

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # who runs tests may ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            threads.drive(interrupted, interrupted)
    finally:
        signal.signal(signal.SIGINT, before)
    until_interrupted = turns
    threads.drive(lambda: False, lambda: False)
    assert until_interrupted == turns
    assert threads.ahead is None
    threads.close()


def test_what_paused_in_a_turn_ends_with_its_simulation() -> None:
    """A call that hangs when a simulation is closed leaves no thread behind."""
    before = set(threading.enumerate())
    shop = Shop(2, {"call takes time": 1.0})
    with shop.simulation as simulation:
        for _ in range(3):
            simulation.life.lasting.submit(simulation.life.pause, math.inf)
        simulation.go_on(20)
        assert simulation.life.executor.paused == 3
    for one in set(threading.enumerate()) - before:
        one.join(10.0)
    assert set(threading.enumerate()) <= before


def test_after_all_has_settled_others_act_again_without_faults() -> None:
    """Until so many more operations have been made."""
    shop = Shop(3, {"executor cancels": 0.2})
    acts: list[float] = []

    def act(rng: random.Random) -> None:
        acts.append(shop.simulation.clock.passed_s)
        shop.wish(rng)

    with shop.simulation as simulation:
        simulation.act(5.0, act)
        simulation.run(200)
        before = simulation.settle()
        settled_s = simulation.clock.passed_s
        assert before.faults
        after = simulation.live_on(100)
        assert after.operations >= before.operations + 100
        assert after.faults == before.faults
        assert acts[-1] > settled_s


def test_a_seed_is_a_life() -> None:
    """The same twice, another for another seed, every fault named in it."""
    assert life_of(1) == life_of(1)
    assert life_of(1) != life_of(2)
    told = {name for seed in range(6) for name, _ in life_of(seed)[2]}  # type: ignore[attr-defined]
    assert told == set(ODDS) - {"call takes time"}


def test_a_process_is_killed_at_each_of_its_calls() -> None:
    """Before and after every port call: the next life finishes what was wished."""
    calls = 0
    shop = Shop(3)
    with shop.simulation as simulation:
        shop.wishes.put("a", 1)
        calls = simulation.settle().operations
    assert calls > 2
    for fault in ("killed before a call", "killed after a call"):
        for number in range(calls):
            shop = Shop(3)
            with shop.simulation as simulation:
                shop.wishes.put("a", 1)
                while simulation.report().operations < number:
                    simulation.step()
                simulation.chance.arm(fault)
                for _ in range(1000):
                    if simulation.report().lives > 1 or not simulation.step():
                        break
                simulation.settle()
                assert shop.durable.rows == {"a": 1}
                assert 1 <= shop.outside.count(("a", 1)) <= 2


def test_quiet_time_costs_nothing() -> None:
    """A year of which an hour is busy is as many steps as that hour."""
    shop = Shop(1)
    with shop.simulation as simulation:
        simulation.act(86_400.0, shop.wish)
        report = simulation.run(800)
    assert report.passed_s > 100 * 86_400
    assert f"{report.passed_s / 3600:.1f} node-hours" in str(report)


def test_a_violation_names_its_seed_and_what_happened_last() -> None:
    """A checker is a plain function; its words, the moment and a story are in the message."""
    shop = Shop(77, {"journal fails": 0.3})
    told: list[str] = []

    def few() -> None:
        """No more than fifty calls."""
        told.append("asked")
        assert len(shop.outside) <= 50, "a call too many"

    with shop.simulation as simulation:
        simulation.act(1.0, shop.wish)
        simulation.check(few)
        with pytest.raises(ViolationError, match=r"seed 77, .*a call too many") as caught:
            simulation.run(10_000)
    assert caught.value.seed == 77
    assert caught.value.at_s > 0
    assert any("journal fails" in line for line in caught.value.story)
    assert told


def test_what_never_comes_to_rest_is_a_violation() -> None:
    """Nobody acts, nothing rests, nothing is as it should be, a pass that raises: each is said."""
    shop = Shop(1)
    with shop.simulation as simulation, pytest.raises(ViolationError, match="nobody acts from outside"):
        simulation.run(10)
    shop = Shop(1)
    with shop.simulation as simulation:
        shop.wishes.put("a", 1)
        with pytest.raises(ViolationError, match=r"is not what it should be|not quiet"):
            simulation.settle(until=lambda: False, within_s=1000.0)

    class Raising(Group):
        def reconcile(self) -> None:  # type: ignore[override]
            raise ArithmeticError("of a pass")

        @property
        def has_work(self) -> bool:
            return True

    with (
        Simulation(1, lambda _: Raising()) as simulation,
        pytest.raises(ViolationError, match="a pass raised Arith"),
    ):
        simulation.settle()


def test_what_never_lets_time_pass_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    """A livelock ends the run, and is called one."""
    monkeypatch.setattr("nodealloc.testing.simulation._simulation._PASSES", 50)

    class Restless(Group):
        @property
        def has_work(self) -> bool:
            return True

    with Simulation(1, lambda _: Restless()) as simulation, pytest.raises(ViolationError, match="no end"):
        simulation.settle()


def test_a_driver_rests_until_it_is_woken() -> None:
    """It is not asked again after each event, and whoever forgets to wake it is not helped by that."""

    class Counting(Group):
        asked, passes, is_busy = 0, 0, True

        @property
        def has_work(self) -> bool:
            self.asked += 1
            return self.is_busy

        def reconcile(self) -> Summary:
            self.passes, self.is_busy = self.passes + 1, False
            return super().reconcile()

        def add_listener(self, on_work: Callable[[], None], /) -> Callable[[], None]:
            self.wake = on_work
            return super().add_listener(on_work)

    driver = Counting()
    with Simulation(1, lambda _: driver, odds={}) as simulation:
        simulation.act(1.0, lambda _: None)
        for _ in range(3):
            simulation.step()
        assert driver.passes == 1
        driver.asked, driver.is_busy = 0, True
        for _ in range(50):
            simulation.step()
        assert (driver.passes, driver.asked) == (1, 0)
        driver.wake()
        for _ in range(3):
            simulation.step()
        assert driver.passes == 2


def test_a_process_may_be_killed_while_it_starts() -> None:
    """The next one starts from what that left."""
    starts: list[int] = []
    rows: list[int] = [1]

    def build(life: Life) -> Driven:
        starts.append(life.number)
        assert life.port(rows).index(1) == 0
        return Group()

    with Simulation(5, build) as simulation:
        simulation.chance.arm("killed after a call", 3)
        for _ in range(4):
            simulation.step()
    assert starts == [1, 2, 3, 4]


def test_a_port_hands_on_what_is_no_method() -> None:
    """Attributes are read as they are, methods are wrapped once."""

    class Named:
        name = "n"

        def answer(self) -> int:
            return 7

    with Simulation(1, lambda _: Group()) as simulation:
        port = simulation.life.port(Named())
        assert (port.name, port.answer(), port.answer()) == ("n", 7, 7)
        assert simulation.report().operations == 2
        simulation.life.end()
        with pytest.raises(Killed):
            port.answer()


def keeping(disk: MachineDisk, life: Life) -> FileStore:
    """A real store on the simulated disk."""
    return FileStore(disk.disk.path, dict.fromkeys("abc", JsonCheckpoint.unmarshal), files=disk.files(life))


def stored(value: int) -> JsonCheckpoint:
    """As a record."""
    return JsonCheckpoint(kind="row", version=1, value=value)


@pytest.mark.parametrize("power_lost", [False, True])
def test_a_real_store_survives_what_the_disk_does(power_lost: bool) -> None:
    """Acknowledged rows are there in the next life, whatever tore, filled or was lost with the power."""
    faults = {"disk fails": 0.01, "disk is full": 0.02, "write is short": 0.05, "killed before a call": 0.01}
    acknowledged: dict[str, int] = {}
    doubtful: dict[str, int] = {}
    lives = 0
    for seed in range(12):
        chance = Chance(random.Random(seed), faults)
        disk, clock = MachineDisk(chance), SimulatedClock()
        acknowledged.clear()
        for number in range(40):
            life = Life(number, clock, SeededExecutor(clock, chance, SimulatedThreads()), chance)
            try:
                store = keeping(disk, life)
                held = store.read()
                known = {key: record.value for key, record in held.values.items()}  # type: ignore[attr-defined]
                lost = {one.key for one in held.damaged}  # told, where the disk would not read it
                for key, value in acknowledged.items():
                    right = {value, doubtful.get(key)}
                    assert key in lost or known.get(key) in right, (seed, number, key, known)
                acknowledged = dict(known)
                for turn in range(10):
                    key, value = "abc"[turn % 3], number * 100 + turn
                    doubtful = {key: value}
                    store.commit({key: stored(value)})
                    acknowledged[key] = value
            except (StoreFailedError, Killed):
                lives += 1
            life.end()
            disk.ended(power_lost=power_lost, rng=chance.rng)
    assert lives > 20


def test_a_disk_that_is_full_takes_what_fits() -> None:
    """A write is cut where the room ends, and the next one fails with ENOSPC."""
    disk = MachineDisk(Chance(random.Random(1)))
    with Simulation(1, lambda _: Group()) as simulation:
        files = disk.files(simulation.life)
        disk.disk.capacity_bytes = 10
        handle = files.open(f"{disk.disk.path}/a", 0o102)
        assert files.write(handle, b"12345678") == 8
        assert files.write(handle, b"12345678") == 2
        with pytest.raises(OSError, match="No space left"):
            files.write(handle, b"1")
        disk.disk.capacity_bytes = None
        assert files.write(handle, b"1") == 1


def test_a_group_in_a_simulation_wakes_by_its_worlds() -> None:
    """The harness drives whatever is `Driven`; a near world's change needs no poll."""
    mounts: World[str, bool] = World("mounts")
    near: Near[str, str, bool] = Near(mounts, lambda pod: [pod])
    wishes, actual = World[str, int]("wishes"), World[str, int]("actual")

    class Starts:
        def plan(self, view: View[str, int, int, None], /) -> Plan[int, None]:
            return Plan(have=view.want if view.of(near) else None)

        perform: Callable[..., None] = print
        settled: Callable[..., int | None] = print

    def build(life: Life) -> Driven:
        return Group(
            Reconciler(
                Starts(),
                desired=wishes,
                actual=actual,
                executor=life.executor,
                clock=life.clock,
                near=[near],
                back_off=BackOff(),
                resync_s=None,
            )
        )

    with Simulation(1, build) as simulation:
        wishes.put("pod", 1)
        simulation.settle()
        assert actual.get("pod") is None
        mounts.put("pod", True)
        simulation.settle()
    assert actual.get("pod") == 1
