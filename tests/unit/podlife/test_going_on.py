"""What a kubelet has begun it finishes before it hears that a pod is to end, or to be another: both ways."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest

from nodealloc.podfacts import LifeState
from nodealloc.podlife import KUBELET, Rules
from nodealloc.podspec import Container, ExecAction, Lifecycle, LifecycleHandler, Pod
from nodealloc.runtime import RuntimeUnavailableError
from tests.unit.podlife_node import Node, Verdicts, pod

RIGHT = Rules()
STATIC = {"kubernetes.io/config.source": "file"}
HANDLER = LifecycleHandler(exec=ExecAction(command=("wait",)))
HOOKED = Container(name="app", image="busybox", lifecycle=Lifecycle(pre_stop=HANDLER))


def stopping(rules: Rules, *, grace_s: int = 20) -> Node:
    """A node on which a container is stopped that failed its probe; its runtime is still at it."""
    node = Node(rules=rules)
    node.lives.heard()
    node.lives.put(pod(containers=(HOOKED,), annotations=STATIC, grace_s=grace_s))
    node.after(1)
    node.executor.held.add("stop")
    node.verdicts.put("u", Verdicts(alive={node.id_of("app"): False}))
    node.after(3)
    assert len(node.executor.parked) == 1
    return node


def go_on(node: Node, *held: str) -> None:
    """Let calls that hang go on, and no later ones hang but these."""
    node.executor.held = set(held)
    parked, node.executor.parked = node.executor.parked, []
    for one in parked:
        one()


def made(node: Node) -> list[str]:
    """Containers that were ever made."""
    return [one.rpartition("/")[2] for one in node.calls() if one.startswith("create_container")]


@pytest.mark.parametrize(
    ("rules", "count"),
    [(RIGHT, 1), (KUBELET, 2)],
)
def test_a_pod_that_goes_while_a_container_is_stopped(rules: Rules, count: int) -> None:
    """It ends; with a kubelet once that one has started again, which has its hook and all of the grace."""
    node = stopping(rules)
    node.lives.remove("u")
    node.after(5)
    assert node.life() is (LifeState.TERMINATING if rules is RIGHT else LifeState.SYNCING)
    go_on(node)
    node.after(2)
    assert node.running() == []
    assert (len(node.hooks.calls), len(made(node))) == (count, count)
    if rules is KUBELET:
        assert node.stops[-1][1] == 20.0


def test_a_pod_that_goes_while_its_container_cannot_be_stopped() -> None:
    """A stop that failed is not waited for by a kubelet's rules: with it what a look led to is over."""
    node = Node(rules=KUBELET)
    node.lives.heard()
    node.lives.put(pod(containers=(HOOKED,), annotations=STATIC, grace_s=4))
    node.after(1)
    node.runtime.fail("stop_container", RuntimeUnavailableError("stop_container", "not today"), times=200)
    node.verdicts.put("u", Verdicts(alive={node.id_of("app"): False}))
    node.after(2)
    node.lives.remove("u")
    node.after(2)
    assert node.life() is LifeState.TERMINATING
    assert len(made(node)) == 1


@pytest.mark.parametrize(("rules", "begun"), [(RIGHT, ["one", "two"]), (KUBELET, ["one", "two", "three"])])
def test_a_pod_that_goes_while_a_hook_runs(rules: Rules, begun: list[str]) -> None:
    """Nothing of it starts any more; a kubelet starts what comes after the hook before it ends all."""
    one, three = (Container(name=name, image="busybox") for name in ("one", "three"))
    two = Container(name="two", image="busybox", lifecycle=Lifecycle(post_start=HANDLER))
    node = Node(rules=rules)
    node.lives.heard()
    node.executor.held.add("post-start")
    node.lives.put(pod(containers=(one, two, three), annotations=STATIC))
    node.after(3)
    node.lives.remove("u")
    node.after(3)
    go_on(node)
    node.after(5)
    assert made(node) == begun
    assert node.running() == []


@pytest.mark.parametrize("is_edit", [False, True])
def test_what_is_told_as_what_was_begun_is_done(*, is_edit: bool) -> None:
    """A kubelet waits for a listing that shows all of it, before it ends the pod or makes it another."""
    one = Container(name="one", image="busybox", lifecycle=Lifecycle(post_start=HANDLER))
    two = Container(name="two", image="busybox")
    node = Node(rules=KUBELET)
    node.lives.heard()
    node.executor.held.add("post-start")
    node.lives.put(pod(containers=(one, two)))
    node.after(3)
    if is_edit:
        node.lives.put(pod(containers=(one, attrs.evolve(two, image="other"))))
    else:
        _delete(node, 15, (one, two))
    node.after(2)
    go_on(node, "stop")
    told: list[list[str]] = []
    for _ in range(8):
        node.after(0.25)
        facts = node.lives.facts.get("u")
        report = facts.report if facts else None
        told.append([one.record.name for one in report.containers] if report else [])
    assert told[-1] == ["two", "one"]
    assert ["one"] not in told
    assert node.executor.parked != []


@pytest.mark.parametrize(("rules", "count"), [(RIGHT, 2), (KUBELET, 3)])
def test_a_pod_that_is_edited_while_a_container_is_stopped(rules: Rules, count: int) -> None:
    """What starts next is made from what is wanted now; with a kubelet from what was wanted as it looked."""
    node = stopping(rules)
    other = attrs.evolve(HOOKED, image="other")
    node.lives.put(pod(containers=(other,), annotations=STATIC, grace_s=20))
    node.after(2)
    go_on(node)
    node.after(30)
    newest = node.runtime.inspect("u").newest("app")
    assert newest is not None
    assert (len(made(node)), newest.record.image) == (count, "sha256:other:latest")


@pytest.mark.parametrize(("rules", "left_s"), [(RIGHT, 3.0), (KUBELET, 15.0)])
def test_a_second_deletion_with_less_time(rules: Rules, left_s: float) -> None:
    """It counts from then; a kubelet that stops containers already goes on with that."""
    node = Node(rules=rules)
    node.lives.heard()
    node.executor.held.add("stop")
    node.lives.put(pod())
    node.after(3)
    began_s = node.clock.monotonic_s()
    _delete(node, 15)
    node.after(2)
    asked_s = node.clock.monotonic_s()
    _delete(node, 3)
    node.after(1)
    deadline_s = node.record().deadline_s
    assert deadline_s is not None
    assert deadline_s - (asked_s if rules is RIGHT else began_s) == pytest.approx(left_s, abs=0.5)


def _delete(node: Node, grace_s: int, containers: Sequence[Container] = ()) -> None:
    before = pod(containers=containers) if containers else pod()
    deleted: Pod = attrs.evolve(
        before, deletion_timestamp="2026-01-01T00:00:00Z", deletion_grace_period_seconds=grace_s
    )
    node.lives.put(deleted)
