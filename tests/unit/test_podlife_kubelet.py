"""Where lives of pods are told, delayed and cleared away otherwise by a kubelet's rules: both ways."""

from __future__ import annotations

import attrs
import pytest

from nodealloc.podlife import KUBELET, PodFacts, Rules
from nodealloc.runtime import RunState
from tests.unit.podlife_node import Node, Verdicts, pod

RIGHT = Rules()


def facts(node: Node, uid: str = "u") -> PodFacts:
    """What is told of a pod."""
    found = node.lives.facts.get(uid)
    assert found is not None
    return found


def states(node: Node) -> dict[str, list[str]]:
    """`attempt state` of each container that is told of, by name."""
    report, told = facts(node).report, dict[str, list[str]]()
    for one in report.containers if report else ():
        told.setdefault(one.record.name, []).append(f"{one.record.attempt} {one.record.state.value}")
    return told


@pytest.mark.parametrize(
    ("rules", "meanwhile"),
    [(RIGHT, ["0 running", "0 exited", "1 running"]), (KUBELET, ["0 running", "1 running"])],
)
def test_what_is_told_while_a_container_is_stopped_and_started(rules: Rules, meanwhile: list[str]) -> None:
    """As it happens; for a kubelet it runs until the next one does."""
    node = Node(rules=rules)
    node.lives.put(pod())
    node.after(1)
    told = [states(node)["app"][0]]
    node.executor.held.add("start")
    node.verdicts.put("u", Verdicts(alive={node.id_of("app"): False}))
    node.after(1)
    told.append(states(node)["app"][0])
    node.executor.held.clear()
    for go_on in node.executor.parked:
        go_on()
    node.after(1)
    told.append(states(node)["app"][0])
    assert list(dict.fromkeys(told)) == meanwhile


@pytest.mark.parametrize(("rules", "told"), [(RIGHT, {"app": ["0 created"]}), (KUBELET, {})])
def test_whether_a_container_that_does_not_run_yet_is_told(rules: Rules, told: dict[str, list[str]]) -> None:
    """It was made and waits for its start; for a kubelet it is not there."""
    node = Node(rules=rules)
    begun: list[str] = []
    start = node.runtime.start_container
    node.runtime.start_container = begun.append  # type: ignore[method-assign]
    node.lives.put(pod())
    node.after(0.5)
    assert begun
    assert states(node) == told
    node.runtime.start_container = start  # type: ignore[method-assign]
    node.after(30)
    assert states(node) == {"app": ["0 running"]}


@pytest.mark.parametrize(("rules", "attempts"), [(RIGHT, [1, 1, 2]), (KUBELET, [1, 2, 2])])
def test_when_a_container_that_fails_its_probe_starts_again(rules: Rules, attempts: list[int]) -> None:
    """The second failure waits for the delay of 10 s; with a kubelet, one end behind, the third."""
    node = Node(rules=rules)
    node.lives.put(pod())
    node.after(1)
    seen: list[int] = []
    for wait_s in (5, 5, 6):
        newest = node.runtime.inspect("u").newest("app")
        assert newest is not None
        node.verdicts.put("u", Verdicts(alive={newest.record.id: False}))
        node.after(wait_s)
        newest = node.runtime.inspect("u").newest("app")
        assert newest is not None
        seen.append(newest.record.attempt)
    assert seen == attempts


def test_a_sandbox_that_died_is_ended_before_the_next_is_made() -> None:
    """Its network is taken down by that, though none of its processes is left."""
    node = Node()
    node.lives.put(pod())
    node.after(1)
    node.runtime.stop_sandbox("sandbox-1")
    node.after(1)
    calls = [one.partition(" ")[0] for one in node.calls()]
    assert [one for one in calls if one.endswith("sandbox")] == [
        "run_sandbox",
        "stop_sandbox",  # by somebody else
        "stop_sandbox",
        "run_sandbox",
    ]


def test_what_is_left_of_a_pod_that_is_gone() -> None:
    """Nothing; a kubelet leaves containers and sandboxes there, and forgets the pod when it looks next."""
    right, kubelet = Node(), Node(rules=KUBELET)
    for node in (right, kubelet):
        node.lives.heard()
        node.lives.put(pod())
        node.after(1)
        node.lives.remove("u")
        node.after(5)
        assert "u" not in node.lives.pods
    assert right.runtime.inspect("u").sandboxes == ()
    left = kubelet.runtime.inspect("u")
    assert [one.record.is_ready for one in left.sandboxes] == [False]
    assert [one.record.state for one in left.containers] == [RunState.EXITED]


@pytest.mark.parametrize(("rules", "running"), [(RIGHT, []), (KUBELET, ["app#1"])])
def test_a_pod_that_is_put_back_while_it_ends(rules: Rules, running: list[str]) -> None:
    """It stays ended; with a kubelet it runs again once it has, as the next of its containers."""
    node = Node(rules=rules)
    node.lives.heard()
    node.lives.put(pod())
    node.after(1)
    node.executor.held.add("stop")
    node.lives.remove("u")
    node.after(1)
    node.lives.put(attrs.evolve(pod(), labels={"edited": "yes"}))
    node.after(1)
    assert node.running() == ["app#0"]
    node.executor.held.clear()
    for go_on in node.executor.parked:
        go_on()
    node.after(5)
    assert node.running() == running
    if running:
        assert node.record().pod.labels == {"edited": "yes"}
        assert [one.record.attempt for one in node.runtime.inspect("u").sandboxes] == [1, 0]


def test_a_pod_that_is_put_back_and_taken_away_again_does_not_come() -> None:
    """By a kubelet's rules, too."""
    node = Node(rules=KUBELET)
    node.lives.heard()
    node.lives.put(pod())
    node.after(1)
    node.lives.remove("u")
    node.lives.put(pod())
    node.lives.remove("u")
    node.after(5)
    assert node.running() == []
    assert "u" not in node.lives.pods


def test_a_pod_that_comes_back_after_it_was_gone_counts_what_is_left() -> None:
    """By a kubelet's rules its sandbox is the next one; a container that was removed does not count."""
    node = Node(rules=KUBELET)
    node.lives.heard()
    node.lives.put(pod())
    node.after(1)
    node.lives.remove("u")
    node.after(5)
    node.runtime.remove_container(node.id_of("app"))
    node.after(10)
    node.lives.put(pod())
    node.after(2)
    assert node.running() == ["app#0"]
    assert [one.record.attempt for one in node.runtime.inspect("u").sandboxes] == [1, 0]
