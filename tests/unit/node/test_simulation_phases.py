"""The checker of phases: who has failed has something that failed, or somebody says why."""

from __future__ import annotations

import pytest

from nodealloc.podfacts import ContainerStatus, ContainerTerminated, Exited, ExitUnknown, PodPhase
from nodealloc.runtime import Exit
from nodealloc.testing.simulation.node._stated import PhaseIsTrue
from tests.unit.node.simulated_scene import Scene

DONE = Exited(code=0)


def listened(scene: Scene) -> Scene:
    """With the checker, on a node on which agents are killed and nothing else goes wrong."""
    scene.environment.only_ends = True
    scene.environment.events.listen(PhaseIsTrue(scene.environment).heard)
    return scene


def ended(how: Exit) -> ContainerStatus:
    """A container that has ended so."""
    return ContainerStatus(name="app", state=ContainerTerminated(exit=how))


def test_a_pod_of_which_all_has_succeeded_has_not_failed() -> None:
    """Whatever its policy is."""
    scene = listened(Scene())
    scene.wants()
    with pytest.raises(AssertionError, match=r"u is told to have failed, and all of it has succeeded"):
        scene.told(PodPhase.FAILED, containers=[ended(DONE)])


def test_somebody_may_have_ended_what_succeeded() -> None:
    """A deadline, or room for another."""
    scene = listened(Scene())
    scene.wants()
    scene.told(PodPhase.FAILED, containers=[ended(DONE)], reason="DeadlineExceeded")


@pytest.mark.parametrize("how", [Exited(code=1), ExitUnknown()], ids=["failed", "unknown"])
def test_what_a_pod_came_to_stays(how: Exit) -> None:
    """More may be known of its containers later."""
    scene = listened(Scene())
    scene.wants()
    scene.told(PodPhase.FAILED, containers=[ended(how)])
    scene.told(PodPhase.FAILED, containers=[ended(DONE)])
