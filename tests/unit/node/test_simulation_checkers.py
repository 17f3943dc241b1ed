"""Checkers of the simulated node's guarantees: what they refuse, and what they have to let pass."""

from __future__ import annotations

import random

import attrs
import pytest

from nodealloc.podspec import Container, Pod
from nodealloc.testing.simulation import SimulatedClock
from nodealloc.testing.simulation.node import Deed, Deletion, Outside, What
from nodealloc.testing.simulation.node._ending import GraceIsGiven

ASKED_TO_END = Deed(what=What.SIGNALLED, at_s=0.0, uid="u", name="app", id="c", value=0.0)


def outside(own_s: int) -> Outside:
    """A node with a pod of that grace, whose deletion within 10 s was asked for now."""
    made = Outside(SimulatedClock(), random.Random(1))
    made.known["u"] = Pod(
        uid="u",
        name="u",
        namespace="n",
        containers=(Container(name="app", image="busybox"),),
        termination_grace_period_seconds=own_s,
    )
    made.deletions["u"] = Deletion(at_s=0.0, passed_s=0.0, grace_s=10.0)
    return made


def test_who_is_asked_to_end_has_the_time_that_was_given() -> None:
    """At once is too soon where both the pod and its deletion leave time."""
    with pytest.raises(AssertionError, match=r"u/app gets 0 s to end, and 5\.0 s of the pod's are left"):
        GraceIsGiven(outside(own_s=5)).heard(ASKED_TO_END)
    GraceIsGiven(outside(own_s=5)).heard(attrs.evolve(ASKED_TO_END, value=5.0))


def test_a_pod_that_ended_by_itself_has_its_own_grace_and_no_more() -> None:
    """Its deletion, with a longer one, was asked for before the agent read of it."""
    GraceIsGiven(outside(own_s=0)).heard(ASKED_TO_END)
