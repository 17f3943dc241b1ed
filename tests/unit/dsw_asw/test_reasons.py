"""What is a reason for a plan: of a near record what counts, of its own record what others wrote."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from nodealloc.dsw_asw import Cancel, InlineExecutor, Near, Outcome, Plan, Reconciler, Step, View, World
from nodealloc.testing.dsw_asw import ManualExecutor


class Sizes:
    """Looks at the tens of numbers, and notes when it is asked."""

    def __init__(self, near: Near[str, str, int]) -> None:
        self.near = near
        self.asked: list[tuple[str, int | None]] = []

    def plan(self, view: View[str, int, int, str]) -> Plan[int, str]:
        """Note what was looked at."""
        number = view.of(self.near).get("number")
        self.asked.append((view.key, number))
        return Plan()

    def perform(self, step: Step[str], cancel: Cancel) -> None:
        """Never asked."""
        raise AssertionError

    def settled(self, have: int | None, step: Step[str], outcome: Outcome[None]) -> int | None:
        """Never asked."""
        raise AssertionError


def _engine(
    looks: Callable[[str], Sequence[str]] = lambda _: ["number"],
    counts: Callable[[int], int] = lambda one: one // 10,
) -> tuple[World[str, int], World[str, int], Sizes, Reconciler[str, int, int, str]]:
    wanted: World[str, int] = World("wanted")
    numbers: World[str, int] = World("numbers")
    near: Near[str, str, int] = Near(numbers, looks, counts)
    sizes = Sizes(near)
    engine = Reconciler(
        sizes,
        desired=wanted,
        actual=World[str, int]("had"),
        executor=InlineExecutor(),
        near=[near],
        resync_s=None,
    )
    return wanted, numbers, sizes, engine


def test_a_change_that_does_not_count_wakes_nobody() -> None:
    """The record is seen whole; a change of its ones is no reason to plan, one of its tens is."""
    wanted, numbers, sizes, engine = _engine()
    numbers.put("number", 10)
    wanted.put("a", 1)
    engine.run_until_quiet()
    numbers.put("number", 13)
    engine.run_until_quiet()
    assert sizes.asked == [("a", 10)]
    numbers.put("number", 25)
    engine.run_until_quiet()
    numbers.drop("number")
    engine.run_until_quiet()
    numbers.put("number", 25)
    engine.run_until_quiet()
    assert sizes.asked == [("a", 10), ("a", 25), ("a", None), ("a", 25)]


def test_who_looked_in_between_hears_that_it_is_as_before() -> None:
    """Two keys look at one record, the second while it is otherwise: it hears of its way back."""
    wanted, numbers, sizes, engine = _engine()
    numbers.put("number", 10)
    wanted.put("a", 1)
    engine.run_until_quiet()
    numbers.put("number", 20)
    wanted.put("b", 1)
    # `a` is woken by the change before both look; what follows is undone behind the back of `a` alone.
    engine.reconcile()
    numbers.put("number", 10)
    engine.run_until_quiet()
    assert dict(sizes.asked) == {"a": 10, "b": 10}


class Doubled:
    """Derives a record from what is wanted; notes when it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def plan(self, view: View[str, int, int, str]) -> Plan[int, str]:
        """Twice as much."""
        self.asked += 1
        return Plan(have=None if view.want is None else 2 * view.want)

    def perform(self, step: Step[str], cancel: Cancel) -> None:
        """Never asked."""
        raise AssertionError

    def settled(self, have: int | None, step: Step[str], outcome: Outcome[None]) -> int | None:
        """Never asked."""
        raise AssertionError


@pytest.mark.parametrize("plans_once", [True, False])
def test_what_a_plan_wrote_is_no_reason_for_another_where_that_would_be_the_same(plans_once: bool) -> None:
    """What anybody else writes is one, also of the same key in the same moment."""
    wanted: World[str, int] = World("wanted")
    made: World[str, int] = World("made")
    doubled = Doubled()
    engine: Reconciler[str, int, int, str] = Reconciler(
        doubled,
        desired=wanted,
        actual=made,
        executor=InlineExecutor(),
        resync_s=None,
        plans_once=plans_once,
    )
    wanted.put("a", 1)
    engine.run_until_quiet()
    assert (made.get("a"), doubled.asked) == (2, 1 if plans_once else 2)
    made.put("a", 7, by="somebody")
    engine.run_until_quiet()
    assert made.get("a") == 2
    asked = doubled.asked
    wanted.put("a", 3)
    engine.reconcile()
    made.put("a", 7, by="somebody")
    engine.run_until_quiet()
    assert made.get("a") == 6
    assert doubled.asked > asked + 1


class Twice:
    """Two steps for each key, one after the other."""

    def __init__(self) -> None:
        self.done: list[tuple[str, int]] = []

    def plan(self, view: View[str, int, int, int]) -> Plan[int, int]:
        """The next one."""
        have = view.have or 0
        if have == 2 or view.running:
            return Plan()
        return Plan(steps=[Step(scope=(view.key,), verb="do", detail=have + 1)])

    def perform(self, step: Step[int], cancel: Cancel) -> int:
        """Note it."""
        self.done.append((str(step.scope[0]), step.detail))
        return step.detail

    def settled(self, have: int | None, step: Step[int], outcome: Outcome[int]) -> int | None:
        """So many."""
        return step.detail


def test_what_is_under_way_ends_before_more_is_begun_than_a_batch() -> None:
    """And what is new comes in all the same, however much is under way."""
    wanted: World[int, int] = World("wanted")
    twice, executor = Twice(), ManualExecutor()
    engine: Reconciler[int, int, int, int, int] = Reconciler(
        twice,  # type: ignore[arg-type]
        desired=wanted,
        actual=World("had"),
        executor=executor,
        resync_s=None,
        batch=4,
    )
    for key in range(20):
        wanted.put(key, 1)
    assert engine.reconcile().planned == 4
    while engine.has_work or executor.run_all():
        assert engine.reconcile().planned <= 4
        executor.run_all()
    order = [(int(key), step) for key, step in twice.done]
    assert sorted(order) == [(key, step) for key in range(20) for step in (1, 2)]
    assert order.index((0, 2)) < order.index((8, 1))
    assert [key for key, step in order if step == 1] == list(range(20))


def test_what_is_planned_once_may_change_any_number_of_times() -> None:
    """Each plan has a reason of its own there: nobody takes them for one that never rests."""
    wanted: World[str, int] = World("wanted")
    made: World[str, int] = World("made")
    engine: Reconciler[str, int, int, str] = Reconciler(
        Doubled(), desired=wanted, actual=made, executor=InlineExecutor(), resync_s=None, plans_once=True
    )
    for number in range(1, 301):
        wanted.put("a", number)
        engine.run_until_quiet()
        assert made.get("a") == 2 * number
    assert engine.failures("a") == ()


def test_a_record_that_cannot_be_judged_costs_who_looks_at_it_alone() -> None:
    """`counts` raised: others that are due are planned, who looks at it is held off, and comes back."""
    wanted, numbers, sizes, engine = _engine(lambda key: ["number"] * (key == "a"), lambda one: 100 // one)
    numbers.put("number", 10)
    wanted.put("a", 1)
    engine.run_until_quiet()
    numbers.put("number", 0)
    wanted.put("b", 1)
    engine.run_until_quiet()
    assert sizes.asked == [("a", 10), ("b", None)]
    assert isinstance(engine.failures("a")[0].error, ZeroDivisionError)
    numbers.put("number", 5)
    engine.run_until_quiet()
    assert sizes.asked[2:] == [("a", 5)]
