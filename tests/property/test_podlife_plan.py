"""Laws of plans: carried out again and again they bring a pod where it is to be, whatever happens to it."""

from __future__ import annotations

import attrs
from hypothesis import given
from hypothesis import strategies as st

from nodealloc.podfacts import Exited, ExitUnknown, PodIdentity
from nodealloc.podlife import PodPlan, PodSeen, explain_plan, plan_pod
from nodealloc.podlife._actions import stops_of
from nodealloc.podlife._definitions import Definitions
from nodealloc.podspec import Container, Pod, RestartPolicy
from nodealloc.runtime import (
    ContainerRecord,
    ContainerReport,
    Exit,
    PodReport,
    RunState,
    SandboxRecord,
    SandboxReport,
)

ME = PodIdentity(uid="u", namespace="default", name="web")
EXITS = st.sampled_from([Exited(code=0), Exited(code=1), Exited(code=137), ExitUnknown()])


@attrs.define
class Node:
    """A runtime in miniature that does as a plan says, and remembers which init containers succeeded."""

    pod: Pod
    boxes: list[SandboxReport] = attrs.field(factory=list)
    runs: list[ContainerReport] = attrs.field(factory=list)
    completed: set[str] = attrs.field(factory=set)
    started: list[str] = attrs.field(factory=list)
    made: int = 0

    def seen(self) -> PodSeen:
        """What it would report, the newest first."""
        report = PodReport(uid="u", sandboxes=tuple(self.boxes[::-1]), containers=tuple(self.runs[::-1]))
        return PodSeen(report=report, completed=frozenset(self.completed))

    def plan(self) -> PodPlan:
        """What is next."""
        return plan_pod(self.pod, self.seen(), definitions=Definitions.of(self.pod))

    def follow(self, plan: PodPlan) -> None:
        """Carry a plan out: stops, sandbox, starts."""
        for stop in stops_of(plan, self.seen().report):
            self.end(stop.container_id, Exited(code=137))
        if plan.ends:
            self.boxes = [
                attrs.evolve(one, record=attrs.evolve(one.record, is_ready=False)) for one in self.boxes
            ]
        if plan.makes_sandbox:
            box = SandboxRecord(id=f"box{plan.attempt}", pod=ME, attempt=plan.attempt)
            self.boxes.append(SandboxReport(record=box, ips=("10.0.0.2",)))
            self.completed.clear()
        for name in plan.starts:
            self.start(name)

    def start(self, name: str) -> None:
        """Run another instance."""
        self.made += 1
        attempt = sum(one.record.name == name for one in self.runs)
        record = ContainerRecord(
            id=f"{name}-{self.made}",
            pod=ME,
            name=name,
            sandbox_id=self.boxes[-1].record.id,
            attempt=attempt,
            state=RunState.RUNNING,
        )
        self.runs.append(ContainerReport(record=record))
        self.started.append(name)

    def end(self, id_: str, exit_: Exit) -> None:
        """Have one ended."""
        inits = {one.name for one in self.pod.init_containers if not one.restartable}
        for index, one in enumerate(self.runs):
            if one.record.id != id_ or one.exit is not None:
                continue
            record = attrs.evolve(one.record, state=RunState.EXITED)
            self.runs[index] = attrs.evolve(one, record=record, exit=exit_)
            if exit_ == Exited(code=0) and record.name in inits:
                self.completed.add(record.name)

    def living(self) -> list[str]:
        """Names of what lives."""
        return [one.record.name for one in self.runs if one.record.state is not RunState.EXITED]


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    """Up to three init containers and sidecars, up to two main ones."""
    sidecars = draw(st.lists(st.booleans(), max_size=3))
    return Pod(
        uid="u",
        name="web",
        init_containers=tuple(Container(name=f"init{n}", restartable=one) for n, one in enumerate(sidecars)),
        containers=tuple(Container(name=f"app{n}") for n in range(draw(st.integers(1, 2)))),
        restart_policy=draw(st.sampled_from(RestartPolicy)),
    )


