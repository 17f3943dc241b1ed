"""What is stopped to start again does, however it ends: its policy is asked about ends that nobody made."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from nodealloc.podfacts import Exited, LifeState
from nodealloc.podlife import KUBELET, HookCall, Rules
from nodealloc.podspec import Container, ExecAction, Lifecycle, LifecycleHandler, RestartPolicy
from nodealloc.runtime import PodListing, PodReport, RunState, RuntimeUnavailableError
from tests.unit.podlife_node import Node, NotingRuntime, Verdicts, pod

BOTH = (Rules(), KUBELET)
SIDE = Container(name="side", image="busybox")
BYE = LifecycleHandler(exec=ExecAction(command=("bye",)))


class Obedient(Node):
    """A node whose containers leave with 0 when they are asked to end."""

    def start_agent(self) -> None:
        """With such a runtime."""
        if not isinstance(self.runtime, _Leaving):
            self.runtime = _Leaving(self)
        super().start_agent()


class _Leaving(NotingRuntime):
    def stop_container(self, container_id: str, grace_s: float, /) -> None:
        for one in self.inspect("u").containers:
            if one.record.id == container_id and one.record.state is RunState.RUNNING:
                self.exit(container_id, Exited(code=0))
        super().stop_container(container_id, grace_s)


def up(rules: Rules, policy: RestartPolicy, **more: Any) -> Obedient:
    """A node on which a pod runs."""
    node = Obedient(rules=rules)
    node.lives.heard()
    node.lives.put(pod(policy=policy, **more))
    node.after(2)
    return node


@pytest.mark.parametrize("rules", BOTH)
def test_what_failed_its_probe_starts_again_though_it_leaves_with_0(rules: Rules) -> None:
    """With policy OnFailure, too; once, and its next end is its own."""
    node = up(rules, RestartPolicy.ON_FAILURE)
    node.verdicts.put("u", Verdicts(alive={node.id_of("app"): False}))
    node.after(5)
    assert node.running() == ["app#1"]
    node.exit("app", 0)
    node.after(5)
    assert node.life() is LifeState.FINISHED


@pytest.mark.parametrize("rules", BOTH)
def test_what_failed_its_probe_stays_ended_with_policy_never(rules: Rules) -> None:
    """Nobody owes it a start."""
    node = up(rules, RestartPolicy.NEVER)
    node.verdicts.put("u", Verdicts(alive={node.id_of("app"): False}))
    node.after(5)
    assert node.life() is LifeState.FINISHED
    assert not node.record().owed


@pytest.mark.parametrize("rules", BOTH)
@pytest.mark.parametrize("policy", [RestartPolicy.NEVER, RestartPolicy.ON_FAILURE])
def test_another_definition_is_started_whatever_the_policy(rules: Rules, policy: RestartPolicy) -> None:
    """It is another container."""
    app = Container(name="app", image="busybox")
    node = up(rules, policy, containers=(app, SIDE))
    node.lives.put(pod(policy=policy, containers=(attrs.evolve(app, image="other"), SIDE)))
    node.after(5)
    assert sorted(node.running()) == ["app#1", "side#0"]


@pytest.mark.parametrize(
    ("rules", "with_init", "running"),
    [
        (BOTH[0], False, ["app#1"]),
        (KUBELET, False, ["app#1"]),
        (BOTH[0], True, ["app#1"]),
        (KUBELET, True, []),
    ],
)
def test_what_is_stopped_for_another_sandbox(rules: Rules, with_init: bool, running: list[str]) -> None:
    """It starts there; a kubelet remembers what starts at once, not what waits for initialization."""
    inits = (Container(name="init", image="busybox"),) if with_init else ()
    node = up(rules, RestartPolicy.ON_FAILURE, containers=(SIDE, pod().containers[0]), init_containers=inits)
    if with_init:
        node.exit("init")
        node.after(2)
    node.exit("side")
    node.after(2)
    (box,) = node.runtime.inspect("u").sandboxes
    node.runtime.put(attrs.evolve(box, record=attrs.evolve(box.record, is_ready=False)))
    node.after(8)
    if with_init:
        node.exit("init")
        node.after(8)
    assert node.running() == running


@pytest.mark.parametrize("rules", BOTH)
@pytest.mark.parametrize("inits", [("init",), ("init", "side"), ("side",)])
def test_a_sandbox_that_was_decided_on_is_made_though_all_left_with_0(
    rules: Rules, inits: tuple[str, ...]
) -> None:
    """Its first init container is started in it, too: as the pod was looked at, a container of it ran."""
    node = up(
        rules,
        RestartPolicy.ON_FAILURE,
        containers=(Container(name="done", image="busybox"), *pod().containers),
        init_containers=tuple(
            Container(name=one, image="busybox", restartable=one == "side") for one in inits
        ),
    )
    for _ in range(2):
        if "init#0" in node.running():
            node.exit("init")
        node.after(4)
    node.exit("done")
    node.after(2)
    (box,) = node.runtime.inspect("u").sandboxes
    node.runtime.put(attrs.evolve(box, record=attrs.evolve(box.record, is_ready=False)))
    node.after(2)
    assert len(node.runtime.inspect("u").sandboxes) == 2
    assert [one for one in node.running() if one.startswith(inits[0])]
    if rules is KUBELET and inits[0] == "init":
        made = len(node.containers())
        node.exit("init")
        node.after(4)
        assert node.life() is LifeState.FINISHED
        assert len(node.containers()) == made


@pytest.mark.parametrize(("rules", "running"), [(BOTH[0], ["app#1"]), (KUBELET, [])])
def test_whether_a_start_is_owed_over_an_agents_restart(rules: Rules, running: list[str]) -> None:
    """It is; a kubelet has forgotten why the container ended."""
    static = {"kubernetes.io/config.source": "file"}
    node = up(rules, RestartPolicy.ON_FAILURE, annotations=static)
    node.executor.held.add("start")
    node.verdicts.put("u", Verdicts(alive={node.id_of("app"): False}))
    node.after(2)
    assert node.running() == []
    node.verdicts.drop("u")
    node.kill_agent()
    node.lives.put(pod(policy=RestartPolicy.ON_FAILURE, annotations=static))
    node.lives.heard()
    node.after(5)
    assert node.running() == running


def test_a_start_is_owed_though_the_record_of_what_was_stopped_is_gone() -> None:
    """How it ended is kept by its id, and for what it was asked to as well."""
    node = up(Rules(), RestartPolicy.ON_FAILURE)
    made = node.id_of("app")
    node.executor.held.add("start")
    node.verdicts.put("u", Verdicts(alive={made: False}))
    node.after(2)
    assert node.running() == []
    node.verdicts.drop("u")
    node.runtime.lose_records(made)
    node.after(2)
    node.kill_agent()
    node.lives.put(pod(policy=RestartPolicy.ON_FAILURE))
    node.lives.heard()
    node.after(5)
    assert node.running() == ["app#1"]


@pytest.mark.parametrize("hook", [None, Lifecycle(pre_stop=BYE)])
@pytest.mark.parametrize(
    ("rules", "code", "running"),
    [
        (BOTH[0], 0, ["side#0"]),
        (KUBELET, 0, ["app#1", "side#0"]),
        (BOTH[0], 1, ["app#1", "side#0"]),
        (KUBELET, 1, ["app#1", "side#0"]),
    ],
)
def test_what_had_ended_before_it_was_stopped(
    rules: Rules, code: int, running: list[str], hook: Lifecycle | None
) -> None:
    """As its probe failed for the last time no listing had shown its end: its policy says what is next."""
    app = Container(name="app", image="busybox", lifecycle=hook)
    node = up(rules, RestartPolicy.ON_FAILURE, containers=(app, SIDE))
    node.exit("app", code)
    node.verdicts.put("u", Verdicts(alive={node.id_of("app"): False}))
    node.after(25)
    assert sorted(node.running()) == running
    assert bool(node.stops) is (rules is KUBELET)


def test_what_ends_in_its_hook_starts_again() -> None:
    """It has heard of its end."""
    app = Container(name="app", image="busybox", lifecycle=Lifecycle(pre_stop=BYE))
    node = up(Rules(), RestartPolicy.ON_FAILURE, containers=(app, SIDE))

    def leave(_call: HookCall) -> str:
        node.exit("app", 0)
        return ""

    node.hooks.answer = leave
    node.verdicts.put("u", Verdicts(alive={node.id_of("app"): False}))
    node.after(25)
    assert sorted(node.running()) == ["app#1", "side#0"]


def test_what_was_told_before_the_agents_restart_starts_again() -> None:
    """The next process cannot know whether it ended for that."""
    node = up(Rules(), RestartPolicy.ON_FAILURE, containers=(pod().containers[0], SIDE))
    node.executor.held.add("stop")
    node.verdicts.put("u", Verdicts(alive={node.id_of("app"): False}))
    node.after(2)
    node.kill_agent()
    node.executor.held.add("stop")
    node.lives.put(pod(policy=RestartPolicy.ON_FAILURE, containers=(pod().containers[0], SIDE)))
    node.lives.heard()
    node.after(1)
    node.exit("app", 0)
    node.executor.parked.pop()()
    node.after(20)
    assert sorted(node.running()) == ["app#1", "side#0"]


def test_what_does_not_say_how_it_is_is_stopped() -> None:
    """Whoever cannot be asked whether it runs is told to end all the same."""
    node = up(Rules(), RestartPolicy.ON_FAILURE, containers=(pod().containers[0], SIDE))
    made = node.id_of("app")
    node.runtime.fail("inspect", RuntimeUnavailableError("inspect", "it is away"))
    node.verdicts.put("u", Verdicts(alive={made: False}))
    node.after(20)
    assert sorted(node.running()) == ["app#1", "side#0"]


def test_what_listings_go_on_showing_is_told_after_all() -> None:
    """A runtime that says once that a container has ended, and that it runs each time after that."""
    node = up(Rules(), RestartPolicy.ALWAYS, containers=(pod().containers[0], SIDE))
    made, told = node.id_of("app"), node.runtime.inspect

    def wrong(uid: str, listed: PodListing | None = None, /) -> PodReport:
        node.runtime.inspect = told  # type: ignore[method-assign]
        report = told(uid, listed)
        return attrs.evolve(
            report,
            containers=tuple(
                attrs.evolve(one, record=attrs.evolve(one.record, state=RunState.EXITED), exit=Exited(code=0))
                if one.record.id == made
                else one
                for one in report.containers
            ),
        )

    node.runtime.inspect = wrong  # type: ignore[method-assign]
    node.verdicts.put("u", Verdicts(alive={made: False}))
    node.after(20)
    assert node.runtime.inspect == told
    assert node.stops
    assert sorted(node.running()) == ["app#1", "side#0"]


@pytest.mark.parametrize(("rules", "running"), [(BOTH[0], ["app#2", "side#0"]), (KUBELET, ["side#0"])])
def test_whether_a_start_is_owed_that_has_to_wait_for_its_delay(rules: Rules, running: list[str]) -> None:
    """It is; a kubelet starts with the look that stops, or asks the policy at the next one."""
    node = up(rules, RestartPolicy.ON_FAILURE, containers=(*pod().containers, SIDE))
    for _ in range(3 if rules is KUBELET else 2):
        node.verdicts.put("u", Verdicts(alive={node.id_of("app"): False}))
        node.after(3)
    assert node.running() == ["side#0"]
    node.after(60)
    assert sorted(node.running()) == running


def test_a_pod_of_a_kubelet_ends_though_a_start_of_it_failed_after_a_stop() -> None:
    """By its policy the container that left with 0 is done; the pod stayed, and started it in the end."""
    node = up(KUBELET, RestartPolicy.ON_FAILURE)
    for _ in range(3):
        node.verdicts.put("u", Verdicts(alive={node.id_of("app"): False}))
        node.after(3)
    assert node.life() is LifeState.FINISHED
