"""The engine: what a pass costs among many keys, and how soon a change is acted on."""

from __future__ import annotations

import gc
import statistics
import threading
import time
from collections.abc import Iterator
from typing import TypeAlias

from bench.figure import Figure, best_ns
from nodealloc.dsw_asw import (
    Cancel,
    Done,
    InlineExecutor,
    Outcome,
    Plan,
    Reconciler,
    Step,
    ThreadExecutor,
    View,
    World,
)

SIZES = (100, 1_000, 10_000, 100_000)

Detail: TypeAlias = tuple[int, int | None]
Engine: TypeAlias = Reconciler[int, int, int, Detail, None]


class Numbers:
    """A domain as small as one can be, so that the engine is what is measured."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.began_s = 0.0

    def plan(self, view: View[int, int, int, Detail], /) -> Plan[int, Detail]:
        """Set what differs."""
        if view.want == view.have:
            return Plan()
        return Plan(steps=(Step(scope=(view.key,), verb="set", detail=(view.key, view.want)),))

    def perform(self, step: Step[Detail], cancel: Cancel, /) -> None:
        """Note when it began."""
        del step, cancel
        self.began_s = time.perf_counter()
        self.began.set()

    def settled(self, have: int | None, step: Step[Detail], outcome: Outcome[None], /) -> int | None:
        """As it was set."""
        return step.detail[1] if isinstance(outcome, Done) else have


def _filled(size: int, *, inline: bool) -> tuple[Numbers, World[int, int], Engine]:
    desired: World[int, int] = World("desired")
    actual: World[int, int] = World("actual")
    for key in range(size):
        desired.put(key, 0)
        actual.put(key, 0)
    domain = Numbers()
    reconciler = Reconciler(
        domain,
        desired=desired,
        actual=actual,
        executor=InlineExecutor() if inline else ThreadExecutor(),
        resync_s=None,
    )
    reconciler.run_until_quiet()
    return domain, desired, reconciler


def _passes() -> Iterator[tuple[int, float, float]]:
    """For each size: nanoseconds of a pass that finds nothing, and of one change carried out."""
    for size in SIZES:
        _, desired, reconciler = _filled(size, inline=True)
        gc.collect()
        idle = best_ns(reconciler.reconcile)
        turn = [0]

        def change(
            desired: World[int, int] = desired,
            reconciler: Engine = reconciler,
            turn: list[int] = turn,
            size: int = size,
        ) -> None:
            turn[0] += 1
            desired.put(turn[0] * 7919 % size, turn[0])
            reconciler.run_until_quiet()

        yield size, idle, best_ns(change)


def _latency_ms() -> tuple[float, float]:
    """Median and largest milliseconds from a change to the start of its operation, at 10,000 keys."""
    domain, desired, reconciler = _filled(10_000, inline=False)
    waits: list[float] = []
    with reconciler:
        for turn in range(1, 201):
            time.sleep(0.001)
            domain.began.clear()
            changed_s = time.perf_counter()
            desired.put(turn * 7919 % 10_000, turn)
            domain.began.wait(10)
            waits.append((domain.began_s - changed_s) * 1000)
    return statistics.median(waits), max(waits)


def figures() -> Iterator[Figure]:
    """Growth of passes, and latency."""
    rows = list(_passes())
    idle = [(size, found / rows[0][1]) for size, found, _ in rows]
    change = [(size, found / rows[0][2]) for size, _, found in rows]
    yield Figure(
        package="dsw_asw",
        name="pass over unchanged keys, 100,000 against 100",
        value=idle[-1][1],
        unit="×",
        at_most=2.0,
        growth=idle,
        growth_of="keys",
    )
    yield Figure(
        package="dsw_asw",
        name="one change carried out, among 100,000 keys against 100",
        value=change[-1][1],
        unit="×",
        at_most=2.0,
        growth=change,
        growth_of="keys",
    )
    yield Figure(package="dsw_asw", name="pass that finds nothing", value=rows[-1][1] / 1000, unit="µs")
    yield Figure(
        package="dsw_asw", name="one change, planned, run, settled", value=rows[-1][2] / 1000, unit="µs"
    )
    median, largest = _latency_ms()
    yield Figure(
        package="dsw_asw",
        name="change to start of operation, 10,000 keys, median of 200",
        value=median,
        unit="ms",
        at_most=10.0,
    )
    yield Figure(
        package="dsw_asw",
        name="change to start of operation, 10,000 keys, largest of 200",
        value=largest,
        unit="ms",
    )