EVENTS = st.lists(st.tuples(st.integers(0, 9), EXITS, st.integers(0, 4)), max_size=12)
"""Which of the living ends, how, and what else happens: a record lost, the sandbox dead, a state unknown."""


def disturb(node: Node, which: int, exit_: Exit, more: int) -> None:
    """Have something happen."""
    living = [one for one in node.runs if one.record.state is not RunState.EXITED]
    if living:
        victim = living[which % len(living)]
        if more == 0:
            index = node.runs.index(victim)
            node.runs[index] = attrs.evolve(
                victim, record=attrs.evolve(victim.record, state=RunState.UNKNOWN)
            )
        else:
            node.end(victim.record.id, exit_)
    dead = [one for one in node.runs if one.exit is not None and one.record.name in node.completed]
    if more == 1 and dead:
        node.runs.remove(dead[which % len(dead)])
    if more == 2 and node.boxes:
        last = node.boxes[-1]
        node.boxes[-1] = attrs.evolve(last, record=attrs.evolve(last.record, is_ready=False))


@given(pod=pods(), events=EVENTS)
def test_no_container_ever_runs_twice_at_a_time(pod: Pod, events: list[tuple[int, Exit, int]]) -> None:
    """Whatever ends, gets lost or dies: one living instance a name, and no line of explanation is missing."""
    node = Node(pod)
    for which, exit_, more in events:
        for _ in range(3):
            plan = node.plan()
            node.follow(plan)
            living = node.living()
            assert len(living) == len(set(living))
            assert len(explain_plan(plan)) >= len(pod.all_containers)
        disturb(node, which, exit_, more)


@given(pod=pods(), events=EVENTS)
def test_init_containers_that_succeeded_stay_done_in_their_sandbox(
    pod: Pod, events: list[tuple[int, Exit, int]]
) -> None:
    """Also where their records are gone: what runs again is what has not succeeded, or a sidecar."""
    node = Node(pod)
    for which, exit_, more in events:
        plan = node.plan()
        if not plan.makes_sandbox:
            assert node.completed.isdisjoint(plan.starts)
        node.follow(plan)
        disturb(node, which, exit_, more)


@given(pod=pods(), events=EVENTS)
def test_a_pod_left_alone_comes_to_rest(pod: Pod, events: list[tuple[int, Exit, int]]) -> None:
    """After any history in which init containers succeed from now on, few plans bring it where it stays.

    There either all its main containers run that have to, or nothing of it lives.
    """
    node = Node(pod)
    for which, exit_, more in events:
        node.follow(node.plan())
        disturb(node, which, exit_, more)
    inits = {one.name for one in pod.init_containers if not one.restartable}
    for _ in range(20):
        plan = node.plan()
        node.follow(plan)
        for one in [one for one in node.runs if one.record.name in inits and one.exit is None]:
            node.end(one.record.id, Exited(code=0))
        if plan.is_done and node.plan().is_done:
            break
        if plan.ends and not plan.makes_sandbox:
            break
    living = set(node.living())
    if plan.ends:
        assert not living
    else:
        assert plan.is_done
        mains = {one.name for one in pod.containers}
        if pod.restart_policy is RestartPolicy.ALWAYS:
            assert mains <= living
        assert living & mains
        assert {one.name for one in pod.init_containers if one.restartable} <= living


@given(pod=pods(), events=EVENTS)
def test_init_containers_come_in_order(pod: Pod, events: list[tuple[int, Exit, int]]) -> None:
    """In each sandbox the first start of a container comes after those before it; mains come last."""
    node = Node(pod)
    order = [one.name for one in pod.init_containers]
    for which, exit_, more in events:
        plan = node.plan()
        if plan.makes_sandbox:
            node.started.clear()
        for name in plan.starts:
            before = order[: order.index(name)] if name in order else order
            assert set(before) <= {*node.started, *plan.starts}
        node.follow(plan)
        disturb(node, which, exit_, more)
