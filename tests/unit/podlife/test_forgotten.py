"""A container that ran and that the runtime forgot before any listing showed it has run, and has ended."""

from __future__ import annotations

import pytest

from nodealloc.podfacts import ContainerTerminated, Exited, ExitUnknown, LifeState, PodIdentity
from nodealloc.podlife import KUBELET
from nodealloc.podspec import Container, RestartPolicy
from nodealloc.runtime import (
    RUNTIME_ROWS,
    ContainerConfig,
    ContainerReport,
    RunState,
    RuntimeUnavailableError,
    SandboxConfig,
)
from tests.unit.podlife.test_kills import Counted, KilledNode
from tests.unit.podlife_node import Node, pod
from tests.unit.podstatus.test_with_lives import TellingNode

INIT = Container(name="setup", image="busybox")
NEVER = pod(policy=RestartPolicy.NEVER)


def starts(node: Node) -> list[str]:
    """Ids of containers that were told to start."""
    return [one.split()[1] for one in node.calls() if one.startswith("start_container")]


def reports(node: Node) -> list[ContainerReport]:
    """What the runtime has, without a call of it."""
    return list(node.runtime._containers.values())


def forget_at_once(node: Node, name: str) -> None:
    """Each container of a name is gone as soon as it was started, before anybody lists."""
    plain = node.runtime.start_container

    def start(container_id: str, /) -> None:
        try:
            plain(container_id)
        finally:  # whoever asked may be gone by now
            begun = [one.record for one in reports(node) if one.record.id == container_id]
            if begun[0].name == name and begun[0].state is RunState.RUNNING:
                node.runtime.lose_records(container_id)

    node.runtime.start_container = start  # type: ignore[method-assign]


@pytest.mark.parametrize("is_killed", [False, True], ids=["lives on", "starts anew"])
def test_it_is_not_run_again_under_never(*, is_killed: bool) -> None:
    """Its start is in the journal: it ended in an unknown way, the pod has failed, and others hear so."""
    node = TellingNode()
    node.heard("u")
    forget_at_once(node, "app")
    node.lives.put(NEVER)
    if is_killed:
        while not starts(node):
            node.group.reconcile()
            node.executor.run_all()
        node.group.reconcile()
        node.kill_agent()
        node.lives.put(NEVER)
        node.heard("u")
    node.after(30, step_s=1.0)
    assert len(starts(node)) == 1
    assert node.life() is LifeState.FINISHED
    status = node.sink.statuses["u"]
    assert status.phase is not None
    assert status.phase.value == "Failed"
    (app,) = status.containers
    assert isinstance(app.state, ContainerTerminated)
    assert (app.state.exit, app.restart_count) == (ExitUnknown(), 0)


def test_an_init_container_of_policy_never_is_not_run_again() -> None:
    """Nobody knows that it succeeded, and it must not run twice: the pod has failed."""
    node = Node()
    forget_at_once(node, "setup")
    node.lives.put(pod(policy=RestartPolicy.NEVER, init_containers=(INIT,)))
    node.after(30, step_s=1.0)
    assert len(starts(node)) == 1
    assert (node.life(), node.running()) == (LifeState.FINISHED, [])


def test_with_policy_always_the_next_attempt_runs_after_its_back_off() -> None:
    """It is an end like any other: the attempt counts on, the second such end waits."""
    node = Node()
    forget_at_once(node, "app")
    node.lives.put(pod())
    node.after(9, step_s=0.5)
    assert len(starts(node)) == 2
    assert node.record().attempts["app"] == 1
    node.after(11, step_s=0.5)
    assert len(starts(node)) == 3
    assert node.record().attempts["app"] == 2


def test_an_ephemeral_container_runs_once_whatever_is_forgotten() -> None:
    """Whatever the policy of its pod."""
    node = Node()
    forget_at_once(node, "debug")
    node.lives.put(pod(ephemeral_containers=(Container(name="debug", image="busybox"),)))
    node.after(30, step_s=1.0)
    assert len(starts(node)) == 2
    assert node.running() == ["app#0"]


