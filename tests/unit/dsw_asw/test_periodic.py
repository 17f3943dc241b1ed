"""What time alone brings."""

from __future__ import annotations

import pytest

from nodealloc.dsw_asw import InlineExecutor, Periodic
from nodealloc.errors import ConfigurationError
from nodealloc.testing.dsw_asw import VirtualClock


def test_turns_come_in_time_and_those_slept_over_are_left_out() -> None:
    """They keep to their first moment, whenever a pass comes."""
    clock, turns = VirtualClock(), list[int]()
    looks = Periodic(
        turns.append, every_s=10.0, first_s=5.0, executor=InlineExecutor(), clock=clock, name="looks"
    )
    for wait_s, so_far in ((0.0, []), (4.0, []), (1.0, [0]), (9.0, [0]), (2.0, [0, 1]), (39.0, [0, 1, 5])):
        clock.advance(wait_s)
        looks.run_until_quiet()
        assert turns == so_far
    assert looks.seconds_to_next() == pytest.approx(10.0)


def test_a_call_that_raises_is_made_again_after_its_back_off() -> None:
    """And not by the next pass."""
    clock, calls = VirtualClock(), list[int]()

    def look(turn: int) -> None:
        calls.append(turn)
        if len(calls) == 1:
            raise OSError("not now")

    looks = Periodic(look, every_s=60.0, executor=InlineExecutor(), clock=clock, name="looks")
    looks.run_until_quiet()
    looks.run_until_quiet()
    assert calls == [0]
    clock.advance(5.0)
    looks.run_until_quiet()
    assert calls == [0, 0]


@pytest.mark.parametrize("every_s", [0.0, -1.0, float("nan"), float("inf")])
def test_a_period_is_above_nothing(every_s: float) -> None:
    """A loop without a wait, or a call that never comes."""
    with pytest.raises(ConfigurationError, match="every_s: expected"):
        Periodic(print, every_s=every_s, name="looks")
