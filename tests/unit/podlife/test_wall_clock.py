"""Somebody sets the wall clock: what lasts is counted on the monotonic one, what is told may go back."""

from __future__ import annotations

import functools

import pytest

from nodealloc.podlife import LifePolicy, RestartBackOff
from tests.unit.podlife_node import Node, pod

DAY_S = 86_400.0
BACK_OFF = RestartBackOff(base_s=10.0, cap_s=300.0)


class SetNode(Node):
    """A node whose wall clock can be set."""

    set_s = 0.0

    def unix_s(self) -> float:
        """The wall clock, as far off as it was set."""
        return super().unix_s() + self.set_s

    def history(self) -> tuple[object, ...]:
        """What was done so far, what runs, and how far the pods have come."""
        lives = {uid: record.value.life for uid, record in self.lives.pods.snapshot().items()}
        return (
            self.clock.monotonic_s(),
            len(self.calls()),
            *self.running("crashes"),
            *sorted(map(str, lives.items())),
        )


def lived(set_s: float, *, killed: bool) -> list[tuple[object, ...]]:
    """A pod that crashes three times, and has a minute in all, then grace; the clock is set after each crash.

    Args:
        set_s: By how much, each time.
        killed: Whether the agent is killed each time too, and reads its records.
    """
    node = SetNode(policy=LifePolicy(pulls_at_once=None, restarts=BACK_OFF))
    node.lives.put(pod("crashes"))
    node.lives.put(pod("limited", active_deadline_seconds=60, grace_s=20))
    told: list[tuple[object, ...]] = []
    node.after(2)
    for _ in range(3):
        node.exit("app", 1, "crashes")
        node.settle()
        node.set_s += set_s
        if killed:
            node.kill_agent()
            node.lives.put(pod("crashes"))
            node.lives.put(pod("limited", active_deadline_seconds=60, grace_s=20))
            node.lives.heard()
        for _ in range(30):
            node.after(1)
            told.append(node.history())
    node.lives.remove("crashes", grace_s=10)
    node.set_s += set_s
    for _ in range(40):
        node.after(1)
        told.append(node.history())
    return [*told, tuple(node.stops)]


undisturbed = functools.cache(functools.partial(lived, 0.0))


@pytest.mark.parametrize("killed", [False, True], ids=["one agent", "killed agents"])
@pytest.mark.parametrize("set_s", [-DAY_S, DAY_S], ids=["set back", "set ahead"])
def test_a_clock_that_is_set_moves_no_back_off_deadline_or_grace(set_s: float, killed: bool) -> None:
    """Every second is as it is with a clock that nobody sets."""
    expected = undisturbed(killed=killed)
    assert any("app#3" in line for line in expected)
    assert lived(set_s, killed=killed) == expected


@pytest.mark.parametrize("set_s", [-20_000 * DAY_S, -DAY_S, 0.0, DAY_S])
def test_a_boot_that_begins_in_the_past_holds_nobody_up(set_s: float) -> None:
    """A machine without a clock of its own: what has been is not to come, and no wait lasts until then."""
    node = SetNode(policy=LifePolicy(pulls_at_once=None, restarts=BACK_OFF))
    limited = pod("limited", active_deadline_seconds=60)
    for one in (pod("crashes"), limited):
        node.lives.put(one)
    node.after(2)
    for _ in range(2):
        node.exit("app", 1, "crashes")
        node.after(1)
        node.after(20)
    node.exit("app", 1, "crashes")
    node.after(1)
    waiting = node.running("crashes")
    assert waiting == []
    node.runtime.lose_records(*[one.record.id for one in node.containers("limited")])
    node.boot_id = "boot-2"
    node.set_s += set_s
    node.kill_agent()
    for one in (pod("crashes"), limited):
        node.lives.put(one)
    node.lives.heard()
    node.after(41, step_s=1.0)
    assert len(node.running("crashes")) == 1, "its back-off is 40 s at most"
    node.after(41, step_s=1.0)
    assert node.life("limited").is_over, "its minute is over"
