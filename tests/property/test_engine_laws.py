"""The engine's laws, under every fault that its callers, its executor, its journal and its machine may have.

Converges once faults stop; never two operations in one scope; never forgets a
key; what was remembered is what was started, and nobody hears of what is not
remembered; keeps nothing of what is over. Killed at any call.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from nodealloc.dsw_asw import BackOff, Cancel, Driven, ThreadExecutor, World
from nodealloc.dsw_asw._bookkeeping import Bookkeeping
from nodealloc.dsw_asw._dependencies import Dependencies
from nodealloc.dsw_asw._operations import Operations
from nodealloc.dsw_asw._records import Records
from nodealloc.dsw_asw._scopes import Scopes
from nodealloc.dsw_asw._writing import Writing
from nodealloc.testing.simulation import Chance, DurableRows, Life, Simulation, ViolationError
from tests.often import often
from tests.property.lamps import BULBS, FAULTS, House, Lamp, Room, Row

ODDS = {
    **FAULTS,
    "executor refuses": 0.02,
    "executor refuses late": 0.01,
    "executor is interrupted": 0.005,
    "executor drops": 0.01,
    "executor cancels": 0.02,
    "executor doubles": 0.02,
    "executor is late": 0.01,
    "executor runs at once": 0.1,
    "call takes time": 0.4,
    "journal fails": 0.02,
    "journal is interrupted": 0.003,
    "killed before a call": 0.003,
    "killed after a call": 0.003,
    "killed": 0.001,
    "power lost": 0.0005,
    "machine sleeps": 0.002,
    "clock jumps": 0.002,
    "pass without reason": 0.02,
}
"""Faults that the seeds here inject; each seed a part of them, so that none hides what another would show."""


def odds_of(seed: int) -> dict[str, float]:
    """Three faults in five, chosen by the seed."""
    rng = random.Random(f"odds {seed}")
    return {name: odds for name, odds in ODDS.items() if rng.random() < 0.6}


class Lives:
    """A house through all lives of one seed, and what has to hold of it."""

    def __init__(self, seed: int, odds: dict[str, float], *, resync_s: float | None = None) -> None:
        self.wishes: World[int, tuple[int, ...]] = World("wishes")
        self.gate_wishes: World[int, bool] = World("gate wishes")
        self.house: House | None = None
        self.resync_s = resync_s
        self.room = Room(lambda: self.durable.rows)
        self.simulation = Simulation(seed, self.build, odds=odds)
        self.durable: DurableRows[Row] = DurableRows(self.simulation.chance)
        self.simulation.check(self.laws)
        self.simulation.check_settled(self.in_line)
        self.simulation.on_end(lambda _: self.room.inside.clear())

    def build(self, life: Life) -> Driven:
        """The next life, from what is durable."""
        self.house = House(
            self.wishes,
            self.gate_wishes,
            room=life.port(self.room),
            journal=life.port(self.durable),
            rows=dict(self.durable.rows),
            chance=life.chance,
            executor=life.executor,
            clock=life.clock,
            pause=life.pause,
            back_off=BackOff(max_s=30.0),
            resync_s=self.resync_s,
        )
        return self.house.group

    def wish(self, rng: random.Random) -> None:
        """Somebody changes their mind."""
        bulbs = tuple(rng.randrange(3) for _ in range(BULBS))
        self.wishes.alter(rng.randrange(6), lambda _: bulbs if rng.random() < 0.7 else None)

    def turn_gate(self, rng: random.Random) -> None:
        """A gate opens or closes."""
        self.gate_wishes.put(rng.randrange(2), rng.random() < 0.7)

    def open_gates(self) -> None:
        """Let every lamp be set."""
        for gate in range(2):
            self.gate_wishes.put(gate, True)

    def is_seen(self) -> bool:
        """Whether every lamp is as it is wished, and probes have seen that."""
        assert self.house is not None
        if self.resync_s and self.lamps() != self.wanted():
            return False  # until the next resync
        seen = {key: record.value for key, record in self.house.seen.snapshot().items()}
        return seen == {key: tuple(sorted(bulbs.items())) for key, bulbs in self.room.lamps.items()}

    def wanted(self) -> dict[int, tuple[int, ...]]:
        """What is wished."""
        return {key: record.value for key, record in self.wishes.snapshot().items()}

    def lamps(self) -> dict[int, tuple[int, ...]]:
        """What there is."""
        return {
            key: tuple(bulbs.get(at, -1) for at in range(BULBS)) for key, bulbs in self.room.lamps.items()
        }

    def laws(self) -> None:
        """What holds at every moment."""
        assert not self.room.broken, self.room.broken[0]

    def in_line(self) -> None:
        """When all is quiet, wishes, lamps, records and rows say the same, and nothing else is left."""
        self.laws()
        assert self.house is not None
        lamps, wanted = self.lamps(), self.wanted()
        assert lamps == wanted, f"{lamps} is there, {wanted} is wanted"
        known = {key: record.value for key, record in self.house.actual.snapshot().items()}
        assert known == {key: Lamp(bulbs=bulbs) for key, bulbs in wanted.items()}, f"{known} is known"
        remembered = {name: row for name, row in self.durable.rows.items() if isinstance(row, Lamp)}
        assert remembered == {f"lamp.{key}": lamp for key, lamp in known.items()}, f"{remembered} in rows"
        assert not any(self.house.footprint().values()), self.house.footprint()
        assert len(self.house.lamps._bookkeeping.timers) == (self.resync_s is not None)


@pytest.mark.parametrize("seed", range(12))
def test_the_laws_hold_whatever_happens(seed: int) -> None:
    """Six hundred operations with every fault there is, then quiet."""
    live(seed, 600)


def live(seed: int, operations: int) -> None:
    """One seed, once."""
    lives = Lives(seed, odds_of(seed))
    with lives.simulation as simulation:
        simulation.act(3.0, lives.wish)
        simulation.act(30.0, lives.turn_gate)
        simulation.run(operations)
        lives.open_gates()
        simulation.settle(until=lives.is_seen)


def live_until(seeds: int) -> None:
    """One seed after the other."""
    for seed in range(seeds):
        live(seed, 300)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 1000 + often(300), 25))
def test_the_laws_hold_for_many_seeds(first: int) -> None:
    """Three hundred seeds of two thousand operations; a busy machine takes minutes for all of them."""
    for seed in range(first, first + 25):
        live(seed, 2000)


def planted(owner: type, name: str, make: Callable[..., object]) -> pytest.param:  # type: ignore[valid-type]
    """A bug of the engine's, named by where it is."""
    return pytest.param(owner, name, make, id=f"{owner.__name__}.{name}")


