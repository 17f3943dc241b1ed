"""Calls that come back after their time, are asked to stop, or that nobody takes up: the pod goes on."""

from __future__ import annotations

import pytest

from nodealloc.podfacts import LifeState, PodIdentity
from nodealloc.runtime import ContainerConfig, SandboxConfig
from nodealloc.testing.dsw_asw import ManualCancel
from tests.unit.podlife_node import Node, pod

PAST_ITS_TIME_S = 130.0
"""Longer than a call of the runtime may take."""


@pytest.mark.parametrize("verb", ["start", "run sandbox"])
def test_a_call_that_stopped_after_its_time_is_made_again(verb: str) -> None:
    """It was asked to stop when its time was over, and did: what it left behind is looked at, no more."""
    node = Node()
    node.executor.held.add(verb)
    node.lives.put(pod())
    node.after(PAST_ITS_TIME_S, step_s=5.0)
    assert (node.running(), node.record().doubt) == ([], None)
    node.executor.held.clear()
    node.executor.parked.pop()()
    node.after(60, step_s=1.0)
    assert node.running() == ["app#0"]


@pytest.mark.parametrize("verb", ["start", "run sandbox"])
def test_what_a_call_made_after_its_time_is_gone_on_with(verb: str) -> None:
    """It did not hear that it should stop: its sandbox, or container, is the pod's."""
    node = Node()
    node.executor.held.add(verb)
    node.lives.put(pod())
    node.after(PAST_ITS_TIME_S, step_s=5.0)
    node.executor.held.clear()
    node.executor.hanging[-1].cancel = ManualCancel()
    node.executor.parked.pop()()
    node.after(60, step_s=1.0)
    assert node.running() == ["app#0"]
    made = [one.split()[0] for one in node.calls()]
    assert [one for one in made if one in {"run_sandbox", "create_container"}] == made[:2]
    assert node.life() is LifeState.SYNCING


@pytest.mark.parametrize("verb", ["start", "run sandbox"])
def test_a_call_that_nobody_took_up_leaves_no_doubt(verb: str) -> None:
    """It did nothing, so nothing has to be looked at before it is made again."""
    node = Node()
    node.executor.forgotten.add(verb)
    node.lives.put(pod())
    node.after(PAST_ITS_TIME_S, step_s=5.0)
    assert (node.running(), node.record().doubt) == ([], 0)
    node.executor.forgotten.clear()
    node.after(300, step_s=5.0)
    assert node.running() == ["app#0"]


def test_a_container_that_never_ran_in_a_sandbox_that_died_holds_nothing_up() -> None:
    """It was made and not started when its sandbox ended: nothing is stopped, and the next one starts."""
    node = Node()
    node.executor.held.add("start")
    node.lives.put(pod())
    node.after(1)
    box = node.runtime.inspect("u").sandboxes[0].record.id
    node.runtime.create_container(
        box, ContainerConfig(name="app", image="busybox"), SandboxConfig(pod=PodIdentity.of(pod()))
    )
    node.runtime.stop_sandbox(box)
    node.watch.hurry()
    node.executor.held.clear()
    node.executor.parked.pop()()
    node.after(60, step_s=1.0)
    assert node.running() == ["app#1"]


def test_what_starts_once_its_pod_has_finished_is_ended() -> None:
    """A call of which nobody expected anything any more made it: it runs for nobody, and its sandbox ends."""
    node = Node()
    wanted = pod(active_deadline_seconds=60)
    node.lives.put(wanted)
    node.after(120, step_s=1.0)
    assert (node.running(), node.life()) == ([], LifeState.FINISHED)
    config = SandboxConfig(pod=PodIdentity.of(wanted), attempt=1)
    box = node.runtime.run_sandbox(config)
    node.runtime.start_container(
        node.runtime.create_container(box, ContainerConfig(name="app", image="busybox", attempt=1), config)
    )
    assert node.running() == ["app#1"]
    node.after(60, step_s=1.0)
    assert (node.running(), node.life()) == ([], LifeState.FINISHED)
    ready = [one.record.id for one in node.runtime.inspect("u").sandboxes if one.record.is_ready]
    assert ready == []


@pytest.mark.parametrize("grace_s", [0, 5])
def test_what_no_listing_has_shown_is_not_gone_when_a_call_to_end_it_hangs(grace_s: int) -> None:
    """It was made while the listing hung, and ended by a second call: its records are still to be removed."""
    node = Node()
    node.after(5)
    node.executor.held.add("list")
    node.after(5)
    wanted = pod(grace_s=grace_s)
    node.lives.put(wanted)
    node.after(5)
    assert node.running() == ["app#0"]
    node.executor.held.add("stop")
    node.lives.remove("u", grace_s=grace_s)
    node.after(PAST_ITS_TIME_S, step_s=1.0)
    assert node.running() == []
    node.after(PAST_ITS_TIME_S, step_s=1.0)
    assert node.record().pod is wanted
    node.executor.held.clear()
    while node.executor.parked:
        node.executor.parked.pop()()
    node.after(60, step_s=1.0)
    assert "u" not in node.lives.pods
    assert not node.runtime.inspect("u").sandboxes
