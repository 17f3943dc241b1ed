"""Bugs in what an agent asks of the runtime, and believes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import attrs

from nodealloc.podfacts import (
    Exited,
    ExitUnknown,
)
from nodealloc.runtime import (
    AnswerLostError,
    ContainerConfig,
    ContainerRecord,
    ContainerReport,
    Listing,
    NameReservedError,
    PodListing,
    PodReport,
    RunState,
    RuntimeUnavailableError,
    SandboxConfig,
)
from nodealloc.testing.simulation.node._planted_faults._values import PlantedFault
from nodealloc.testing.simulation.node._ports import (
    NodePorts,
    SimulatedRuntime,
)

__all__ = ["PLANTED_FAULTS"]


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


class NeverWaits(StartsTwoCopies):
    """Whoever ended is started again with the next listing, however often it had ended before."""

    def start_container(self, container_id: str, /) -> None:
        self.inner.start_container(container_id)

    def listing(self) -> Listing:
        listing = self.inner.listing()
        for pod in listing.pods.values():
            for one in pod.containers:
                newest = all(each.attempt <= one.attempt for each in pod.containers if each.name == one.name)
                if newest and one.state is RunState.EXITED and one.attempt > 0 and one.id in self.configs:
                    self.again(one.id)
        return listing


class UnknownIsZero(Runtime):
    def inspect(self, uid: str, listed: PodListing | None = None, /) -> PodReport:
        report = self.inner.inspect(uid, listed)
        known = tuple(
            attrs.evolve(one, exit=Exited(code=0)) if isinstance(one.exit, ExitUnknown) else one
            for one in report.containers
        )
        return attrs.evolve(report, containers=known)


class CodesAreLost(Runtime):
    def inspect(self, uid: str, listed: PodListing | None = None, /) -> PodReport:
        report = self.inner.inspect(uid, listed)
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

    def __init__(self, ports: NodePorts) -> None:
        super().__init__(ports)
        self.count = 0
        self.believed: set[str] = set()

    def start_container(self, container_id: str, /) -> None:
        self.count += 1
        if self.count % 10:
            self.inner.start_container(container_id)
        else:
            self.believed.add(container_id)

    def listing(self) -> Listing:
        records = [one for pod in self.inner.listing().pods.values() for one in pod.containers]
        boxes = [one for pod in self.inner.listing().pods.values() for one in pod.sandboxes]
        return Listing.of(boxes, [self.as_believed(one) for one in records])

    def inspect(self, uid: str, listed: PodListing | None = None, /) -> PodReport:
        report = self.inner.inspect(uid, listed)
        containers = tuple(
            attrs.evolve(one, record=self.as_believed(one.record), started_unix_s=one.record.created_unix_s)
            if one.record.id in self.believed
            else one
            for one in report.containers
        )
        return attrs.evolve(report, containers=containers)

    def as_believed(self, record: ContainerRecord) -> ContainerRecord:
        starts = record.id in self.believed and record.state is RunState.CREATED
        return attrs.evolve(record, state=RunState.RUNNING) if starts else record


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


PLANTED_FAULTS: tuple[PlantedFault, ...] = (
    PlantedFault(
        name="full-grace",
        about="every container gets 30 s to end, whatever is left",
        spoil=with_runtime(StopsWithFullGrace),
    ),
    PlantedFault(
        name="grace-grows",
        about="asked again to end, a container gets more time",
        spoil=with_runtime(GraceGrows),
    ),
    PlantedFault(
        name="lost-answer-made-again",
        about="a lost answer is a failure: the next attempt is made without a look",
        spoil=with_runtime(MakesAnother),
    ),
    PlantedFault(
        name="doubled-start",
        about="after a start that timed out a second copy is started",
        spoil=with_runtime(StartsTwoCopies),
    ),
    PlantedFault(
        name="no-back-off",
        about="a container that ended again is started at once, however often it did",
        spoil=with_runtime(NeverWaits),
    ),
    PlantedFault(
        name="unknown-is-zero",
        about="an exit that nobody knows is told as 0",
        spoil=with_runtime(UnknownIsZero),
    ),
    PlantedFault(
        name="every-exit-is-137",
        about="exit codes are told as 137",
        spoil=with_runtime(CodesAreLost),
    ),
    PlantedFault(
        name="failure-is-empty",
        about="a listing that fails counts as an empty one",
        spoil=with_runtime(FailureIsEmpty),
    ),
    PlantedFault(
        name="forgotten-start",
        about="one start in ten is believed to have been done",
        spoil=with_runtime(ForgetsToStart),
    ),
    PlantedFault(
        name="leaves-behind",
        about="some containers of an ending pod are never told to end",
        spoil=with_runtime(LeavesBehind),
    ),
    PlantedFault(
        name="same-attempt",
        about="each instance of a container has number 0",
        spoil=with_runtime(SameAttempt),
    ),
    PlantedFault(
        name="stops-all-at-start",
        about="a restarted agent begins by stopping what runs",
        spoil=with_runtime(NewSandboxes),
    ),
)
