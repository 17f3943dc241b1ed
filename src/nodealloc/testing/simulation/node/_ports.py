"""What an agent of a simulated node is built from, and the faulty ways to what is around it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from nodealloc import _attrs as attrs
from nodealloc.cgroups import TreeDriver
from nodealloc.checkpoint import Files
from nodealloc.cpuset import CpusetWriteError, TargetGoneError
from nodealloc.dsw_asw import Cancel, Moment
from nodealloc.idset import CPUSet, NodeSet
from nodealloc.machine import Machine
from nodealloc.runtime import (
    AnswerLostError,
    CommandResult,
    CommandTimedOutError,
    ContainerConfig,
    ImageRecord,
    LinuxResources,
    Listing,
    NoSuchRecordError,
    PodListing,
    PodReport,
    PullCredentials,
    RuntimeHealth,
    RuntimeRefusedError,
    RuntimeUnavailableError,
    SandboxConfig,
)
from nodealloc.testing.simulation._life import Life
from nodealloc.testing.simulation.node._containers import SimulatedContainers
from nodealloc.testing.simulation.node._events import PULL, Ran
from nodealloc.testing.simulation.node._outages import Outages
from nodealloc.testing.simulation.node._plugins import SimulatedPlugins
from nodealloc.testing.simulation.node._sources import SimulatedSink, SimulatedSource
from nodealloc.testing.simulation.node._volumes import SimulatedVolumes

__all__ = ["NodePorts", "SimulatedCpusets", "SimulatedRuntime"]

T = TypeVar("T")

_GIVEN_UP_S = 150.0
"""After so long a client gives up a call about the whole node; one about a pod may never return."""

_TAKES_S = {
    "pull_image": 4.0,
    "run_sandbox": 0.5,
    "create_container": 0.5,
    "start_container": 1.0,
    "remove_container": 0.2,
}
"""Mean seconds that a call takes where time may pass in it."""

_HANGS = {"stop_container": "stop hangs"}
"""Calls that hang more often than others do."""


class SimulatedRuntime:
    """All ports of `nodealloc.runtime`, for one life of the agent.

    Faults, by name: `runtime is away`, `runtime is slow`, `runtime hangs` (in a call about one pod),
    `whole runtime hangs` (in one about all of them), `stop hangs` (in one that asks a container to end),
    `runtime refuses`, `registry refuses` (to hand out an image), `answer is lost` (done, and nobody hears
    of it), `answer is late` (of a look: it shows what was), `runtime restarts` (records of what does not
    run are gone), `runtime forgets an end` (the newest), `container vanishes` (it ends as soon as it has
    started, and its record goes with it), and those of `Outages`.

    Images are fetched in their own time; a look at those that are there takes none, since others
    wait for its end in their threads, where virtual time would stand still.
    """

    def __init__(self, life: Life, containers: SimulatedContainers, outages: Outages) -> None:
        self._life = life
        self._containers = containers
        self._outages = outages

    def listing(self) -> Listing:
        """See `Looks.listing`."""
        return self._look("listing", self._outages.listing)

    def inspect(self, uid: str, listed: PodListing | None = None, /) -> PodReport:
        """See `Looks.inspect`."""
        return self._look("inspect", lambda: self._outages.inspect(uid, listed), uid)

    def health(self) -> RuntimeHealth:
        """See `Looks.health`."""
        return self._look("health", self._containers.health)

    def follow(self, on_event: Callable[[], None], cancel: Cancel, /) -> None:
        """See `Looks.follow`; this one has no events."""
        del on_event, cancel
        raise RuntimeUnavailableError("follow", "this runtime has no events")

    def run_sandbox(self, config: SandboxConfig, /) -> str:
        """See `Sandboxes.run_sandbox`."""
        asked_s = self._life.clock.awake_s
        return self._do("run_sandbox", lambda: self._containers.run_sandbox(config, asked_s), config.pod.uid)

    def stop_sandbox(self, sandbox_id: str, /) -> None:
        """See `Sandboxes.stop_sandbox`."""
        self._do("stop_sandbox", lambda: self._containers.stop_sandbox(sandbox_id), sandbox_id)

    def remove_sandbox(self, sandbox_id: str, /) -> None:
        """See `Sandboxes.remove_sandbox`."""
        self._do("remove_sandbox", lambda: self._containers.remove_sandbox(sandbox_id), sandbox_id)

    def create_container(self, sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig, /) -> str:
        """See `Containers.create_container`."""
        asked_s = self._life.clock.awake_s
        return self._do(
            "create_container",
            lambda: self._containers.create(sandbox_id, config, sandbox, asked_s),
            sandbox_id,
        )

    def start_container(self, container_id: str, /) -> None:
        """See `Containers.start_container`."""
        asked_s = self._life.clock.awake_s

        def start() -> None:
            self._containers.start(container_id, asked_s)
            if self._life.chance.strikes("container vanishes"):
                self._containers.vanish(container_id)

        self._do("start_container", start, container_id)

    def stop_container(self, container_id: str, grace_s: float, /) -> None:
        """See `Containers.stop_container`; takes as long as the container takes."""
        asked_s = self._life.clock.awake_s

        def stop() -> None:
            takes_s = self._containers.ask_to_end(container_id, grace_s, asked_s)
            if takes_s:
                self._life.pause(takes_s)
                self._containers.catch_up()
                # In a call in which no time can pass it left at once.
                self._containers.end_now(container_id)

        self._do("stop_container", stop, container_id)

    def update_container(self, container_id: str, resources: LinuxResources, /) -> None:
        """See `Containers.update_container`."""
        self._do(
            "update_container",
            lambda: self._containers.update_container(container_id, resources),
            container_id,
        )

    def cpus(self, container_id: str, /) -> CPUSet:
        """What a container is confined to; empty for one that may run anywhere."""
        return self._look("cpus", lambda: self._containers.cpus(container_id), container_id)

    def remove_container(self, container_id: str, /) -> None:
        """See `Containers.remove_container`."""
        self._do("remove_container", lambda: self._containers.remove_container(container_id), container_id)

    def images(self) -> Sequence[ImageRecord]:
        """See `Images.images`."""
        return self._at_once("images", self._containers.images)

    def pull_image(
        self, name: str, credentials: PullCredentials | None = None, sandbox: SandboxConfig | None = None, /
    ) -> str:
        """See `Images.pull_image`; every image can be had, by anybody, sooner or later."""
        del credentials, sandbox
        was_there, asked_s = self._containers.has_image(name), self._life.clock.awake_s

        def fetch() -> str:
            if self._life.chance.strikes("registry refuses"):
                self._outages.failed(PULL, name)
                raise RuntimeRefusedError(PULL, "NOT_FOUND", f"the simulated registry has no {name} just now")
            return self._containers.fetch(name, was_there=was_there, asked_s=asked_s)

        return self._do(PULL, fetch, image=name)

    def remove_image(self, id: str, /) -> None:  # noqa: A002 - the port's name
        """See `Images.remove_image`."""
        self._do("remove_image", lambda: self._containers.remove_image(id))

    def run_command(
        self, container_id: str, command: Sequence[str], timeout_s: float, /, cancel: Cancel | None = None
    ) -> CommandResult:
        """See `CommandRunner.run_command`; when its time is over it is ended, unless the runtime hangs.

        Who sets `cancel` waits no longer for what comes of it; the command itself goes on.
        """
        life, strikes, ran = self._life, self._life.chance.strikes, self._containers.ran
        life.enter()
        self._containers.catch_up()
        if self._is_away():
            ran(container_id, Ran.of(command, "away"))
            raise RuntimeUnavailableError("run_command", "connection refused")
        if strikes("runtime refuses"):
            ran(container_id, Ran.of(command, "refused"))
            raise RuntimeRefusedError("run_command", "UNKNOWN", "the simulated runtime does not feel like it")
        takes_s = self._containers.takes_s(container_id, command[0])
        if strikes("runtime hangs"):
            takes_s = math.inf
            self._containers.hung(container_id, "run_command")
        elif strikes("runtime is slow"):
            takes_s += life.chance.rng.uniform(1.0, 200.0)
        if takes_s > timeout_s:
            ran(container_id, Ran.of(command, "timed out"))
            life.pause(math.inf if math.isinf(takes_s) else timeout_s, cancel)
            self._heard(container_id, command[0], cancel)
            raise CommandTimedOutError(container_id, timeout_s)
        answer = self._containers.run_command(container_id, command, timeout_s)
        # It ended in time, and whoever asked hears of it a moment later: its container may be gone by then.
        if takes_s:
            life.pause(takes_s, cancel)
        self._heard(container_id, command[0], cancel)
        self._containers.answered.add((container_id, command[0]))
        life.leave()
        return answer

    def _heard(self, container_id: str, command: str, cancel: Cancel | None) -> None:
        """Whoever could have called it off has waited for what came of it."""
        if cancel is not None and not cancel.is_set():
            self._containers.awaited(container_id, command)

    def _at_once(self, call: str, work: Callable[[], T]) -> T:
        life = self._life
        life.enter()
        if self._is_away():
            raise RuntimeUnavailableError(call, "connection refused")
        if life.chance.strikes("whole runtime hangs"):
            raise RuntimeUnavailableError(call, "deadline exceeded")
        if life.chance.strikes("runtime refuses"):
            raise RuntimeRefusedError(call, "UNKNOWN", "the simulated runtime does not feel like it")
        answer = work()
        life.leave()
        return answer

    def _is_away(self) -> bool:
        chance = self._life.chance
        return self._outages.is_away(chance) or chance.strikes("runtime is away")

    def _look(self, call: str, work: Callable[[], T], about: str = "") -> T:
        return self._through(call, work, about, changes=False)

    def _do(self, call: str, work: Callable[[], T], about: str = "", *, image: str = "") -> T:
        return self._through(call, work, about, changes=True, image=image)

    def _through(self, call: str, work: Callable[[], T], about: str, *, changes: bool, image: str = "") -> T:
        life = self._life
        strikes = life.chance.strikes
        life.enter()
        if self._is_away():
            self._outages.failed(call, about or image)
            raise RuntimeUnavailableError(call, "connection refused")
        if strikes("runtime restarts"):
            self._outages.restart()
            self._outages.failed(call, about or image)
            raise RuntimeUnavailableError(call, "connection reset by peer")
        if strikes("runtime is slow"):
            self._containers.hung(about, call)
            life.pause(life.chance.rng.uniform(1.0, 200.0))
        if strikes(_HANGS.get(call, "runtime hangs" if about else "whole runtime hangs")):
            self._containers.hung(about, call)
            life.pause(math.inf if about else _GIVEN_UP_S)
            if not about:
                raise RuntimeUnavailableError(call, "deadline exceeded")
        if changes and (self._outages.refuses(life.chance) or strikes("runtime refuses")):
            self._outages.failed(call, about or image)
            raise RuntimeRefusedError(call, "UNKNOWN", "the simulated runtime does not feel like it")
        if strikes("runtime forgets an end"):
            self._outages.forget_newest()
        takes_s = _TAKES_S.get(call, 0.0)
        if takes_s:
            life.pause(life.chance.rng.expovariate(1.0) * takes_s)
        self._containers.catch_up()
        answer = work()
        if changes and strikes("answer is lost"):
            raise AnswerLostError(call, "deadline exceeded")
        if not changes and strikes("answer is late"):
            # What it shows was so when it was asked; by now it may be otherwise.
            self._containers.hung(about, call)
            life.pause(life.chance.rng.uniform(0.2, 10.0))
        life.leave()
        return answer


class SimulatedCpusets:
    """A `CpusetWriter` over the runtime; targets are its ids of containers, faults are its own."""

    def __init__(self, runtime: SimulatedRuntime) -> None:
        self._runtime = runtime

    def read(self, target: str, /) -> tuple[CPUSet, NodeSet | None]:
        """See `CpusetWriter.read`; nothing for one that was never confined."""
        try:
            return self._runtime.cpus(target), None
        except NoSuchRecordError as error:
            raise TargetGoneError(target) from error

    def write(self, target: str, cpus: CPUSet, mems: NodeSet | None, /) -> None:
        """See `CpusetWriter.write`."""
        try:
            self._runtime.update_container(target, LinuxResources(cpus=cpus, mems=mems))
        except NoSuchRecordError as error:
            raise TargetGoneError(target) from error
        except RuntimeRefusedError as error:
            raise CpusetWriteError(target, str(cpus), error.reason) from error


@attrs.frozen(kw_only=True)
class NodePorts:
    """All that a wiring builds an agent from; new for each life.

    Attributes:
        life: Clock, executor, and who may be killed.
        now: This moment, as it is stored.
        machine: What is given out.
        reserved: CPUs that are not.
        runtime: Every port of `nodealloc.runtime`.
        sources: Name to source of pods.
        sink: Where statuses are told.
        cgroups: Of pods, below `/kubepods`.
        volumes: A plugin of volumes; also what an earlier life left mounted.
        plugins: Plugins of devices, and their registration sockets.
        disk: The directory of the agent's store.
        files: System calls of that directory, for a `FileStore`.
        say_aligned: Is called by an agent that aligns what a container has for itself: it is
            held to that from then on.
        forgetting: Returns what to call with the uid of each pod that is no more, as `Agent` does with
            `gone`: who asks for it is held to call it.
    """

    life: Life
    now: Callable[[], Moment]
    machine: Machine
    reserved: CPUSet
    runtime: SimulatedRuntime
    sources: Mapping[str, SimulatedSource]
    sink: SimulatedSink
    cgroups: TreeDriver
    volumes: SimulatedVolumes
    plugins: SimulatedPlugins
    disk: str
    files: Files
    say_aligned: Callable[[], None]
    forgetting: Callable[[], Callable[[str], object]]

    @property
    def cpusets(self) -> SimulatedCpusets:
        """Confines containers through the runtime."""
        return SimulatedCpusets(self.runtime)
