"""Protocols that this package calls: a runtime, who prepares, who configures, who runs hooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar, runtime_checkable

from nodealloc import _attrs as attrs
from nodealloc._arguments import filled
from nodealloc._typed import typed_fields
from nodealloc.dsw_asw import Cancel, World
from nodealloc.podlife._record import PodRecord
from nodealloc.podspec import Container, LifecycleHandler, Pod
from nodealloc.runtime import (
    CommandRunner,
    ContainerConfig,
    Containers,
    Images,
    LinuxResources,
    PodReport,
    SandboxConfig,
    Sandboxes,
)
from nodealloc.verdicts import Admitted, NotYet, Refused

__all__ = [
    "CanStopConfiguring",
    "Configures",
    "HookCall",
    "HookRunner",
    "LifeTold",
    "LifeVerdicts",
    "PodRuntime",
    "Preparation",
    "Preparer",
    "Provided",
]


Verdicts = TypeVar("Verdicts", bound="LifeVerdicts")
"""Whatever probes say; a world of it may hold more than `LifeVerdicts` asks for."""
Told = TypeVar("Told", bound="LifeTold")
"""Whatever others were told; likewise."""


class PodRuntime(Sandboxes, Containers, Images, CommandRunner, Protocol):
    """What runs containers: four ports of `nodealloc.runtime` in one object."""


class LifeVerdicts(Protocol):
    """What probes say of one pod's containers, by the runtime's ids; a value."""

    @property
    def alive(self) -> Mapping[str, bool]:
        """Of liveness; absent while nothing was answered, or nobody asks."""
        ...

    @property
    def started(self) -> Mapping[str, bool]:
        """Of startup, likewise."""
        ...


class LifeTold(Protocol):
    """What others were told of one pod; a value, such as `nodealloc.podstatus.Told`."""

    @property
    def was_told(self) -> bool:
        """Whether they were told anything of it."""
        ...

    @property
    def is_told_unready(self) -> bool:
        """Whether they know that it is not ready, and nobody will say otherwise, since it ends."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether it is remembered, for them, how the pod ended."""
        ...


@typed_fields
@attrs.frozen(kw_only=True)
class Provided:
    """A part is ready, and gives something to whoever configures the pod's containers.

    Attributes:
        value: What; who configures knows it by the name of the preparation.
    """

    value: object


class Preparer(Protocol):
    """Makes a part of a pod ready before anything of it runs, and takes it back when nothing does.

    Both may be repeated at any time, and are never called twice at a time for
    one pod. Who raises is asked again after a back-off.
    """

    def make_ready(self, pod: Pod, cancel: Cancel, /) -> Admitted | Provided | NotYet | Refused:
        """Make it ready, or bring it up to the pod as it is now.

        Asked once for each form of the pod, and again when this program starts
        anew. Does not wait for others for longer than asking again would
        take: it answers `NotYet`, and is asked again.
        `Refused` ends the pod. Any other answer, None among them, has failed, and lets nobody in.
        """
        ...

    def take_back(self, pod: Pod, cancel: Cancel, /) -> NotYet | None:
        """Take away what may have been made; what is not there is no error."""
        ...


@typed_fields
@attrs.frozen(kw_only=True, eq=False)
class Preparation:
    """One part that has to be ready before anything of a pod runs.

    Attributes:
        name: Unique among them; it is remembered, so it stays the same over releases.
        why: Why it has its place in the order, for people.
        by: Who makes it ready.
        wakes: A world by pod uid; a change there asks again at once who said `NotYet`.
        in_order: Whether pods that come are asked for one after the other, in the order in which they were
            put, so that of two that do not fit together the first has it; others then wait up to 1 s. For
            at most one part that answers at once, and where `PodLives` has threads of its own.
    """

    name: str = attrs.field(validator=filled)
    why: str
    by: Preparer
    wakes: World[str, object] | None = None
    in_order: bool = False


class Configures(Protocol):
    """Says what sandboxes and containers are made from.

    It may write files and ask plugins, and may be called again for the same container.
    """

    def sandbox(self, pod: Pod, attempt: int, provided: Mapping[str, object], /) -> SandboxConfig:
        """What a pod's sandbox is made from.

        Args:
            pod: Whose.
            attempt: Of the sandbox.
            provided: Preparation to what it gives.
        """
        ...

    def container(
        self, record: PodRecord, container: Container, attempt: int, image_id: str, report: PodReport, /
    ) -> ContainerConfig:
        """What a container is made from; an error that it raises is told of the container.

        Args:
            record: Its pod, with what preparations give.
            container: Which.
            attempt: Of the instance.
            image_id: The image, by the runtime's id.
            report: The pod as the runtime has it, with its addresses.
        """
        ...

    def resources(self, record: PodRecord, container: Container, /) -> LinuxResources:
        """What a container that runs may use now: as `container` would say, and nothing else is done for it.

        Args:
            record: Its pod, with what preparations give.
            container: Which.
        """
        ...


@runtime_checkable
class CanStopConfiguring(Protocol):
    """What a `Configures` has besides that may wait long for others, such as for plugins."""

    def unless_stopped(self, cancel: Cancel, /) -> Configures:
        """One that answers the same, for one container.

        Its `container` raises `CancelledError` (of `concurrent.futures`) at once where `cancel` asks to
        stop and it would wait: nobody wants the container any more.
        """
        ...


@typed_fields
@attrs.frozen(kw_only=True)
class HookCall:
    """A hook that is to be run.

    Attributes:
        pod: Whose.
        container: Which container's.
        container_id: The runtime's id of the instance.
        handler: What to do.
        timeout_s: Past this it has failed, in seconds.
        report: The pod as the runtime has it, with its addresses.
    """

    pod: Pod
    container: Container
    container_id: str
    handler: LifecycleHandler
    timeout_s: float
    report: PodReport


class HookRunner(Protocol):
    """Runs hooks of containers."""

    def run_hook(self, call: HookCall, cancel: Cancel, /) -> str:
        """Run one to its end, until its time is over, or until asked to stop.

        Returns:
            Why it failed, in words; "" where it did not.
        """
        ...
