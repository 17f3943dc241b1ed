"""What of a near record counts: changes of anything else wake nobody, and none that counts is lost."""

from __future__ import annotations

from nodealloc.dsw_asw import Cancel, InlineExecutor, Near, Outcome, Plan, Reconciler, Step, View, World


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


def _engine() -> tuple[World[str, int], World[str, int], Sizes, Reconciler[str, int, int, str]]:
    wanted: World[str, int] = World("wanted")
    numbers: World[str, int] = World("numbers")
    near: Near[str, str, int] = Near(numbers, lambda _: ["number"], lambda one: one // 10)
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
