"""A small world to hold the engine to its laws: lamps of two bulbs each, behind gates, remembered."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import CancelledError
from typing import TypeAlias, cast

import attrs

from nodealloc.dsw_asw import (
    BackOff,
    Cancel,
    Cancelled,
    Clock,
    Done,
    Executor,
    Failed,
    Group,
    Journal,
    Near,
    Outcome,
    Plan,
    Reconciler,
    Remember,
    Step,
    StepScope,
    Summary,
    Uncertain,
    UncertainError,
    View,
    World,
)
from nodealloc.testing.simulation import Chance

__all__ = ["BULBS", "FAULTS", "House", "Lamp", "Room"]

BULBS = 2
UNKNOWN = -1
FAULTS = {
    "plan raises": 0.02,
    "plan answers nonsense": 0.02,
    "plan is interrupted": 0.003,
    "plan cancels": 0.05,
    "settled raises": 0.02,
    "settled is interrupted": 0.003,
    "keys_of raises": 0.01,
    "rows raise": 0.02,
    "observer raises": 0.05,
    "listener raises": 0.05,
    "perform raises before": 0.03,
    "perform raises after": 0.03,
    "perform does not know": 0.03,
    "perform cancels itself": 0.02,
    "perform is interrupted": 0.01,
    "perform fails and knows": 0.03,
    "perform hangs": 0.02,
    "perform is deaf": 0.2,
}
"""What the domain itself may do wrong, and how often."""

Detail: TypeAlias = tuple[int, int | None, int]
LampStep: TypeAlias = Step[Detail]
LampView: TypeAlias = View[int, tuple[int, ...], "Lamp", Detail]
Seen: TypeAlias = tuple[tuple[int, int], ...]
ProbeView: TypeAlias = View[int, tuple[int, ...], Seen, int]
Row: TypeAlias = "Lamp | bool"


@attrs.frozen(kw_only=True)
class Lamp:
    """What the engine knows of a lamp.

    Attributes:
        bulbs: Brightness of each bulb; `UNKNOWN` for nobody knows.
        trying: Bulb, or None for all, to what it is being set to: the intent.
    """

    bulbs: tuple[int, ...] = (UNKNOWN,) * BULBS
    trying: tuple[tuple[int | None, int], ...] = ()

    def wants(self, bulb: int | None, value: int) -> Lamp:
        """With an intent more."""
        return attrs.evolve(self, trying=(*(one for one in self.trying if one[0] != bulb), (bulb, value)))

    def knows(self, bulb: int | None, value: int) -> Lamp:
        """With a bulb as it is now, and no intent for it."""
        bulbs = tuple(value if at == bulb else one for at, one in enumerate(self.bulbs))
        return attrs.evolve(self, bulbs=bulbs, trying=tuple(one for one in self.trying if one[0] != bulb))


class Room:
    """Lamps as they are, outside the process; sees to it that the laws of operations hold.

    Attributes:
        lamps: Lamp to brightness of its bulbs.
        broken: Laws that were broken, in words.
        rows: What is durable, to compare with.
    """

    def __init__(self, rows: Callable[[], Mapping[str, Row]]) -> None:
        self.lamps: dict[int, dict[int, int]] = {}
        self.broken: list[str] = []
        self.rows = rows
        self.inside: list[StepScope] = []

    def enter(self, step: LampStep) -> None:
        """A call begins: nobody else is in its scope, and its intent is durable."""
        for scope in self.inside:
            depth = min(len(scope), len(step.scope))
            if scope[:depth] == step.scope[:depth]:
                self.broken.append(f"{step.scope} begins while {scope} runs")
        self.inside.append(step.scope)
        key, bulb, value = step.detail
        row = self.rows().get(f"lamp.{key}")
        if not isinstance(row, Lamp) or (bulb, value) not in row.trying:
            self.broken.append(f"{step.verb} {step.detail} begins, and what is remembered is {row}")

    def leave(self, step: LampStep) -> None:
        """A call ends."""
        self.inside.remove(step.scope)

    def set(self, key: int, bulb: int, value: int) -> None:
        """Make a bulb so bright."""
        self.lamps.setdefault(key, {})[bulb] = value

    def remove(self, key: int) -> None:
        """Take a lamp away, an absent one too."""
        self.lamps.pop(key, None)


class Lamps:
    """The domain: every call of it may raise, lie or hang."""

    def __init__(
        self,
        room: Room,
        gates: Near[int, int, bool],
        chance: Chance,
        pause: Callable[[float, Cancel | None], None],
    ) -> None:
        self.room = room
        self.gates = gates
        self.chance = chance
        self.pause = pause

    def plan(self, view: LampView, /) -> Plan[Lamp, Detail]:
        """What differs, once the gate is open; stops what is not wanted any more."""
        strikes = self.chance.strikes
        if strikes("plan raises"):
            raise LookupError("plan")
        if strikes("plan is interrupted"):
            raise KeyboardInterrupt
        if strikes("plan answers nonsense"):
            return nonsense(self.chance)
        plan = self._plan(view)
        return attrs.evolve(plan, cancel=True) if view.running and strikes("plan cancels") else plan

    def _plan(self, view: LampView) -> Plan[Lamp, Detail]:
        key, have, running = view.key, view.have, {one.detail for one in view.running}
        if view.want is None:
            if have is None:
                return Plan(cancel=True)
            step = Step(scope=(key,), verb="remove", detail=(key, None, 0), deadline_s=20.0)
            stale = tuple(one.scope for one in view.running if one.verb != "remove")
            return Plan(have=have.wants(None, 0), steps=[step], cancel=stale)
        if not view.of(self.gates).get(key % 2):
            return Plan()
        have = doubted(have or Lamp(), {one[1] for one in running})
        steps: list[LampStep] = []
        for bulb, value in enumerate(view.want):
            if have.bulbs[bulb] != value or dict(have.trying).get(bulb, value) != value:
                detail = (key, bulb, value)
                steps.append(Step(scope=(key, bulb), verb="set", detail=detail, deadline_s=20.0))
                others = [one for one in running if one[1] == bulb and one != detail]
                # An intent is one at a time: the running one stays remembered until it has ended.
                have = have if others else have.wants(bulb, value)
        right = {one.detail for one in steps}
        stale = tuple(one.scope for one in view.running if one.detail not in right)
        return Plan(have=have, steps=steps, cancel=stale)

    def perform(self, step: LampStep, cancel: Cancel, /) -> int | Failed[int] | Uncertain[int]:
        """Do it, in its own time, more or less."""
        self.room.enter(step)
        try:
            return self._perform(step, cancel)
        finally:
            self.room.leave(step)

    def _perform(self, step: LampStep, cancel: Cancel) -> int | Failed[int] | Uncertain[int]:
        (key, bulb, value), strikes = step.detail, self.chance.strikes
        if strikes("perform raises before"):
            raise OSError("before")
        self.pause(
            math.inf if strikes("perform hangs") else 0.5, None if strikes("perform is deaf") else cancel
        )
        if cancel.is_set() and self.chance.rng.random() < 0.5:
            raise CancelledError
        if strikes("perform fails and knows"):
            return Failed(OSError("and knows"), known=UNKNOWN, again_after_s=1.0)
        if bulb is None:
            self.room.remove(key)
        else:
            self.room.set(key, bulb, value)
        self.pause(0.5, cancel)
        if strikes("perform raises after"):
            raise UncertainError("after", after_s=0.0)
        if strikes("perform does not know"):
            return Uncertain(TimeoutError("does not know"))
        if strikes("perform cancels itself"):
            raise CancelledError
        if strikes("perform is interrupted"):
            raise KeyboardInterrupt
        return value

    def settled(self, have: Lamp | None, step: LampStep, outcome: Outcome[int], /) -> Lamp | None:
        """As it was set, or unknown where that may be."""
        if self.chance.strikes("settled raises"):
            raise LookupError("settled")
        if self.chance.strikes("settled is interrupted"):
            raise KeyboardInterrupt
        _, bulb, value = step.detail
        lamp = have or Lamp()
        match outcome:
            case Done():
                return None if bulb is None else lamp.knows(bulb, value)
            case Uncertain(still_running=True):
                return have
            case Cancelled(began_s=None):
                return have
            case _ if bulb is None:
                return Lamp(trying=lamp.trying)
            case _:
                return lamp.knows(bulb, UNKNOWN)


def nonsense(chance: Chance) -> Plan[Lamp, Detail]:
    """Something that is no plan, or makes no sense in one."""
    answers: list[Callable[[], object]] = [
        lambda: None,
        lambda: 7,
        lambda: [Step(scope=(1,), verb="set", detail=(1, 1, 1))],
        lambda: Plan(steps=cast("list[LampStep]", ["rubbish"])),
        lambda: Plan(steps=cast("list[LampStep]", None)),
        lambda: Plan(again_at_s=math.nan),
        lambda: Step(scope=(), verb="", detail=None),
    ]
    return cast("Plan[Lamp, Detail]", chance.rng.choice(answers)())


class Gates:
    """A world with intents alone: a gate is open when that is wanted."""

    def plan(self, view: View[int, bool, bool, None], /) -> Plan[bool, None]:
        """As wanted."""
        return Plan(have=view.want)

    def perform(self, step: Step[None], cancel: Cancel, /) -> None:
        """Nothing is ever started."""
        raise NotImplementedError

    def settled(self, have: bool | None, step: Step[None], outcome: Outcome[None], /) -> bool | None:
        """Nothing ever ends."""
        raise NotImplementedError


class Probes:
    """A world of what is seen: a probe of each lamp that is wanted, every ten seconds."""

    def __init__(self, room: Room, chance: Chance) -> None:
        self.room = room
        self.chance = chance

    def plan(self, view: ProbeView, /) -> Plan[Seen, int]:
        """Look, and look again."""
        if view.want is None:
            return Plan(have=None, cancel=True)
        step = Step(scope=(view.key,), verb="probe", detail=view.key, may_change_nothing=True)
        return Plan(steps=[step], again_at_s=view.now_s + 10.0)

    def perform(self, step: Step[int], _cancel: Cancel, /) -> Seen:
        """What is there."""
        if self.chance.strikes("perform raises before"):
            raise OSError("before")
        return tuple(sorted(self.room.lamps.get(step.detail, {}).items()))

    def settled(self, have: Seen | None, _step: Step[int], outcome: Outcome[Seen], /) -> Seen | None:
        """As it was seen."""
        return outcome.result if isinstance(outcome, Done) else have


@attrs.frozen
class Onlooker:
    """An observer that raises now and then."""

    chance: Chance

    def started(self, step: Step[object], /) -> None:
        """Raise, perhaps."""
        self._raise()

    def ended(self, step: Step[object], outcome: Outcome[object], took_s: float, /) -> None:
        """Raise, perhaps."""
        self._raise()

    def passed(self, summary: Summary, /) -> None:
        """Raise, perhaps."""
        self._raise()

    def _raise(self) -> None:
        if self.chance.strikes("observer raises"):
            raise LookupError("observer")


class House:
    """Gates, lamps that look at them, both remembered in one journal; and probes of lamps, which are not.

    Attributes:
        group: What is driven.
        lamps: The reconciler of lamps.
    """

    def __init__(
        self,
        wishes: World[int, tuple[int, ...]],
        gate_wishes: World[int, bool],
        *,
        room: Room,
        journal: Journal[Row],
        rows: Mapping[str, Row],
        chance: Chance,
        executor: Executor,
        clock: Clock | None,
        pause: Callable[[float, Cancel | None], None],
        back_off: BackOff,
        take_up_s: float = 60.0,
        resync_s: float | None = None,
    ) -> None:
        self.room, self.chance = room, chance
        self.gates: World[int, bool] = World("gates")
        self.actual: World[int, Lamp] = World("lamps")
        for name, row in rows.items():
            key = int(name.partition(".")[2])
            if isinstance(row, Lamp):
                self.actual.put(key, restored(row), by="restart")
            else:
                self.gates.put(key, row, by="restart")
        self._told = self.actual.watch(self._listen)
        self._told.take()
        near: Near[int, int, bool] = Near(self.gates, self._gates_of)
        gates = Reconciler(
            Gates(),
            desired=gate_wishes,
            actual=self.gates,
            executor=executor,
            clock=clock,
            back_off=back_off,
            resync_s=resync_s,
            remember=Remember(journal=journal, rows=self._gate_rows),
        )
        self.lamps = Reconciler(
            Lamps(room, near, chance, pause),
            desired=wishes,
            actual=self.actual,
            executor=executor,
            clock=clock,
            back_off=back_off,
            resync_s=resync_s,
            take_up_s=take_up_s,
            near=[near],
            remember=Remember(journal=journal, rows=self._rows),
            observer=Onlooker(chance),
        )
        self.seen: World[int, Seen] = World("seen")
        self.probes = Reconciler(
            Probes(room, chance),
            desired=wishes,
            actual=self.seen,
            executor=executor,
            clock=clock,
            back_off=back_off,
            resync_s=resync_s,
            take_up_s=take_up_s,
        )
        self.group = Group(gates, self.lamps, self.probes)
        self.group.add_listener(self._hear)

    def _gates_of(self, key: int) -> Iterable[int]:
        if self.chance.strikes("keys_of raises"):
            raise LookupError("keys_of")
        return [key % 2]

    def _gate_rows(self, key: int, have: bool | None) -> Mapping[str, Row | None]:
        return {f"gate.{key}": have}

    def _rows(self, key: int, have: Lamp | None) -> Mapping[str, Row | None]:
        if self.chance.strikes("rows raise"):
            raise LookupError("rows")
        return {f"lamp.{key}": have}

    def _hear(self) -> None:
        if self.chance.strikes("listener raises"):
            raise LookupError("listener")

    def _listen(self) -> None:
        """Whoever is told of a record finds it remembered."""
        for key in self._told.take():
            record, row = self.actual.get(key), self.room.rows().get(f"lamp.{key}")
            if record != row:
                self.room.broken.append(f"lamp {key} is told as {record}, and remembered as {row}")
        if self.chance.strikes("listener raises"):
            raise LookupError("listener")

    def footprint(self) -> dict[str, int]:
        """What the engine keeps besides its worlds."""
        book, work = self.lamps._bookkeeping, self.lamps._begun
        return {
            "operations": self.lamps._operations.count,
            "failures": book.failures.count,
            "held off": len(book._held),
            "rests": len(book.rests),
            "blocked": len(work._blocked),
            "late": len(work._late),
            "unwritten": len(self.lamps._writing._unwritten),
            "waiting for the journal": len(self.lamps._records.waiting),
        }


def restored(lamp: Lamp) -> Lamp:
    """After a restart an intent may have been carried out, or not."""
    return doubted(lamp, set())


def doubted(lamp: Lamp, running: set[int | None]) -> Lamp:
    """An intent that nobody carries out any more may have been carried out, or not."""
    for bulb, _ in lamp.trying:
        if bulb not in running:
            lamp = Lamp() if bulb is None else lamp.knows(bulb, UNKNOWN)
    return lamp
