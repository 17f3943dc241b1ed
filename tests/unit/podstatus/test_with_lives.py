"""Pods that live on a node, and what is told of them: one journal, one group, agents that are killed."""

from __future__ import annotations

import itertools
from datetime import datetime
from typing import cast

import attrs
import pytest

from nodealloc.checkpoint import rows_of
from nodealloc.dsw_asw import Group, World
from nodealloc.podfacts import (
    ContainerRunning,
    ContainerTerminated,
    ContainerWaiting,
    Exited,
    PodPhase,
    PodStatus,
)
from nodealloc.podlife import KUBELET, EndingKind, LifePolicy
from nodealloc.podlife import Ending as LifeEnding
from nodealloc.podlife._ports import LifeTold
from nodealloc.podspec import Container, RestartPolicy
from nodealloc.podstatus import KUBELET as KUBELET_STATUS
from nodealloc.podstatus import (
    STATUS_ROWS,
    Observed,
    StartFailure,
    StatusManager,
    Told,
    observed_of,
    told_from_checkpoint,
)
from nodealloc.podstatus import Rules as StatusRules
from nodealloc.podstatus._next_tries import NextTries
from nodealloc.testing.podstatus import FakeSink
from tests.unit.podlife_node import Node, Verdicts, pod

WITH_INIT = pod(init_containers=(Container(name="setup", image="busybox"),), policy=RestartPolicy.NEVER)


class TellingNode(Node):
    """A node with a status manager in the group of its agent, which ends of pods wait for.

    Attributes:
        told_world: The world that the next agent writes what it told into; None for a new one.
    """

    told_world: World[str, Told] | None = None

    def __init__(self, *, policy: LifePolicy | None = None, is_kubelet: bool = False) -> None:
        self.sink = FakeSink()
        self.told_by = StatusRules() if not is_kubelet else KUBELET_STATUS
        super().__init__(policy=policy, rules=KUBELET if is_kubelet else None)

    def start_agent(self) -> None:
        """With what was told remembered."""
        told: World[str, Told] = World("told") if self.told_world is None else self.told_world
        self.told_world = None
        self.others_told = cast("World[str, LifeTold]", told)
        super().start_agent()
        self.manager = StatusManager(
            self.sink,
            self.lives.facts,
            observed=observed_of,
            journal=self.journal,
            remembered=rows_of(STATUS_ROWS, self.journal.rows, told_from_checkpoint),
            told=told,
            rules=self.told_by,
            executor=self.executor,
            clock=self.clock,
            unix_s=self.unix_s,
        )
        self.group = Group(self.watch, self.lives, self.manager)

    def heard(self, *uids: str) -> None:
        """Every source was heard, and these pods are there."""
        self.lives.heard()
        self.manager.heard(uids)

    def told(self, uid: str = "u") -> list[PodStatus]:
        """Statuses of a pod that were told."""
        return [one for one in self.sink.of(uid) if one is not None]

    def phases(self, uid: str = "u") -> list[str]:
        """Phases that were told, squeezed; `gone` at the end."""
        found: list[str] = []
        for one in self.sink.of(uid):
            phase = "gone" if one is None else one.phase.value if one.phase else ""
            if not found or found[-1] != phase:
                found.append(phase)
        return found


def test_a_job_is_told_from_its_coming_to_its_end() -> None:
    """Its init container, its work, its end, and that nothing of it is left."""
    node = TellingNode()
    node.heard()
    node.lives.put(WITH_INIT)
    node.after(2.0)
    node.exit("setup")
    node.after(3.0)
    node.exit("app", 0)
    node.after(5.0)
    assert node.phases() == ["Pending", "Running", "Succeeded"]
    last = node.told()[-1]
    assert [one.ready for one in last.init_containers] == [True]
    node.lives.remove("u")
    node.after(30.0)
    assert node.phases() == ["Pending", "Running", "Succeeded", "gone"]


