"""What an agent with a bug asks for, tells and remembers, as its ports see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import attrs

from nodealloc.idset import CPUSet, NodeSet
from nodealloc.podfacts import (
    ConditionStatus,
    ContainerTerminated,
    Exited,
    ExitUnknown,
    PodPhase,
    PodStatus,
)
from nodealloc.podsources import Reading
from nodealloc.runtime import (
    AnswerLostError,
    ContainerConfig,
    ContainerReport,
    Listing,
    NameReservedError,
    PodReport,
    RuntimeUnavailableError,
    SandboxConfig,
)
from nodealloc.testing.simulation.node._ports import (
    NodePorts,
    SimulatedCpusets,
    SimulatedRuntime,
    SimulatedSink,
    SimulatedSource,
)

__all__ = [
    "AlwaysReady",
    "Amnesia",
    "CodesAreLost",
    "ComesBack",
    "CountsPerLife",
    "Cpusets",
    "EndsTooEarly",
    "FailureIsEmpty",
    "ForgetsToStart",
    "GoneTooEarly",
    "GraceGrows",
    "LeavesBehind",
    "MakesAnother",
    "NewSandboxes",
    "NoReasons",
    "OtherCpus",
    "ReadinessReset",
    "Runtime",
    "SameAttempt",
    "SameCpu",
    "Sink",
    "Source",
    "StartsTwoCopies",
    "StopsWithFullGrace",
    "Swallows",
    "UnknownIsZero",
    "believes",
    "with_cpusets",
    "with_runtime",
    "with_sink",
]


class Runtime:
    """A runtime's ports, one of which a bug changes."""

    def __init__(self, ports: NodePorts) -> None:
        self.inner = ports.runtime
        self.life = ports.life

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)


def with_runtime(kind: Callable[[NodePorts], Runtime]) -> Callable[[], Callable[[NodePorts], NodePorts]]:
    # It answers to whatever the runtime does, which a type checker cannot see.
    return lambda: lambda ports: attrs.evolve(ports, runtime=cast("SimulatedRuntime", kind(ports)))


class StopsWithFullGrace(Runtime):
    def stop_container(self, container_id: str, grace_s: float, /) -> None:
        self.inner.stop_container(container_id, max(grace_s, 30.0))


class GraceGrows(Runtime):
    asked: dict[str, float]

    def __init__(self, ports: NodePorts) -> None:
        super().__init__(ports)
        self.asked = {}

    def stop_container(self, container_id: str, grace_s: float, /) -> None:
        self.asked[container_id] = grace_s = self.asked.get(container_id, grace_s) * 2 + 3
        self.inner.stop_container(container_id, grace_s)


class MakesAnother(Runtime):
    """A lost answer is taken for a failure: the next number is made at once, without a look."""

    def create_container(self, sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig, /) -> str:
        try:
            return self.inner.create_container(sandbox_id, config, sandbox)
        except (AnswerLostError, NameReservedError):
            other = attrs.evolve(config, attempt=config.attempt + 1)
            return self.inner.create_container(sandbox_id, other, sandbox)

    def start_container(self, container_id: str, /) -> None:
        report = next((one for one in self._reports() if one.record.id == container_id), None)
        if report is not None:
            for one in self._reports():
                same = (one.record.pod.uid, one.record.name) == (report.record.pod.uid, report.record.name)
                if same and one.record.state.value == "created" and one.record.id != container_id:
                    self.inner.start_container(one.record.id)
        self.inner.start_container(container_id)

    def _reports(self) -> Sequence[ContainerReport]:
        uids = set(self.inner.listing().pods)
        return [one for uid in uids for one in self.inner.inspect(uid).containers]


class StartsTwoCopies(Runtime):
    """After a call that timed out it makes and starts a second copy in place of looking."""

    def start_container(self, container_id: str, /) -> None:
        try:
            self.inner.start_container(container_id)
        except AnswerLostError:
            self.again(container_id)
            raise

    configs: dict[str, tuple[str, ContainerConfig, SandboxConfig]]

    def __init__(self, ports: NodePorts) -> None:
        super().__init__(ports)
        self.configs = {}

    def create_container(self, sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig, /) -> str:
        made = self.inner.create_container(sandbox_id, config, sandbox)
        self.configs[made] = (sandbox_id, config, sandbox)
        return made

    def again(self, container_id: str) -> None:
        sandbox_id, config, sandbox = self.configs[container_id]
        other = attrs.evolve(config, attempt=config.attempt + 1)
        self.inner.start_container(self.inner.create_container(sandbox_id, other, sandbox))


