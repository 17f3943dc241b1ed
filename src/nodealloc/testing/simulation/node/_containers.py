"""The runtime of a simulated node by its calls; how its containers live and end stands in `_living`."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from nodealloc.idset import CPUSet
from nodealloc.runtime import (
    CommandResult,
    ContainerConfig,
    LinuxResources,
    NoSuchRecordError,
    PodListing,
    PodReport,
    RunState,
    SandboxConfig,
)
from nodealloc.testing.simulation.node._events import Event, Ran, What
from nodealloc.testing.simulation.node._living import LOST_S, LivingContainers
from nodealloc.testing.simulation.node._resources import RESOURCES, variable_of

__all__ = ["SimulatedContainers"]


class SimulatedContainers(LivingContainers):
    """Does what it is asked to, and says what happened."""

    def inspect(self, uid: str, listed: PodListing | None = None, /) -> PodReport:
        """See `Looks.inspect`; from then on somebody knows who ran before."""
        report = super().inspect(uid, listed)
        self.unseen.difference_update([one.record.id for one in report.containers])
        return report

    def start_container(self, container_id: str, /) -> None:
        """See `Containers.start_container`."""
        self.start(container_id)

    def stop_container(self, container_id: str, grace_s: float, /) -> None:
        """See `Containers.stop_container`; the time that it takes passes in the port, not here."""
        self.ask_to_end(container_id, grace_s)
        self.end_now(container_id)

    def run_sandbox(self, config: SandboxConfig, /, asked_s: float | None = None) -> str:
        """See `Sandboxes.run_sandbox`; asked for at that time, None for now."""
        self.catch_up()
        made = super().run_sandbox(config)
        self.boxes_with[made] = config
        if asked_s is not None and self._clock.awake_s - asked_s > LOST_S:
            self.late.add(made)
        self._events.happen(
            Event(
                what=What.SANDBOX_MADE,
                at_s=self._clock.awake_s,
                uid=config.pod.uid,
                id=made,
                attempt=config.attempt,
                asked_s=asked_s,
            )
        )
        return made

    def stop_sandbox(self, sandbox_id: str, /) -> None:
        """See `Sandboxes.stop_sandbox`; what still runs in it is killed."""
        self.catch_up()
        self._kill_all(sandbox_id)
        super().stop_sandbox(sandbox_id)
        self._of_sandbox(What.SANDBOX_STOPPED, sandbox_id)

    def remove_sandbox(self, sandbox_id: str, /) -> None:
        """See `Sandboxes.remove_sandbox`."""
        self.catch_up()
        self._kill_all(sandbox_id)
        self._of_sandbox(What.SANDBOX_REMOVED, sandbox_id)
        for one in [one for one in self._containers.values() if one.record.sandbox_id == sandbox_id]:
            self._happen(What.REMOVED, one.record.id)
        super().remove_sandbox(sandbox_id)

    def create_container(self, sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig, /) -> str:
        """See `Containers.create_container`."""
        return self.create(sandbox_id, config, sandbox)

    def create(
        self, sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig, asked_s: float | None = None
    ) -> str:
        """The same, asked for at that time."""
        self.catch_up()
        made = super().create_container(sandbox_id, config, sandbox)
        if asked_s is not None and self._clock.awake_s - asked_s > LOST_S:
            self.late.add(made)
        self.made_with[made] = config
        self._say(attrs.evolve(self._event(What.MADE, made), asked_s=asked_s))
        self._confined(made, config.resources)
        for resource in RESOURCES:
            ids = config.env.get(variable_of(resource))
            if ids is not None:
                self.devices.setdefault(made, {})[resource] = tuple(ids.split(","))
                self._events.happen(attrs.evolve(self._event(What.GIVEN, made, ids), asked_s=asked_s))
        return made

    def update_container(self, container_id: str, resources: LinuxResources, /) -> None:
        """See `Containers.update_container`."""
        self.catch_up()
        super().update_container(container_id, resources)
        self._confined(container_id, resources)
        if resources.cpu_shares is not None:
            self._happen(What.RESIZED, container_id)

    def run_command(self, container_id: str, command: Sequence[str], timeout_s: float, /) -> CommandResult:
        """See `CommandRunner.run_command`; it fails in a container that is unwell in that way."""
        self.catch_up()
        one = self._containers.get(container_id)
        if one is not None and one.record.state is not RunState.RUNNING:
            self.asked_late[container_id, command[0]] += 1
        result = super().run_command(container_id, command, timeout_s)
        code = 1 if command[0] in self.unwell.get(container_id, ()) else result.code
        self.ran(container_id, Ran.of(command, str(code)))
        return attrs.evolve(result, code=code)

    def hung(self, about: str, call: str) -> None:
        """A call hangs or is slow: about a container, a sandbox, a pod, or "" for the whole node."""
        uid = self.pod_of(about) or about
        id_ = about if about in self._containers else ""
        self._events.happen(Event(what=What.HUNG, at_s=self._clock.awake_s, uid=uid, id=id_, value=call))

    def ran(self, container_id: str, ran: Ran) -> None:
        """What came of a command that somebody wanted to run."""
        if container_id in self._containers:
            self._happen(What.RAN, container_id, ran)

    def awaited(self, container_id: str, command: str) -> None:
        """Somebody has waited for the end of a command, or for the end of its time."""
        if container_id in self._containers:
            self._happen(What.AWAITED, container_id, command)

    def has_image(self, name: str) -> bool:
        """Whether an image of this name is there."""
        return any(name in one.names for one in self.image_store.values())

    def fetch(self, name: str, *, was_there: bool, asked_s: float | None = None) -> str:
        """See `Images.pull_image`; every image can be had.

        Args:
            name: Of the image.
            was_there: Whether there was one already when it was asked for.
            asked_s: When it was; None for now.
        """
        made = self.pull_image(name)
        at_s = self._clock.awake_s
        fetched = Event(what=What.PULLED, at_s=at_s, id=name, value=was_there, asked_s=asked_s)
        self._events.happen(fetched)
        return made

    def load(self, name: str) -> None:
        """Somebody puts an image on the node by hand."""
        self.pull_image(name)

    def remove_image(self, id: str, /) -> None:  # noqa: A002 - the port's name
        """See `Images.remove_image`."""
        super().remove_image(id)
        self._events.happen(Event(what=What.IMAGE_REMOVED, at_s=self._clock.awake_s, id=id))

    def cpus(self, container_id: str, /) -> CPUSet:
        """What a container is confined to; empty for one that may run anywhere.

        Raises:
            NoSuchRecordError: The runtime has no such container.
        """
        if container_id not in self._containers:
            raise NoSuchRecordError("cpus", container_id)
        return self.limits(container_id).cpus or CPUSet()

    def remove_container(self, container_id: str, /) -> None:
        """See `Containers.remove_container`."""
        self.catch_up()
        if container_id in self._containers:
            self.end_now(container_id)
            self._happen(What.REMOVED, container_id)
        super().remove_container(container_id)

    def _confined(self, container_id: str, resources: LinuxResources) -> None:
        if resources.cpus is not None:
            self._happen(What.CONFINED, container_id, resources.cpus)

    def _kill_all(self, sandbox_id: str) -> None:
        for one in [one for one in self._containers.values() if one.record.sandbox_id == sandbox_id]:
            if one.record.state is RunState.RUNNING:
                self._happen(What.SIGNALLED, one.record.id, 0.0)
                self.end_now(one.record.id)

    def _of_sandbox(self, what: What, sandbox_id: str) -> None:
        if (box := self._sandboxes.get(sandbox_id)) is not None:
            uid, attempt, at_s = box.record.pod.uid, box.record.attempt, self._clock.awake_s
            self._events.happen(Event(what=what, at_s=at_s, uid=uid, id=sandbox_id, attempt=attempt))