def test_who_is_evicted_has_failed_with_the_reason_though_it_leaves_with_0() -> None:
    """Ready falls first, while it still serves; its end is told once nothing of it runs."""
    node = TellingNode()
    node.heard()
    node.lives.put(pod())
    node.after(3.0)
    ending = LifeEnding(
        kind=EndingKind.EVICTED, reason="Evicted", message="low on memory", disruption="TerminationByKubelet"
    )
    node.lives.end("u", ending)
    node.after(30.0)
    assert node.phases()[-1] == "Failed"
    last = node.told()[-1]
    assert (last.reason, last.message) == ("Evicted", "low on memory")
    assert last.condition("DisruptionTarget") is not None
    for one in node.told():
        ready, victim = one.condition("Ready"), one.condition("DisruptionTarget")
        assert ready is not None
        assert victim is None or ready.status.value == "False"


@pytest.mark.parametrize("in_a_row", [2, 3])
@pytest.mark.parametrize("kills", [False, True])
def test_a_journal_that_refuses_makes_no_end_unknown(in_a_row: int, kills: bool) -> None:
    """Whichever commits of a pod's end fail, and though the agent is killed then."""
    for at in range(1, 13):
        node = TellingNode()
        node.heard()
        node.lives.put(pod(policy=RestartPolicy.NEVER))
        node.after(3.0)
        node.exit("app", 3)
        node.lives.remove("u")
        refuse(node, at, in_a_row)
        node.after(2.0)
        if kills:
            node.journal.fault = lambda: None
            node.kill_agent()
            node.heard()
        node.after(30.0, step_s=1.0)
        assert node.phases()[-2:] == ["Failed", "gone"], f"refused from commit {at} on"
        state = node.told()[-1].containers[0].state
        assert isinstance(state, ContainerTerminated), f"refused from commit {at} on"
        assert state.exit == Exited(code=3), f"refused from commit {at} on: {state}"
        assert "u" not in node.lives.pods
        assert "u" not in node.manager.told


def refuse(node: TellingNode, at: int, in_a_row: int) -> None:
    """The journal refuses some commits from now on, counted from 1."""
    numbers = itertools.count(1)

    def fault() -> None:
        if at <= next(numbers) < at + in_a_row:
            raise OSError("the disk is full")

    node.journal.fault = fault


def test_restarts_are_told_with_their_count() -> None:
    """What it waits for, how it ended, and how often it began."""
    node = TellingNode()
    node.heard()
    node.lives.put(pod())
    node.after(2.0)
    node.exit("app", 1)
    node.after(60.0)
    (app,) = node.told()[-1].containers
    assert isinstance(app.state, ContainerRunning)
    assert (app.restart_count, app.ready) == (1, True)
    counts = [one.containers[0].restart_count for one in node.told()]
    assert counts == sorted(counts)


def test_an_agent_that_starts_again_tells_nothing_new() -> None:
    """A pod that runs and is ready is not touched by its end."""
    node = TellingNode()
    node.heard("u")
    node.lives.put(pod())
    node.after(3.0)
    before = len(node.sink.calls)
    node.kill_agent()
    node.lives.put(pod())
    node.after(2.0)
    node.heard("u")
    node.after(5.0)
    assert node.sink.calls[before:] == []


@pytest.mark.parametrize("seconds", [0.0, 0.25, 0.75, 1.5, 3.0, 4.0, 5.25])
def test_killed_at_any_time_each_pod_ends_once(seconds: float) -> None:
    """Its end is told, once, as it was; then it is gone, and nothing is remembered of it."""
    node = TellingNode()
    node.heard("u")
    node.lives.put(WITH_INIT)
    node.after(seconds)
    node.kill_agent()
    node.lives.put(WITH_INIT)
    node.heard("u")
    node.after(6.0)
    for name in ("setup", "app"):
        if f"{name}#0" in node.running():
            node.exit(name)
            node.after(3.0)
    node.kill_agent()
    node.lives.put(WITH_INIT)
    node.heard("u")
    node.after(3.0)
    node.lives.remove("u")
    node.after(60.0)
    assert node.phases()[-2:] == ["Succeeded", "gone"]
    ends = [one for one in node.told() if one.phase is not None and one.phase.is_terminal]
    assert {one.phase for one in ends} == {PodPhase.SUCCEEDED}
    assert not [name for name in node.journal.rows if name.startswith(STATUS_ROWS)]