def test_by_a_kubelets_rules_it_is_started_again() -> None:
    """It has no record, so it never ran."""
    node = Node(rules=KUBELET)
    forget_at_once(node, "app")
    node.lives.put(NEVER)
    node.after(60, step_s=1.0)
    assert len(starts(node)) > 1


def test_an_answer_that_is_lost_with_the_container_counts_as_a_start() -> None:
    """It may have run, so under Never it does not run again."""
    node = Node()
    forget_at_once(node, "app")
    node.runtime.lose_answer("start_container")
    node.lives.put(NEVER)
    node.after(30, step_s=1.0)
    assert (len(starts(node)), node.life()) == (1, LifeState.FINISHED)


def killed_story(at: int, *, late: bool) -> KilledNode:
    """A pod of policy Never whose container is forgotten as it starts; the agent ends at one call."""
    node = KilledNode(Counted(at, late=late))
    forget_at_once(node, "app")
    node.go(lambda: node.lives.put(NEVER), 20)
    return node


def test_killed_at_any_call_it_never_starts_twice() -> None:
    """Also where the process ends between the start and its answer; and it is started in the end."""
    calls = killed_story(0, late=False).counted.count
    for at in range(1, calls + 1):
        for late in (False, True):
            node = killed_story(at, late=late)
            assert len(starts(node)) == 1, f"call {at}, late {late}"
            assert [one for one in node.made if one != "app#0"] == [], f"call {at}, late {late}"
            assert node.life() is LifeState.FINISHED, f"call {at}, late {late}"
            assert all(one.record.state is not RunState.RUNNING for one in reports(node))


def test_ends_of_a_pod_that_an_earlier_life_forgot_are_forgotten() -> None:
    """That life ended before its watch had dropped them: nobody else would ever ask for that."""
    node = Node()
    node.lives.put(pod(policy=RestartPolicy.NEVER))
    node.after(1)
    node.runtime.exit(reports(node)[0].record.id, Exited(code=0))
    node.after(5)
    left = dict(node.journal.rows)
    node.lives.remove("u")
    node.after(60)
    assert not node.journal.rows
    node.journal.rows.update({key: row for key, row in left.items() if key.startswith(RUNTIME_ROWS)})
    assert node.journal.rows
    node.kill_agent()
    node.after(5)
    assert node.journal.rows
    node.lives.heard()
    node.after(5)
    assert not node.journal.rows


def test_a_sandbox_of_nobody_that_is_empty_does_not_keep_an_agent_from_starting() -> None:
    """It is remembered as a pod without containers, which no manifest may be, and read again."""
    node = Node()
    node.lives.heard()
    node.executor.held.add("stop sandbox")
    node.runtime.run_sandbox(SandboxConfig(pod=PodIdentity(uid="s", name="s", namespace="n")))
    node.after(5)
    assert any("s" in key for key in node.journal.rows)
    node.kill_agent()
    node.lives.heard()
    node.after(60)
    assert not node.runtime.inspect("s").sandboxes
    assert not node.journal.rows


def test_the_number_of_what_was_never_made_stands_in_another_sandbox() -> None:
    """A start that the runtime refused until its sandbox was lost is no restart."""
    node = Node()
    plain, refuses = node.runtime.create_container, [True]

    def create(sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig, /) -> str:
        if refuses:
            raise RuntimeUnavailableError("create_container", "connection refused")
        return plain(sandbox_id, config, sandbox)

    node.runtime.create_container = create  # type: ignore[method-assign]
    node.lives.put(pod())
    node.after(3)
    assert node.record().attempts["app"] == 0
    node.runtime.stop_sandbox("sandbox-1")
    node.after(3)
    refuses.clear()
    node.after(30)
    assert [(one.record.sandbox_id, one.record.attempt) for one in node.containers()] == [("sandbox-2", 0)]
    assert node.record().attempts["app"] == 0
