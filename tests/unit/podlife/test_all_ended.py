"""A pod is over when its main containers are, also while a sidecar waits to start again."""

from __future__ import annotations

import pytest

from nodealloc.podfacts import LifeState
from nodealloc.podlife import KUBELET, Rules
from nodealloc.podspec import Container, RestartPolicy
from tests.unit.podlife_node import Node, pod

BOTH = (Rules(), KUBELET)
SIDE = Container(name="side", image="busybox", restartable=True)
FIRST = Container(name="first", image="busybox")


def waiting(rules: Rules, policy: RestartPolicy, *inits: Container) -> Node:
    """A node on which a pod runs whose sidecar waits for its delay."""
    node = Node(rules=rules)
    node.lives.heard()
    node.lives.put(pod(policy=policy, init_containers=inits))
    for _ in range(4):
        node.after(3)
        if "first#0" in node.running():
            node.exit("first")
    assert "app#0" in node.running()
    for _ in range(2):
        node.exit("side", 1)
        node.after(3)
    assert node.running() == ["app#0"]
    return node


@pytest.mark.parametrize("rules", BOTH)
@pytest.mark.parametrize("inits", [(SIDE,), (FIRST, SIDE), (SIDE, FIRST)])
@pytest.mark.parametrize(
    ("policy", "code"), [(RestartPolicy.NEVER, 0), (RestartPolicy.NEVER, 1), (RestartPolicy.ON_FAILURE, 0)]
)
def test_a_pod_ends_while_its_sidecar_waits(
    rules: Rules, policy: RestartPolicy, code: int, inits: tuple[Container, ...]
) -> None:
    """It serves nobody any more; a kubelet goes by the phase, before it decides anything of containers."""
    node = waiting(rules, policy, *inits)
    node.exit("app", code)
    node.after(3)
    assert node.life() is LifeState.FINISHED
    assert not [one for one in node.containers() if one.record.name == "side" and one.record.attempt > 1]


@pytest.mark.parametrize("rules", BOTH)
@pytest.mark.parametrize(("policy", "code"), [(RestartPolicy.ALWAYS, 0), (RestartPolicy.ON_FAILURE, 1)])
def test_a_pod_goes_on_whose_main_container_starts_again(
    rules: Rules, policy: RestartPolicy, code: int
) -> None:
    """With its sidecar."""
    node = waiting(rules, policy, SIDE)
    node.exit("app", code)
    node.after(20)
    assert node.life() is LifeState.SYNCING
    assert sorted(node.running()) == ["app#1", "side#2"]


@pytest.mark.parametrize("rules", BOTH)
def test_a_pod_goes_on_of_which_one_main_container_runs(rules: Rules) -> None:
    """All of them have to have ended."""
    node = Node(rules=rules)
    both = (Container(name="app", image="busybox"), Container(name="other", image="busybox"))
    node.lives.put(pod(containers=both, policy=RestartPolicy.NEVER, init_containers=(SIDE,)))
    node.after(4)
    node.exit("side", 1)
    node.after(3)
    node.exit("side", 1)
    node.exit("app")
    node.after(20)
    assert sorted(node.running()) == ["other#0", "side#2"]


@pytest.mark.parametrize(
    ("rules", "policy", "is_over"),
    [
        (BOTH[0], RestartPolicy.NEVER, True),
        (KUBELET, RestartPolicy.NEVER, True),
        (BOTH[0], RestartPolicy.ON_FAILURE, False),
        (KUBELET, RestartPolicy.ON_FAILURE, False),
        (KUBELET, RestartPolicy.ALWAYS, False),
    ],
)
def test_a_container_that_ran_and_is_removed_by_somebody_has_ended(
    rules: Rules, policy: RestartPolicy, is_over: bool
) -> None:
    """In an unknown way: its pod has failed with policy Never, and it starts again with others."""
    node = Node(rules=rules)
    node.lives.put(pod(policy=policy))
    node.after(4)
    node.runtime.lose_records(node.id_of("app"))
    node.after(6)
    assert (node.life() is LifeState.FINISHED) is is_over
    assert node.running() == ([] if is_over else ["app#1"])


@pytest.mark.parametrize("starts_anew", [False, True])
def test_a_container_that_had_succeeded_and_is_removed_has_succeeded(*, starts_anew: bool) -> None:
    """By a kubelet's rules what it told of a container stands for the record, also where no agent ran."""
    both = (Container(name="app", image="busybox"), Container(name="other", image="busybox"))
    node = Node(rules=KUBELET)
    node.lives.put(pod(containers=both, policy=RestartPolicy.ON_FAILURE))
    node.after(4)
    node.exit("app")
    node.after(3)
    node.runtime.lose_records(node.id_of("app"))
    node.exit("other")
    if starts_anew:
        node.kill_agent()
        node.lives.put(pod(containers=both, policy=RestartPolicy.ON_FAILURE))
        node.lives.heard()
    node.after(4)
    assert node.life() is LifeState.FINISHED
    assert [one.record.attempt for one in node.containers()] == [0]


@pytest.mark.parametrize("rules", BOTH)
@pytest.mark.parametrize(
    ("policy", "running"), [(RestartPolicy.NEVER, []), (RestartPolicy.ON_FAILURE, ["first#1"])]
)
def test_an_init_container_that_ran_and_is_removed_by_somebody_has_failed(
    rules: Rules, policy: RestartPolicy, running: list[str]
) -> None:
    """So has its pod with policy Never."""
    node = Node(rules=rules)
    node.lives.put(pod(policy=policy, init_containers=(FIRST,)))
    node.after(4)
    node.runtime.lose_records(node.id_of("first"))
    node.after(6)
    assert (node.life() is LifeState.FINISHED) is (not running)
    assert node.running() == running


@pytest.mark.parametrize(
    ("policy", "annotations", "running"),
    [
        (RestartPolicy.NEVER, {}, []),
        (RestartPolicy.ON_FAILURE, {}, ["app#1"]),
        (RestartPolicy.NEVER, {"kubernetes.io/config.source": "file"}, ["app#1"]),
    ],
)
def test_a_container_that_somebody_removed_while_no_agent_ran(
    policy: RestartPolicy, annotations: dict[str, str], running: list[str]
) -> None:
    """A kubelet reads back from the API server that it ran; of a static pod nobody tells it."""
    node = Node(rules=KUBELET)
    node.lives.heard()
    node.lives.put(pod(policy=policy, annotations=annotations))
    node.after(4)
    node.runtime.lose_records(node.id_of("app"))
    node.kill_agent()
    node.lives.put(pod(policy=policy, annotations=annotations))
    node.lives.heard()
    node.after(6)
    assert node.running() == running
    assert (node.life() is LifeState.FINISHED) is (not running)