def test_a_pod_that_no_source_has_any_more_ends_as_gone() -> None:
    """It was taken away while no agent ran: its end is told all the same."""
    node = TellingNode()
    node.heard()
    node.lives.put(attrs.evolve(pod(), termination_grace_period_seconds=1))
    node.after(3.0)
    node.kill_agent()
    node.heard()
    node.after(60.0)
    assert node.phases()[-1] == "gone"
    assert node.phases()[-2] in {"Failed", "Succeeded"}


def waiting(node: TellingNode) -> list[str]:
    """What was told of a container that waited for its back-off, each message once, in order."""
    found = [one.containers[0].state for one in node.told() if one.containers]
    states = [one for one in found if isinstance(one, ContainerWaiting) and one.reason == "CrashLoopBackOff"]
    return list(dict.fromkeys(one.message for one in states))


def test_when_a_container_starts_again_is_told() -> None:
    """As a moment, which stays the same while it waits, and is the moment at which it does start."""
    node = TellingNode()
    node.heard()
    node.lives.put(pod())
    node.after(2.0)
    for _ in range(2):
        node.exit("app", 1)
        node.after(2.0)
        node.verdicts.put("other", Verdicts())  # something else changes meanwhile
        node.after(25.0)
    said = [one.rsplit("next try at ", 1)[1] for one in waiting(node)]
    assert len(said) == len(set(said)) >= 1
    at_unix_s = datetime.fromisoformat(said[-1]).timestamp()
    (running,) = [
        one.state.started_unix_s
        for one in node.told()[-1].containers
        if isinstance(one.state, ContainerRunning)
    ]
    assert running is not None
    assert 0.0 <= running - at_unix_s <= 2.0


def test_a_next_try_is_said_once_for_each_failure() -> None:
    """Clocks that drift a little apart do not make another moment of it; a new failure has one of its own."""
    tries = NextTries()

    def said(until_s: float, now_s: float, now_unix_s: float) -> str:
        failure = StartFailure(reason="ErrImagePull", message="no such host", until_s=until_s)
        observed = Observed(pod=pod(), start_failures={"app": failure})
        found = tries.said("u", observed, now_s=now_s, now_unix_s=now_unix_s)
        return found.start_failures["app"].message

    assert said(110.0, 100.0, 1000.4) == "no such host; next try at 1970-01-01T00:16:50Z"
    assert said(110.0, 101.0, 1002.6) == "no such host; next try at 1970-01-01T00:16:50Z"
    assert said(130.0, 110.0, 1010.0) == "no such host; next try at 1970-01-01T00:17:10Z"
    tries.forget("u")
    assert said(130.0, 110.0, 1012.0) == "no such host; next try at 1970-01-01T00:17:12Z"
    bare = Observed(pod=pod(), start_failures={"app": StartFailure(reason="Waits")})
    assert tries.said("u", bare, now_s=0.0, now_unix_s=0.0) is bare


@pytest.mark.parametrize("policy", list(RestartPolicy))
def test_what_is_stopped_to_start_again_is_never_told_to_have_ended_for_good(policy: RestartPolicy) -> None:
    """Between its two instances it waits, and how the first one ended stands behind that; then it runs."""
    node = TellingNode()
    before = pod(policy=policy)
    node.lives.put(before)
    node.after(2)
    node.executor.held.add("start")
    (app,) = before.containers
    node.lives.put(attrs.evolve(before, containers=(attrs.evolve(app, image="other"),)))
    node.after(8)
    (between,) = node.told()[-1].containers
    assert isinstance(between.state, ContainerWaiting)
    assert isinstance(between.last_state, ContainerTerminated)
    node.executor.held.clear()
    for call in node.executor.parked:
        call()
    node.after(4)
    (after,) = node.told()[-1].containers
    assert isinstance(after.state, ContainerRunning)
    assert after.restart_count == 1
    assert node.phases()[-1] == "Running"
    node.exit("app", 0)
    node.after(4)
    (last,) = node.told()[-1].containers
    assert isinstance(last.state, ContainerTerminated) is (policy is not RestartPolicy.ALWAYS)
