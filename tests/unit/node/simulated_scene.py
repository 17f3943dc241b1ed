"""A simulated node without an agent, on which a test does everything by hand."""

from __future__ import annotations

import random
from collections.abc import Sequence

from nodealloc.idset import CPUSet
from nodealloc.machine import machine_from_text
from nodealloc.podfacts import (
    ConditionStatus,
    ContainerStatus,
    PodCondition,
    PodIdentity,
    PodPhase,
    PodStatus,
)
from nodealloc.podspec import Container, Pod
from nodealloc.runtime import ContainerConfig, HostMount, LinuxResources, SandboxConfig
from nodealloc.testing.simulation import SimulatedClock
from nodealloc.testing.simulation.node import Deletion, Environment, Event, What
from nodealloc.testing.simulation.node._behaviour import IMAGE, Behaviour
from nodealloc.testing.simulation.node._environment import API

__all__ = ["APP", "Scene"]

APP = Container(name="app", image=IMAGE)


class Slow(Environment):
    """Whatever runs does so until it is killed."""

    def _behave(self, uid: str, name: str, _attempt: int) -> Behaviour:
        del uid, name
        return Behaviour(runs_s=float("inf"), code=0, leaves_s=float("inf"))


class Scene:
    """A node on which everything is done by hand."""

    def __init__(self) -> None:
        self.clock = SimulatedClock()
        self.environment = Slow(self.clock, random.Random(1))
        self.environment.machine = machine_from_text("2 sockets × 4 cores")
        self.environment.reserved = CPUSet.of(0)
        self._boxes: dict[str, str] = {}

    def wants(self, uid: str = "u", container: Container = APP, **more: object) -> None:
        """Somebody wants a pod."""
        fields: dict[str, object] = {"name": uid, "namespace": "n", "containers": (container,), **more}
        made = Pod(uid=uid, **fields)  # type: ignore[arg-type]
        self.environment.pods[API][uid] = self.environment.known[uid] = made
        self.environment.forms.wanted(made)
        self.environment.wanted_s[uid] = self.clock.awake_s, self.clock.passed_s
        self.happens(What.WANTED, uid=uid)

    def runs(
        self,
        uid: str = "u",
        name: str = "app",
        attempt: int = 0,
        *,
        env: dict[str, str] | None = None,
        resources: LinuxResources | None = None,
        mounts: Sequence[HostMount] = (),
        starts: bool = True,
    ) -> str:
        """A container is made and started, or only made; its id."""
        runtime = self.environment.containers
        box = SandboxConfig(pod=PodIdentity.of(self.environment.known[uid]), hostname=uid)
        if uid not in self._boxes:
            self._boxes[uid] = runtime.run_sandbox(box)
        config = ContainerConfig(
            name=name,
            image=IMAGE,
            attempt=attempt,
            env=env or {},
            resources=resources or LinuxResources(),
            mounts=tuple(mounts),
        )
        made = runtime.create_container(self._boxes[uid], config, box)
        if starts:
            runtime.start_container(made)
        return made

    def crashes(self, container_id: str, code: int = 7) -> None:
        """A container ends by itself."""
        self.environment.containers.crash(container_id, code)

    def ends(self, container_id: str, grace_s: float) -> None:
        """A container is asked to end."""
        self.environment.containers.ask_to_end(container_id, grace_s)

    def deleted(self, uid: str = "u", grace_s: float = 10.0) -> None:
        """Somebody wants a pod gone, and the agent has read that."""
        self.environment.deletions[uid] = Deletion(
            at_s=self.clock.awake_s, passed_s=self.clock.passed_s, grace_s=grace_s
        )
        self.environment.read[uid] = self.clock.awake_s
        self.happens(What.DELETED, uid=uid, value=grace_s)

    def reads_end(self, uid: str = "u", grace_s: float = 10.0) -> None:
        """Somebody wants a pod gone, and the agent reads that."""
        self.environment.reads.to_end(API, uid, grace_s)
        self.environment.reads.reading(API)()

    def told(
        self,
        phase: PodPhase = PodPhase.RUNNING,
        uid: str = "u",
        *,
        ready: bool | None = None,
        containers: Sequence[ContainerStatus] = (),
        reason: str = "",
        victim: bool = False,
    ) -> None:
        """Somebody is told of a pod."""
        said = ConditionStatus.TRUE if ready else ConditionStatus.FALSE
        conditions = () if ready is None else (PodCondition(type="Ready", status=said),)
        if victim:
            conditions = (*conditions, PodCondition(type="DisruptionTarget", status=ConditionStatus.TRUE))
        self.environment.tell(
            uid,
            PodStatus(phase=phase, conditions=conditions, containers=tuple(containers), reason=reason),
        )

    def happens(self, what: What, **fields: object) -> None:
        """Something else."""
        self.environment.events.happen(Event(what=what, at_s=self.clock.awake_s, **fields))  # type: ignore[arg-type]
