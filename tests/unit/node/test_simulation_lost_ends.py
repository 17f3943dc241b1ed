"""What is told of a container that vanished: its checker lets pass what is true, also what comes late."""

from __future__ import annotations

import attrs
import pytest

from nodealloc.podfacts import (
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    ExitUnknown,
)
from nodealloc.testing.simulation.node._behaviour import IMAGE
from nodealloc.testing.simulation.node._stated import LostEndIsTold
from tests.unit.node.simulated_scene import Scene

RUNS = ContainerRunning()


def ended(container_id: str) -> ContainerTerminated:
    """It is not known how."""
    return ContainerTerminated(exit=ExitUnknown(), container_id=f"sim://{container_id}")


def vanished() -> tuple[Scene, list[str]]:
    """A container was told to run and vanished, and two more of it were made since; ids of all."""
    scene = Scene()
    scene.environment.events.listen(LostEndIsTold(scene.environment).heard)
    scene.wants()
    made = [scene.runs()]
    tells(scene, made[0], RUNS)
    scene.environment.containers.vanish(made[0])
    made.append(scene.runs(attempt=1))
    scene.crashes(made[1])
    made.append(scene.runs(attempt=2))
    return scene, made


def tells(
    scene: Scene, container_id: str, state: ContainerState, last_state: ContainerTerminated | None = None
) -> None:
    """Somebody is told how that container is."""
    one = ContainerStatus(name="app", image=IMAGE, container_id=f"sim://{container_id}", state=state)
    scene.told(containers=[attrs.evolve(one, last_state=last_state)])


def test_its_end_is_told_until_the_next_one_has_ended() -> None:
    """As what it came to, while the next one is awaited, and beside the next one."""
    scene, (lost, following, _) = vanished()
    tells(scene, lost, RUNS)
    tells(scene, lost, ended(lost))
    tells(scene, lost, ContainerWaiting(reason="CrashLoopBackOff"), ended(lost))
    tells(scene, following, RUNS, ended(lost))
    tells(scene, following, RUNS)


def test_what_was_before_the_end_before_is_told_no_more() -> None:
    """Of the one after the next the end of the next is told."""
    scene, (_, following, newest) = vanished()
    tells(scene, newest, RUNS, ended(following))


def test_one_that_waits_is_told_of_the_newest_end() -> None:
    """The next one ran and ended before anybody was told of it."""
    scene, (_, following, newest) = vanished()
    scene.crashes(newest)
    tells(scene, following, ContainerWaiting(reason="CrashLoopBackOff"), ended(following))


def test_a_record_that_goes_once_there_is_another_one_changes_nothing() -> None:
    """That it ended was known before."""
    scene = Scene()
    scene.environment.events.listen(LostEndIsTold(scene.environment).heard)
    scene.wants()
    made = [scene.runs()]
    tells(scene, made[0], RUNS)
    scene.crashes(made[0])
    made.append(scene.runs(attempt=1))
    scene.environment.containers.lose(made[0])
    tells(scene, made[1], ContainerWaiting(reason="CrashLoopBackOff"), ended(made[1]))


def test_while_the_next_one_is_awaited_its_end_is_told() -> None:
    """That it waits for its back-off, and nothing of why, is too little."""
    scene, (lost, *_) = vanished()
    with pytest.raises(AssertionError, match=rf"as {lost}, which vanished; .* it is told of None"):
        tells(scene, lost, ContainerWaiting(reason="CrashLoopBackOff"))
    scene.deleted()
    tells(scene, lost, ContainerWaiting(reason="CrashLoopBackOff"))
