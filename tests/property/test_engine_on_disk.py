"""The engine's laws with a real store as its journal, on a disk that fills, tears and loses power.

The process is killed at each system call of the store; what was acknowledged
is what the next life reads, and what it reads is what was started.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import pytest

from nodealloc.checkpoint import Checkpoint, FileStore, JsonCheckpoint, StoreFailedError
from nodealloc.dsw_asw import BackOff, Driven
from nodealloc.testing.simulation import Killed, Life, MachineDisk
from tests.often import often
from tests.property.lamps import FAULTS, House, Lamp, Row
from tests.property.test_engine_laws import Lives

ODDS = {
    **FAULTS,
    "call takes time": 0.4,
    "executor drops": 0.01,
    "executor runs at once": 0.1,
    "disk is full": 0.01,
    "write is short": 0.02,
    "killed before a call": 0.002,
    "killed": 0.002,
    "power lost": 0.004,
    "machine sleeps": 0.002,
}
"""Faults that the seeds here inject."""

FORMATS = dict.fromkeys(
    [*(f"lamp.{key}" for key in range(6)), *(f"gate.{gate}" for gate in range(2))], JsonCheckpoint.unmarshal
)


def packed(row: Row) -> JsonCheckpoint:
    """As a record."""
    if isinstance(row, Lamp):
        return JsonCheckpoint(
            kind="lamp", version=1, value=[list(row.bulbs), [list(one) for one in row.trying]]
        )
    return JsonCheckpoint(kind="gate", version=1, value=row)


def unpacked(record: Checkpoint) -> Row:
    """From a record."""
    value = cast("JsonCheckpoint", record).value
    if isinstance(value, bool):
        return value
    bulbs, trying = cast("tuple[list[int], list[tuple[int | None, int]]]", value)
    return Lamp(bulbs=tuple(bulbs), trying=tuple((bulb, to) for bulb, to in trying))


class StoredLives(Lives):
    """A house whose rows are files."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, ODDS)
        chance = self.simulation.chance
        self.disk = MachineDisk(chance)
        self.simulation.on_end(lambda power_lost: self.disk.ended(power_lost=power_lost, rng=chance.rng))

    def build(self, life: Life) -> Driven:
        """The next life, from what the disk holds; one that cannot open its store ends."""
        try:
            store = FileStore(self.disk.disk.path, FORMATS, files=self.disk.files(life))
            held = store.read()
        except StoreFailedError as error:
            life.end()
            raise Killed from error
        assert held.damaged == (), held.damaged
        self.durable.rows = {name: unpacked(record) for name, record in held.values.items()}
        self.house = House(
            self.wishes,
            self.gate_wishes,
            room=life.port(self.room),
            journal=Stored(self, store),
            rows=dict(self.durable.rows),
            chance=life.chance,
            executor=life.executor,
            clock=life.clock,
            pause=life.pause,
            back_off=BackOff(max_s=30.0),
        )
        return self.house.group


class Stored:
    """The store as a journal; what it acknowledged is what the laws compare with."""

    def __init__(self, lives: StoredLives, store: FileStore) -> None:
        self.lives = lives
        self.store = store

    def commit(self, changes: Mapping[str, Row | None], /) -> None:
        """All or none."""
        self.store.commit({name: None if row is None else packed(row) for name, row in changes.items()})
        for name, row in changes.items():
            if row is None:
                self.lives.durable.rows.pop(name, None)
            else:
                self.lives.durable.rows[name] = row


def live(seed: int, operations: int) -> int:
    """One seed; how many lives it had."""
    lives = StoredLives(seed)
    with lives.simulation as simulation:
        simulation.act(3.0, lives.wish)
        simulation.act(30.0, lives.turn_gate)
        simulation.run(operations)
        lives.open_gates()
        report = simulation.settle(until=lives.is_seen)
        kept = {name: unpacked(record) for name, record in reread(lives).items()}
        assert kept == lives.durable.rows
        return report.lives


def reread(lives: StoredLives) -> Mapping[str, Checkpoint]:
    """What the next process would find."""
    disk = lives.disk.disk.after_kill()
    return FileStore(disk.path, FORMATS, files=disk).read().values


@pytest.mark.parametrize("seed", range(6))
def test_the_laws_hold_on_a_disk(seed: int) -> None:
    """Two thousand calls, most of them the store's, with kills at any of them."""
    assert live(seed, 2000) > 2


@pytest.mark.slow
def test_the_laws_hold_on_many_disks() -> None:
    """A hundred seeds."""
    for seed in range(100, 100 + often(100)):
        live(seed, 5000)