class UnknownIsZero(Runtime):
    def inspect(self, uid: str, /) -> PodReport:
        report = self.inner.inspect(uid)
        known = tuple(
            attrs.evolve(one, exit=Exited(code=0)) if isinstance(one.exit, ExitUnknown) else one
            for one in report.containers
        )
        return attrs.evolve(report, containers=known)


class CodesAreLost(Runtime):
    def inspect(self, uid: str, /) -> PodReport:
        report = self.inner.inspect(uid)
        known = tuple(
            attrs.evolve(one, exit=Exited(code=137)) if isinstance(one.exit, Exited) else one
            for one in report.containers
        )
        return attrs.evolve(report, containers=known)


class FailureIsEmpty(Runtime):
    """A listing that fails is taken for one that is empty."""

    def listing(self) -> Listing:
        try:
            return self.inner.listing()
        except RuntimeUnavailableError:
            return Listing.of([], [])


class ForgetsToStart(Runtime):
    """One start in ten is believed to have been done."""

    count = 0

    def start_container(self, container_id: str, /) -> None:
        type(self).count += 1
        if type(self).count % 10:
            self.inner.start_container(container_id)


class LeavesBehind(Runtime):
    """A sandbox is stopped without a look at what runs in it, and some containers are never told."""

    def stop_container(self, container_id: str, grace_s: float, /) -> None:
        if int(container_id.rpartition("-")[2]) % 3:
            self.inner.stop_container(container_id, grace_s)

    def stop_sandbox(self, sandbox_id: str, /) -> None:
        del sandbox_id

    def remove_sandbox(self, sandbox_id: str, /) -> None:
        del sandbox_id

    def remove_container(self, container_id: str, /) -> None:
        del container_id


class SameAttempt(Runtime):
    """A number is used again: the old record goes, and another one takes its place."""

    def create_container(self, sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig, /) -> str:
        first = attrs.evolve(config, attempt=0)
        for one in self.inner.inspect(sandbox.pod.uid).containers:
            if (one.record.name, one.record.attempt) == (config.name, 0):
                self.inner.remove_container(one.record.id)
        return self.inner.create_container(sandbox_id, first, sandbox)


class NewSandboxes(Runtime):
    """Each life begins with a stop of everything, as after a first installation."""

    def __init__(self, ports: NodePorts) -> None:
        super().__init__(ports)
        self.is_first = True

    def listing(self) -> Listing:
        listing = self.inner.listing()
        if self.is_first and self.life.number > 1:
            self.is_first = False
            for pod in listing.pods.values():
                for one in pod.sandboxes:
                    self.inner.stop_sandbox(one.id)
        return listing


class Sink:
    """A sink that a bug changes."""

    def __init__(self, ports: NodePorts) -> None:
        self.inner = ports.sink
        self.life = ports.life

    def told(self, uid: str, status: PodStatus, /) -> None:
        self.inner.told(uid, status)

    def gone(self, uid: str, /) -> None:
        self.inner.gone(uid)


def with_sink(kind: Callable[[NodePorts], Sink]) -> Callable[[], Callable[[NodePorts], NodePorts]]:
    return lambda: lambda ports: attrs.evolve(ports, sink=cast("SimulatedSink", kind(ports)))


class Swallows(Sink):
    """What a sink did not take counts as told."""

    def told(self, uid: str, status: PodStatus, /) -> None:
        try:
            self.inner.told(uid, status)
        except OSError:
            return


class AlwaysReady(Sink):
    def told(self, uid: str, status: PodStatus, /) -> None:
        conditions = tuple(
            attrs.evolve(one, status=ConditionStatus.TRUE) if one.type == "Ready" else one
            for one in status.conditions
        )
        self.inner.told(uid, attrs.evolve(status, conditions=conditions))


class ReadinessReset(Sink):
    """Each life tells of each pod first that it is not ready."""

    def __init__(self, ports: NodePorts) -> None:
        super().__init__(ports)
        self.seen: set[str] = set()

    def told(self, uid: str, status: PodStatus, /) -> None:
        if uid not in self.seen and self.life.number > 1:
            self.seen.add(uid)
            conditions = tuple(
                attrs.evolve(one, status=ConditionStatus.FALSE) if one.type == "Ready" else one
                for one in status.conditions
            )
            self.inner.told(uid, attrs.evolve(status, conditions=conditions))
        self.inner.told(uid, status)


