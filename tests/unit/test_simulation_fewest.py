"""The fewest faults of a seed that break the same guarantee."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from nodealloc.testing.simulation import Chance, FaultOccurrence, ViolationError
from nodealloc.testing.simulation.node import CLASSES, NodeSimulation, agent, shrunk, spoiled
from nodealloc.testing.simulation.node._fewest import fewest


def test_what_does_not_matter_is_left_out() -> None:
    """Of a thousand, the three that are needed stay, in their order."""
    asked: list[Sequence[int]] = []

    def suffice(part: Sequence[int]) -> bool:
        asked.append(part)
        return {3, 500, 998} <= set(part)

    assert fewest(range(1000), suffice, tries=500) == (3, 500, 998)
    assert len(asked) == len({tuple(part) for part in asked}), "a part was asked for twice"
    assert len(asked) < 100


def test_nothing_is_left_where_nothing_is_needed() -> None:
    """Also of one, and of none."""
    for count in (0, 1, 2, 7):
        assert fewest(range(count), lambda _: True, tries=50) == ()


def test_all_stay_where_all_are_needed() -> None:
    """No part suffices."""
    assert fewest("abcde", lambda part: len(part) == 5, tries=100) == tuple("abcde")


def test_a_search_ends_with_its_tries() -> None:
    """What is left by then suffices, and is more than is needed."""
    left = fewest(range(1000), lambda part: {3, 998} <= set(part), tries=5)
    assert {3, 998} < set(left) < set(range(1000))


def test_only_the_strikes_that_are_named_happen() -> None:
    """Each at the time that it was asked for; what is drawn stays the same."""
    free = Chance(random.Random(7), {"fire": 0.3, "flood": 0.3})
    faults = ["fire", "flood"] * 20
    struck = [free.strikes(fault) for fault in faults]
    assert sum(struck) == len(free.faults_made) > 5

    again = Chance(random.Random(7), {"fire": 0.3, "flood": 0.3}, only=free.faults_made)
    assert [again.strikes(fault) for fault in faults] == struck
    assert again.rng.random() == free.rng.random()

    one = Chance(
        random.Random(7),
        {"fire": 0.3, "flood": 0.3},
        only=[FaultOccurrence("flood", 3), FaultOccurrence("fire", 99)],
    )
    assert [at for at, fault in enumerate(faults) if one.strikes(fault)] == [5]


def test_a_life_with_its_own_strikes_is_the_same_life() -> None:
    """Line by line: so that leaving out none of them changes nothing."""
    with NodeSimulation(2, agent) as node:
        node.run()
        story = [str(line) for line in node.story]
        strikes = tuple(node.simulation.chance.faults_made)
    with NodeSimulation(2, agent, only=strikes) as node:
        node.run()
        assert [str(line) for line in node.story] == story


def found(plant: str, seeds: Sequence[int], *, behind: int, said: str = "") -> int:
    """The first of the seeds whose life finds a planted bug, and says so, behind so many faults or more."""
    for seed in seeds:
        with NodeSimulation(seed, spoiled(agent, plant)) as node:
            try:
                node.run()
            except ViolationError as error:
                if said in error.what and len(node.simulation.chance.faults_made) >= behind:
                    return seed
    raise AssertionError(f"none of {seeds} finds {plant}")


@pytest.mark.slow
def test_the_story_of_a_planted_bug_shrinks_to_a_handful_of_faults() -> None:
    """The bug needs a lost answer: of all that went wrong little more than that is told."""
    seed = found(
        "doubled-start", range(686, 686 + 40 * len(CLASSES), len(CLASSES)), behind=8, said="runs 2 times"
    )
    less = shrunk(seed, lambda: spoiled(agent, "doubled-start"), tries=100, seconds=600.0)
    assert less is not None
    assert 1 <= len(less.faults) <= 5 < less.of
    assert {"answer is lost", "runtime is slow", "runtime hangs"} & {one.fault for one in less.faults}
    assert "runs 2 times" in less.violation.what
    marked = [line for line in less.story if line.endswith("<- fault")]
    assert 1 <= len(marked) <= len(less.faults)
    assert str(less).startswith(f"{len(less.faults)} of {less.of} faults suffice; with these alone, at ")

    with (
        NodeSimulation(seed, spoiled(agent, "doubled-start"), only=less.faults) as node,
        pytest.raises(ViolationError) as again,
    ):
        node.run()
    assert again.value.what == less.violation.what


def test_a_life_without_a_violation_has_nothing_to_shrink() -> None:
    """No faults are named where nothing was found."""
    assert shrunk(0, lambda: agent) is None
