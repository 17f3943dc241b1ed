"""Parts that are handed to a simulation wrongly are refused there, and not as a life that went wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nodealloc.errors import ConfigurationError
from nodealloc.testing.simulation import ViolationError
from nodealloc.testing.simulation.node import GUARANTEES, NodeSimulation, agent, agent_with
from nodealloc.topology import Policy


def wrong(value: object) -> Any:
    """A value of a type that does not belong there."""
    return value


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: NodeSimulation(wrong("0"), agent), "seed: expected a whole number, found '0'"),
        (lambda: NodeSimulation(0, wrong("mine:wire")), "wiring: expected something to call"),
        (lambda: NodeSimulation(0, agent, machine=wrong("2 cores")), "machine: expected a Machine"),
        (lambda: NodeSimulation(0, agent, guarantees=wrong(str)), "guarantees: .*derive from Guarantee"),
        (lambda: NodeSimulation(0, agent, guarantees=[wrong(None)]), "guarantees: .*derive from Guarantee"),
        (lambda: agent_with(preparations=wrong("licence")), "preparations: expected a list or tuple of Prep"),
        (lambda: agent_with(allocators=wrong([])), "allocators: expected something to call or None"),
        (lambda: agent_with(chain=wrong(len)), "chain: expected a Chain or None"),
        (lambda: agent_with(policy=wrong("single-numa-nodes")), "unknown topology policy"),
    ],
)
def test_a_part_of_another_kind_is_refused_at_once(call: Callable[[], object], says: str) -> None:
    """It was a TypeError from inside, or a violation at second 0; a list of allocators was left out."""
    with pytest.raises(ConfigurationError, match=says):
        call()


def test_a_policy_may_be_its_word() -> None:
    """And one class of guarantees is several."""
    for policy in (wrong("none"), Policy.parse("none"), None):
        assert callable(agent_with(policy=policy))
    assert NodeSimulation(0, agent, guarantees=wrong(GUARANTEES[0])).broken == ""


def test_a_wiring_that_returns_nothing_is_told_as_that() -> None:
    """And not by what its answer has not."""
    with (
        NodeSimulation(0, wrong(lambda _ports: None)) as node,
        pytest.raises(ViolationError, match="a wiring's answer: expected something that the engine drives"),
    ):
        node.run()