class CountsPerLife(Sink):
    """Restarts are counted from the start of the agent."""

    def told(self, uid: str, status: PodStatus, /) -> None:
        if self.life.number % 2 == 0:
            fewer = tuple(
                attrs.evolve(one, restart_count=max(0, one.restart_count - 1)) for one in status.containers
            )
            status = attrs.evolve(status, containers=fewer)
        self.inner.told(uid, status)


class ComesBack(Sink):
    """An ended pod is told to run for a moment, when a late observation arrives."""

    def told(self, uid: str, status: PodStatus, /) -> None:
        self.inner.told(uid, status)
        if status.phase is not None and status.phase.is_terminal:
            self.inner.told(uid, attrs.evolve(status, phase=PodPhase.RUNNING))
            self.inner.told(uid, status)


class GoneTooEarly(Sink):
    """A pod is told gone with the first status of its end."""

    def told(self, uid: str, status: PodStatus, /) -> None:
        self.inner.told(uid, status)
        ready = status.condition("Ready")
        if status.containers and ready is not None and ready.status is ConditionStatus.FALSE:
            self.inner.gone(uid)


class EndsTooEarly(Sink):
    """A pod that is being ended is told to have ended."""

    def told(self, uid: str, status: PodStatus, /) -> None:
        states = [one.state for one in status.containers]
        if any(isinstance(one, ContainerTerminated) for one in states):
            status = attrs.evolve(status, phase=PodPhase.FAILED)
        self.inner.told(uid, status)


class NoReasons(Sink):
    def told(self, uid: str, status: PodStatus, /) -> None:
        self.inner.told(uid, attrs.evolve(status, reason="", message=""))


class Source:
    """A source that is believed at once, whether it knows its pods or not."""

    def __init__(self, inner: SimulatedSource) -> None:
        self.inner = inner

    def read(self, cancel: object, /) -> Reading:
        try:
            return attrs.evolve(self.inner.read(cancel), is_synced=True)  # type: ignore[arg-type]
        except OSError:
            return Reading()


def believes(ports: NodePorts) -> NodePorts:
    sources = {name: Source(one) for name, one in ports.sources.items()}
    return attrs.evolve(ports, sources=cast("Mapping[str, SimulatedSource]", sources))


class Cpusets:
    """A writer that a bug changes."""

    def __init__(self, ports: NodePorts) -> None:
        self.inner = ports.cpusets
        self.life = ports.life

    def read(self, target: str, /) -> tuple[CPUSet, NodeSet | None]:
        return self.inner.read(target)

    def write(self, target: str, cpus: CPUSet, mems: NodeSet | None, /) -> None:
        self.inner.write(target, cpus, mems)


class SameCpu(Cpusets):
    """Whoever has one CPU of its own gets the first one."""

    def write(self, target: str, cpus: CPUSet, mems: NodeSet | None, /) -> None:
        self.inner.write(target, CPUSet.of(1) if len(cpus) == 1 else cpus, mems)


class OtherCpus(Cpusets):
    """After a restart of the agent everybody moves on by one CPU."""

    def read(self, target: str, /) -> tuple[CPUSet, NodeSet | None]:
        del target
        return CPUSet(), None

    def write(self, target: str, cpus: CPUSet, mems: NodeSet | None, /) -> None:
        moved = CPUSet.of(*((cpu + self.life.number - 1) % 6 for cpu in cpus)) if len(cpus) == 1 else cpus
        self.inner.write(target, moved, mems)


def with_cpusets(kind: Callable[[NodePorts], Cpusets]) -> Callable[[], Callable[[NodePorts], NodePorts]]:
    return lambda: lambda ports: attrs.evolve(ports, cpusets=cast("SimulatedCpusets", kind(ports)))


class Amnesia:
    """A disk that takes everything and keeps nothing over the end of the process."""

    def __call__(self, ports: NodePorts) -> NodePorts:
        from nodealloc.testing._simulated_disk import SimulatedDisk  # noqa: PLC0415

        disk = SimulatedDisk()
        return attrs.evolve(ports, disk=disk.path, files=disk)
