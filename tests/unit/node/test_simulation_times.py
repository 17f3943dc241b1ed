"""The checker of times that stand: since when a pod waits is told once."""

from __future__ import annotations

import pytest

from nodealloc.podfacts import ConditionStatus, PodCondition, PodPhase, PodStatus
from nodealloc.testing.simulation.node import What
from nodealloc.testing.simulation.node._standing import TimesStand
from tests.unit.node.simulated_scene import Scene

NOT = ConditionStatus.FALSE


def listened(scene: Scene) -> Scene:
    """With the checker, on a node on which agents are killed and nothing else goes wrong."""
    scene.outside.only_ends = True
    scene.outside.deeds.listen(TimesStand(scene.outside).heard)
    return scene


def says(scene: Scene, since_s: float, message: str = "") -> None:
    """A pod is told to be not initialized since then."""
    one = PodCondition(type="Initialized", status=NOT, message=message, last_transition_unix_s=since_s)
    scene.outside.tell("u", PodStatus(phase=PodPhase.PENDING, conditions=(one,)))


def test_since_when_a_pod_waits_does_not_move_with_the_words() -> None:
    """Which of its init containers are missing says nothing about since when one is."""
    scene = listened(Scene())
    scene.wants()
    says(scene, 5.0, "containers with incomplete status: [a b]")
    says(scene, 5.0, "containers with incomplete status: [b]")
    with pytest.raises(AssertionError, match=r"u was told to be Initialized \(False\) since 5.0, and now"):
        says(scene, 6.0, "containers with incomplete status: [b]")


def test_a_pod_that_was_up_may_wait_anew() -> None:
    """That it was up in between need not have been told."""
    scene = listened(Scene())
    scene.wants()
    says(scene, 5.0)
    scene.runs()
    says(scene, 6.0)


def test_what_was_told_a_moment_before_a_kill_may_be_told_otherwise() -> None:
    """It need not have been remembered."""
    scene = listened(Scene())
    scene.wants()
    says(scene, 5.0)
    scene.happens(What.KILLED)
    says(scene, 6.0)
