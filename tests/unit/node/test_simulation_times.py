"""Checkers of what stands: since when a pod waits is told once, and nothing else of who runs."""

from __future__ import annotations

import contextlib

import pytest

from nodealloc.podfacts import (
    ConditionStatus,
    ContainerRunning,
    ContainerStatus,
    ContainerWaiting,
    PodCondition,
    PodPhase,
    PodStatus,
)
from nodealloc.podspec import Container, ExecAction, Probe, RestartPolicy
from nodealloc.testing.simulation.node import Ran, What
from nodealloc.testing.simulation.node._duties import RestartsCome
from nodealloc.testing.simulation.node._in_time import ProbesInTime
from nodealloc.testing.simulation.node._pods import LIVE
from nodealloc.testing.simulation.node._standing import NothingMoves, TimesStand
from tests.unit.node.simulated_scene import Scene

NOT = ConditionStatus.FALSE


def listened(scene: Scene) -> Scene:
    """With the checker, on a node on which agents are killed and nothing else goes wrong."""
    scene.environment.only_ends = True
    scene.environment.events.listen(TimesStand(scene.environment).heard)
    return scene


def says(scene: Scene, since_s: float, message: str = "") -> None:
    """A pod is told to be not initialized since then."""
    one = PodCondition(type="Initialized", status=NOT, message=message, last_transition_unix_s=since_s)
    scene.environment.tell("u", PodStatus(phase=PodPhase.PENDING, conditions=(one,)))


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


@pytest.mark.parametrize("waits", [False, True], ids=["runs", "waits"])
def test_something_comes_of_a_sidecar_that_waits(waits: bool) -> None:
    """Its time comes by itself; while it runs nothing else is told of its pod."""
    scene = Scene()
    scene.environment.only_ends = True
    scene.environment.events.listen(NothingMoves(scene.environment).heard)
    scene.wants(init_containers=(Container(name="proxy", image="busybox:0", restartable=True),))
    state = ContainerWaiting(reason="CrashLoopBackOff") if waits else ContainerRunning()

    def tells(count: int) -> None:
        proxy = ContainerStatus(name="proxy", state=state, restart_count=count)
        app = ContainerStatus(name="app", state=ContainerRunning())
        said = PodStatus(phase=PodPhase.RUNNING, init_containers=(proxy,), containers=(app,))
        scene.environment.tell("u", said)

    scene.runs()
    tells(1)
    scene.clock.advance(20.0)
    if waits:
        tells(2)
        return
    with pytest.raises(AssertionError, match=r"nothing happened for 20 s, and something else is told"):
        tells(2)


@pytest.mark.parametrize("after_s", [18.0, 40.0])
def test_an_edit_is_told_of_once_it_is_read(after_s: float) -> None:
    """A folder is looked at every 20 s; what is told later than that has no reason in it."""
    scene = Scene()
    scene.environment.only_ends = True
    scene.environment.events.listen(NothingMoves(scene.environment).heard)
    scene.wants()
    scene.runs()
    scene.told(containers=[ContainerStatus(name="app", state=ContainerRunning())])
    scene.clock.advance(20.0)
    scene.happens(What.EDITED, uid="u")
    scene.clock.advance(1.0)
    scene.happens(What.MOUNTED, uid="u")
    scene.clock.advance(after_s)
    is_late = after_s > 30.0
    with pytest.raises(AssertionError, match="nothing happened") if is_late else contextlib.nullcontext():
        scene.told(containers=[ContainerStatus(name="app", state=ContainerRunning(), restart_count=1)])


@pytest.mark.parametrize("lives", [1, 2])
def test_each_life_counts_answers_anew(lives: int) -> None:
    """What failed six times in a row has reached no threshold where an agent heard of three of them alone."""
    scene = Scene()
    scene.environment.only_ends = True
    scene.environment.events.listen(NothingMoves(scene.environment).heard)
    scene.wants()
    made = scene.runs()
    scene.told(containers=[ContainerStatus(name="app", state=ContainerRunning())])
    for life in range(2):
        for _ in range(3):
            scene.clock.advance(20.0)
            scene.happens(What.RAN, uid="u", id=made, value=Ran(LIVE, "1"))
        if life < lives - 1:
            scene.happens(What.KILLED)
    with pytest.raises(AssertionError, match="nothing happened") if lives == 1 else contextlib.nullcontext():
        scene.told(containers=[ContainerStatus(name="app", state=ContainerRunning(), restart_count=1)])


@pytest.mark.parametrize(
    ("policy", "code", "has_run"),
    [
        (RestartPolicy.NEVER, 2, True),
        (RestartPolicy.ON_FAILURE, 0, True),
        (RestartPolicy.ON_FAILURE, 2, False),
        (RestartPolicy.ALWAYS, 0, False),
    ],
)
def test_a_sidecar_is_asked_until_its_pod_has_run(policy: RestartPolicy, code: int, has_run: bool) -> None:
    """Then it waits for its turn to end, for as long as those behind it take."""
    scene = Scene()
    scene.environment.only_ends = True
    scene.environment.events.listen(ProbesInTime(scene.environment).heard)
    probe = Probe(exec=ExecAction(command=(LIVE,)))
    proxy = Container(name="proxy", image="busybox:0", restartable=True, liveness_probe=probe)
    scene.wants(init_containers=(proxy,), restart_policy=policy)
    sidecar, app = scene.runs(name="proxy"), scene.runs()
    scene.happens(What.RAN, uid="u", name="proxy", id=sidecar, value=Ran(LIVE, "0"))
    scene.crashes(app, code)
    scene.clock.advance(60.0)
    with (
        contextlib.nullcontext() if has_run else pytest.raises(AssertionError, match="u/proxy was not asked")
    ):
        scene.crashes(sidecar, 1)


def test_what_a_pod_was_while_faults_struck_is_not_counted() -> None:
    """Since when it is what, and how often it had started, nobody knows who did not listen then."""
    scene = Scene()
    checkers = TimesStand(scene.environment), RestartsCome(scene.environment)
    for one in checkers:
        scene.environment.events.listen(one.heard)
    scene.wants()
    scene.clock.advance(1.0)
    scene.environment.begin_well()
    assert scene.environment.saw_faults("u")
    says(scene, 5.0)
    says(scene, 6.0)
    scene.crashes(scene.runs())
    scene.clock.advance(200.0)
    scene.happens(What.TOLD)
    scene.clock.advance(200.0)
    with pytest.raises(AssertionError, match="u/app has ended, its wait is over"):
        scene.happens(What.TOLD)


def test_of_who_comes_later_all_is_known() -> None:
    """It was wanted since faults strike no more."""
    scene = listened(Scene())
    scene.clock.advance(1.0)
    scene.environment.begin_well()
    scene.wants()
    assert not scene.environment.saw_faults("u")
    says(scene, 5.0)
    with pytest.raises(AssertionError, match=r"since 5.0, and now"):
        says(scene, 6.0)