def becomes(value: tuple[int, ...] | None, _before: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """Whatever it was."""
    return value


def nothing(*_: object, **_options: object) -> None:
    """Leaves it."""


BUGS = [
    # Any scope is free: two operations at once.
    planted(Scopes, "is_free", lambda *_: True),
    # Nothing is ever written down, and all is told and started.
    planted(Writing, "rows", nothing),
    # A refused commit counts as one that went well.
    planted(Writing, "_not_remembered", nothing),
    # A moment that a plan named never comes.
    planted(Bookkeeping, "look_again", nothing),
    # What failed has no moment to come back at.
    planted(Bookkeeping, "hold_off", lambda self, *given: self.failures.add(*given)),
    # A change in another world wakes nobody.
    planted(Dependencies, "woken", lambda *_: ()),
    # A pass that was interrupted is forgotten.
    planted(Bookkeeping, "add", nothing),
    # What nobody takes up is waited for, for ever.
    planted(Operations, "lose", nothing),
    # A result that waits for its commit is never told.
    planted(Records, "publish", lambda *_: set()),
]
"""Each is found within a few seeds, or the laws would be worth nothing."""


@pytest.mark.parametrize(("owner", "name", "bug"), BUGS)
def test_a_planted_bug_is_found(
    owner: type, name: str, bug: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the message says which seed it was."""
    monkeypatch.setattr(owner, name, bug)
    with pytest.raises(ViolationError, match="seed "):
        live_until(30)


@pytest.mark.parametrize("host", ["thread", "event loop"])
def test_the_laws_hold_in_real_time(host: str, caplog: pytest.LogCaptureFixture) -> None:
    """Threads that change wishes, threads that perform, a driver on a thread or under asyncio."""
    caplog.set_level(logging.CRITICAL + 1, "nodealloc")
    chance = Chance(random.Random(1), {**FAULTS, "perform hangs": 0.0, "plan is interrupted": 0.0})
    wishes, gate_wishes = World[int, tuple[int, ...]]("wishes"), World[int, bool]("gate wishes")
    durable: DurableRows[Row] = DurableRows(chance)
    room = Room(lambda: durable.rows)
    if host == "event loop":  # Ctrl-C there ends the loop, as it should
        chance = Chance(
            random.Random(1), {name: odds for name, odds in FAULTS.items() if "interrupted" not in name}
        )

    def pause(_seconds: float, cancel: Cancel | None) -> None:
        wait_s = chance.rng.random() * 0.002
        if cancel is None:
            time.sleep(wait_s)
        else:
            cancel.wait(wait_s)

    house = House(
        wishes,
        gate_wishes,
        room=room,
        journal=durable,
        rows={},
        chance=chance,
        executor=ThreadExecutor(),
        clock=None,
        pause=pause,
        back_off=BackOff(initial_s=0.001, max_s=0.01),
        take_up_s=5.0,
    )
    stop = threading.Event()

    def mutate(seed: int) -> None:
        rng = random.Random(seed)
        while not stop.is_set():
            bulbs = (rng.randrange(3), rng.randrange(3))
            wish = bulbs if rng.random() < 0.7 else None
            wishes.alter(rng.randrange(20), partial(becomes, wish))
            gate_wishes.put(rng.randrange(2), rng.random() < 0.8)
            time.sleep(0.001)

    def churn() -> None:
        mutators = [threading.Thread(target=mutate, args=(seed,)) for seed in range(2)]
        for one in mutators:
            one.start()
        time.sleep(1.0)
        stop.set()
        for one in mutators:
            one.join()
        chance.stop()
        for gate in range(2):
            gate_wishes.put(gate, True)

    def lacks(key: int, want: tuple[int, ...] | None, have: Lamp | None) -> str:
        wanted = None if want is None else Lamp(bulbs=want)
        return "" if have == wanted else f"{have} is there, {wanted} is wanted"

    def tidy() -> bool:
        return not any(house.footprint().values())

    def rest() -> None:
        # A failure of what nobody wants any more is forgotten after twice the longest back-off.
        until_s = time.monotonic() + 30.0
        while not tidy() and time.monotonic() < until_s:
            time.sleep(0.01)

    async def hosted() -> None:
        driver = asyncio.create_task(house.group.run())
        await asyncio.to_thread(churn)
        await house.lamps.wait(range(20), lacks).result_async(60.0)
        await asyncio.to_thread(rest)
        await asyncio.to_thread(house.group.stop)
        await driver

    if host == "thread":
        with house.group:
            churn()
            house.lamps.wait_until(range(20), lacks, timeout_s=60.0)
            rest()
    else:
        asyncio.run(hosted())
    assert room.broken == []
    wanted = {key: record.value for key, record in wishes.snapshot().items()}
    assert {key: (bulbs[0], bulbs[1]) for key, bulbs in room.lamps.items()} == wanted
    assert tidy(), house.footprint()


class Chaos(RuleBasedStateMachine):
    """The same, with each happening chosen one by one, so that a failure shrinks."""

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        """A seed for orders and latencies."""
        self.lives = Lives(seed, {"executor runs at once": 0.2, "call takes time": 0.5}, resync_s=300.0)
        self.lives.open_gates()

    @rule(key=st.integers(0, 2), bulbs=st.none() | st.tuples(st.integers(0, 1), st.integers(0, 1)))
    def wish(self, key: int, bulbs: tuple[int, int] | None) -> None:
        """Somebody changes their mind."""
        self.lives.wishes.alter(key, lambda _: bulbs)

    @rule(gate=st.integers(0, 1), is_open=st.booleans())
    def turn_gate(self, gate: int, is_open: bool) -> None:
        """A gate opens or closes."""
        self.lives.gate_wishes.put(gate, is_open)

    @rule(fault=st.sampled_from(sorted(ODDS)))
    def arm(self, fault: str) -> None:
        """This strikes next."""
        self.lives.simulation.chance.arm(fault)

    @rule(steps=st.integers(1, 20))
    def live(self, steps: int) -> None:
        """Let a few things happen."""
        for _ in range(steps):
            self.lives.simulation.step()

    @rule()
    def lose_a_wake_up(self) -> None:
        """The signal that there is work is lost; the next event brings it, or the resync."""
        if self.lives.house is not None:
            self.lives.house.lamps._work.clear()
            self.lives.simulation.tell("a wake-up is lost")

    @rule(power_lost=st.booleans())
    def kill(self, power_lost: bool) -> None:
        """Between two calls."""
        self.lives.simulation.kill(power_lost=power_lost)

    def teardown(self) -> None:
        """It converges."""
        if hasattr(self, "lives"):
            self.lives.open_gates()
            with self.lives.simulation as simulation:
                simulation.settle(until=self.lives.is_seen)


TestChaos = Chaos.TestCase
TestChaos.settings = settings(stateful_step_count=30, deadline=None)
