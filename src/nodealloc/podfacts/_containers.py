"""Values only: what is told of one container."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TypeAlias, Union

from nodealloc import _attrs as attrs
from nodealloc._arguments import filled, filled_or_none, unix_time, whole
from nodealloc._frozen import Frozen, freeze_deeply
from nodealloc._reading import Json
from nodealloc._typed import typed_fields
from nodealloc.errors import ConfigurationError

__all__ = [
    "ContainerRunning",
    "ContainerState",
    "ContainerStatus",
    "ContainerTerminated",
    "ContainerWaiting",
    "ExitUnknown",
    "Exited",
    "ResourceHealth",
    "ResourceHealthState",
    "ResourceStatus",
]

_MAX_EXIT_CODE = 255
_MAX_SIGNAL = 64


@typed_fields
@attrs.frozen(kw_only=True)
class Exited:
    """How a process ended.

    Attributes:
        code: Its exit status, 0 to 255; 128 and the signal where a signal ended it.
        signal: The signal's number, 1 to 64; None where the runtime named none.

    Raises:
        ConfigurationError: No exit status, or no signal, of Linux.
    """

    code: int = attrs.field()
    signal: int | None = None

    def __attrs_post_init__(self) -> None:
        if not 0 <= self.code <= _MAX_EXIT_CODE:
            raise ConfigurationError(
                f"exit code {self.code} is outside 0 to {_MAX_EXIT_CODE}; "
                "a code that stands for not knowing is ExitUnknown()"
            )
        if self.signal is not None and not 1 <= self.signal <= _MAX_SIGNAL:
            raise ConfigurationError(
                f"signal {self.signal} is outside 1 to {_MAX_SIGNAL}; leave out what is not known"
            )


@attrs.frozen(kw_only=True)
class ExitUnknown:
    """It has ended, and nobody can say how: the runtime was away, or its record is gone.

    It is neither a success nor a failure; who decides by exit codes has to say
    what it makes of this.
    """


@attrs.frozen(kw_only=True)
class ContainerWaiting:
    """It does not run yet, or not again yet.

    Attributes:
        reason: One word for programs (`ContainerCreating`, `CrashLoopBackOff`), or "" where none is told.
        message: For people, or "".
    """

    reason: str = ""
    message: str = ""


@attrs.frozen(kw_only=True)
class ContainerRunning:
    """It runs.

    Attributes:
        started_unix_s: Since when, in Unix seconds; None where nobody knows.
    """

    started_unix_s: float | None = attrs.field(default=None, validator=unix_time)


@attrs.frozen(kw_only=True)
class ContainerTerminated:
    """It has ended.

    Attributes:
        exit: How; `ExitUnknown` where nobody can say.
        reason: One word for programs (`Completed`, `Error`, `OOMKilled`), or "".
        message: For people, or "": the termination message of the container.
        started_unix_s: When it began, in Unix seconds; None where nobody knows.
        finished_unix_s: When it ended, likewise.
        container_id: The runtime's id of that instance; None where it has none any more.
    """

    exit: Exited | ExitUnknown
    reason: str = ""
    message: str = ""
    started_unix_s: float | None = attrs.field(default=None, validator=unix_time)
    finished_unix_s: float | None = attrs.field(default=None, validator=unix_time)
    container_id: str | None = attrs.field(default=None, validator=filled_or_none)


ContainerState: TypeAlias = Union[ContainerWaiting, ContainerRunning, ContainerTerminated]
"""Every state that a container can be told to be in."""


class ResourceHealthState(enum.Enum):
    """How a device is, by the names of the Kubernetes API."""

    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"
    UNKNOWN = "Unknown"
    """Nobody can tell: its plugin is away, or never said."""


@attrs.frozen(kw_only=True)
class ResourceHealth:
    """One device that a container holds, and how it is.

    Attributes:
        id: The device, unique within its resource.
        health: How it is.
    """

    id: str = attrs.field(validator=filled)
    health: ResourceHealthState = ResourceHealthState.UNKNOWN


@attrs.frozen(kw_only=True)
class ResourceStatus:
    """What a container holds of one resource.

    Attributes:
        name: The resource: `vendor.example/gpu`.
        resources: Its devices that the container holds.

    Source: ``allocatedResourcesStatus`` of the Kubernetes API, v1.32.
    """

    name: str = attrs.field(validator=filled)
    resources: tuple[ResourceHealth, ...] = ()


@typed_fields
@attrs.frozen(kw_only=True)
class ContainerStatus:
    """What is told of one container of a pod: of a main one, an init or an ephemeral one.

    Attributes:
        name: As the pod names it.
        state: What it does now; None where nothing is told yet.
        last_state: How the instance before this one ended; None where there was none.
        ready: Whether it counts as ready. An init container that has succeeded does.
        started: Whether it has passed its startup; None where that is not known.
        restart_count: Times that it was started again, 0 or more.
        image: As the runtime resolved it, or as the pod names it; "" where none is told.
        image_id: Digest or id of the image; None while there is none.
        container_id: The runtime's id of the present or last instance, with its
            scheme (`containerd://…`); None while there was none.
        allocated: Health of the devices that it holds, by resource; empty where none is told.
        carried: What else its document has (`volumeMounts`), as JSON.

    Raises:
        ConfigurationError: No name, a negative count, or an id that is empty.

    Source: the pod status of the Kubernetes API, v1.32.
    """

    name: str = attrs.field(validator=filled)
    state: ContainerState | None = None
    last_state: ContainerState | None = None
    ready: bool = False
    started: bool | None = None
    restart_count: int = attrs.field(default=0, validator=whole(0))
    image: str = ""
    image_id: str | None = attrs.field(default=None, validator=filled_or_none)
    container_id: str | None = attrs.field(default=None, validator=filled_or_none)
    allocated: tuple[ResourceStatus, ...] = ()
    carried: Mapping[str, Json] = attrs.field(factory=Frozen[str, Json], validator=freeze_deeply)
