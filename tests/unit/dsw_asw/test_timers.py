"""What is due at a moment: the soonest is always known, whatever was cancelled meanwhile."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from nodealloc.dsw_asw._timers import Timer, Timers

STEPS = st.lists(st.tuples(st.sampled_from(("add", "cancel", "run")), st.integers(0, 12)), max_size=120)


def nothing() -> None:
    """What is due does not matter here."""


def test_a_first_one_that_is_cancelled_is_not_waited_for() -> None:
    """The next one is due then, and nothing when there is none."""
    timers = Timers()
    first, second = timers.add(1.0, nothing), timers.add(2.0, nothing)
    first.cancel()
    assert timers.soonest_s == 2.0
    second.cancel()
    assert (timers.soonest_s, len(timers)) == (math.inf, 0)


@given(STEPS)
def test_the_soonest_is_that_of_all_that_will_run(steps: list[tuple[str, int]]) -> None:
    """After any history; those that are cancelled run never, the others once."""
    timers, waiting, ran = Timers(), list[Timer](), list[float]()
    for what, number in steps:
        if what == "add":
            due_s = float(number)
            waiting.append(timers.add(due_s, lambda due_s=due_s: ran.append(due_s)))  # type: ignore[misc]
        elif what == "cancel" and waiting:
            waiting.pop(number % len(waiting)).cancel()
        elif what == "run":
            due = sorted(one.due_s for one in waiting if one.due_s <= number)
            waiting = [one for one in waiting if one.due_s > number]
            ran.clear()
            timers.run_due(float(number))
            assert ran == due
        assert timers.soonest_s == min((one.due_s for one in waiting), default=math.inf)
        assert len(timers) == len(waiting)
