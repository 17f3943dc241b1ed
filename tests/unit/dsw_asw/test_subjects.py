"""Steps of one plan that share a scope and a verb: what failed or rests of one is no other's."""

from __future__ import annotations

import pytest

from nodealloc.dsw_asw import (
    BackOff,
    Cancel,
    Done,
    InlineExecutor,
    Outcome,
    Plan,
    Reconciler,
    Step,
    View,
    World,
)
from nodealloc.testing.dsw_asw import VirtualClock

Names = tuple[str, ...]


class Fetches:
    """A key wants names; all are fetched in one scope, each as a subject of its own."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.tried: list[tuple[str, float]] = []
        self.can_be_had: set[str] = set()
        self.looks_again_s: float | None = None

    def plan(self, view: View[str, Names, Names, str], /) -> Plan[Names, str]:
        """Fetch what is not there."""
        lacking = [name for name in view.want or () if name not in (view.have or ())]
        return Plan(
            steps=[
                Step(
                    scope=("fetches",),
                    verb="fetch",
                    detail=name,
                    subject=name,
                    may_change_nothing=self.looks_again_s is not None,
                )
                for name in lacking
            ]
        )

    def perform(self, step: Step[str], _cancel: Cancel, /) -> Done[bool]:
        """Note when."""
        self.tried.append((step.detail, self.clock.monotonic_s()))
        if len(self.tried) > 100:
            pytest.fail("they are tried without end")
        is_there = step.detail in self.can_be_had
        if not is_there and self.looks_again_s is None:
            raise OSError(step.detail)
        return Done(is_there, again_after_s=None if is_there else self.looks_again_s)

    def settled(self, have: Names | None, step: Step[str], outcome: Outcome[bool], /) -> Names | None:
        """What came is there."""
        came = isinstance(outcome, Done) and outcome.result
        return (*(have or ()), step.detail) if came else have


class Bench:
    """An engine whose one key wants names, at virtual times from 0."""

    def __init__(self, *names: str) -> None:
        self.clock = VirtualClock()
        self.began_s = self.clock.monotonic_s()
        self.fetches = Fetches(self.clock)
        self.wanted: World[str, Names] = World("wanted")
        self.engine = Reconciler(
            self.fetches,
            desired=self.wanted,
            actual=World[str, Names]("there"),
            executor=InlineExecutor(),
            clock=self.clock,
            back_off=BackOff(initial_s=1.0, factor=2.0, max_s=8.0),
            resync_s=None,
        )
        self.wanted.put("key", names)

    def until(self, now_s: float) -> list[tuple[str, float]]:
        """What was tried, and when."""
        while True:
            self.engine.run_until_quiet()
            left_s = now_s - (self.clock.monotonic_s() - self.began_s)
            wait_s = self.engine.seconds_to_next()
            if wait_s is None or wait_s > left_s:
                self.clock.advance(left_s)
                return [(name, at_s - self.began_s) for name, at_s in self.fetches.tried]
            self.clock.advance(wait_s)


def test_each_waits_by_its_own_failures() -> None:
    """The failure of one took the place of the other's, and both were tried at once, without end."""
    bench = Bench("a", "b")
    assert bench.until(4.0) == [("a", 0.0), ("b", 0.0), ("a", 1.0), ("b", 1.0), ("a", 3.0), ("b", 3.0)]
    assert [(one.subject, one.tries) for one in bench.engine.failures("key")] == [("a", 3), ("b", 3)]


def test_each_rests_by_itself() -> None:
    """The rest of one took the place of the other's."""
    bench = Bench("a", "b")
    bench.fetches.looks_again_s = 2.0
    assert bench.until(3.0) == [("a", 0.0), ("b", 0.0), ("a", 2.0), ("b", 2.0)]


def test_what_comes_ends_no_wait_of_another() -> None:
    """What one that came had failed with is forgotten; the other's next try is due when it was."""
    bench = Bench("a", "b")
    bench.until(1.5)
    bench.fetches.can_be_had.add("a")
    assert bench.until(4.0)[4:] == [("a", 3.0), ("b", 3.0)]
    assert [(one.subject, one.tries) for one in bench.engine.failures("key")] == [("b", 3)]


def test_a_failure_whose_subject_is_not_planned_any_more_is_shown_no_longer() -> None:
    """Another one took its place, as a pod that was removed and added again."""
    bench = Bench("a")
    bench.until(0.5)
    bench.wanted.put("key", ("b",))
    assert bench.until(0.5) == [("a", 0.0), ("b", 0.5)]
    assert [one.subject for one in bench.engine.failures("key")] == ["b"]
    assert bench.engine.reconcile().held_off == 1


def test_what_rested_until_now_is_forgotten() -> None:
    """A subject that is another one each time leaves nothing behind."""
    bench = Bench("0")
    bench.fetches.looks_again_s = 2.0
    for turn in range(30):
        bench.wanted.put("key", (str(turn),))
        bench.until(3.0 * turn)
    rests = bench.engine._bookkeeping.rests
    assert sum(map(len, rests._by_key.values())) == 1
