"""Thousands of pods that are refused: what it costs to remember them, and who waits behind them."""

from __future__ import annotations

from collections.abc import Mapping

from nodealloc.checkpoint import JsonCheckpoint
from nodealloc.dsw_asw import Cancel
from nodealloc.podfacts import LifeState
from nodealloc.podlife import POD_ROWS, Preparation
from nodealloc.podspec import Pod
from nodealloc.testing.dsw_asw import MemoryJournal
from nodealloc.verdicts import Admitted, Refused
from tests.unit.podlife_node import Node, pod

MANY = 600


class Door:
    """Lets good pods in, and notes whom it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def make_ready(self, pod: Pod, _cancel: Cancel, /) -> Admitted | Refused:
        """By its name."""
        self.asked.append(pod.uid)
        return Admitted() if pod.uid.startswith("good") else Refused(reason="NodeAffinity", message="no")

    def take_back(self, _pod: Pod, _cancel: Cancel, /) -> None:
        """Nothing was made."""


class CountingJournal(MemoryJournal[JsonCheckpoint]):
    """Notes how many rows of pods each commit writes."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def commit(self, changes: Mapping[str, JsonCheckpoint | None], /) -> None:
        """Note it, and keep them."""
        self.sizes.append(sum(key.startswith(POD_ROWS) for key in changes))
        super().commit(changes)


def flooded() -> tuple[Node, Door, CountingJournal]:
    """A node that has just heard of many pods that nobody lets in."""
    door, journal = Door(), CountingJournal()
    node = Node(preparations=[Preparation(name="admission", why="pods are let in", by=door)])
    node.journal = journal
    node.start_agent()
    node.lives.heard()
    node.settle()
    journal.sizes.clear()
    for number in range(MANY):
        node.lives.put(pod(f"bad{number}"))
    return node, door, journal


def test_a_refused_pod_is_written_down_three_times_and_many_share_a_commit() -> None:
    """That it is asked for, that it was refused, and that nothing is left of it; of a few one twice."""
    node, door, journal = flooded()
    while node.group.has_work or node.executor.run_all():
        node.group.reconcile()
        node.executor.run_all()
    assert {node.life(f"bad{number}") for number in range(MANY)} == {LifeState.FINISHED}
    assert door.asked == [f"bad{number}" for number in range(MANY)]
    assert sum(journal.sizes) <= 3.1 * MANY
    assert len(journal.sizes) <= 3 * MANY / 16


def test_a_good_pod_does_not_wait_behind_hundreds_that_are_refused() -> None:
    """It is let in among the next, and runs while they are still asked for."""
    node, door, _ = flooded()
    node.group.reconcile()
    node.executor.run_all()
    node.lives.put(pod("good"))
    for _ in range(12):
        node.group.reconcile()
        node.executor.run_all()
    assert node.running("good") == ["app#0"]
    assert len(door.asked) < MANY / 2
    node.settle()
    assert [uid for uid in door.asked if uid != "good"] == [f"bad{number}" for number in range(MANY)]
