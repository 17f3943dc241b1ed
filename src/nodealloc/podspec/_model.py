"""Values only: a pod as running it on one node needs to know it."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from nodealloc import _attrs as attrs
from nodealloc._frozen import Frozen, freeze_deeply
from nodealloc._reading import Json
from nodealloc._typed import typed_fields
from nodealloc._wire import wire
from nodealloc.podspec._amounts import Amounts, Resources, resources
from nodealloc.podspec._checks import label
from nodealloc.podspec._network import ContainerPort
from nodealloc.podspec._probes import Lifecycle, Probe
from nodealloc.podspec._security import SecurityContext
from nodealloc.podspec._variables import EnvFrom, Variable

__all__ = [
    "ClaimUse",
    "Container",
    "DnsPolicy",
    "Json",
    "LocalName",
    "MessagePolicy",
    "PodOs",
    "PodResourceClaim",
    "PullPolicy",
    "ReadinessGate",
    "ResizePolicy",
    "Resources",
    "RestartPolicy",
    "SchedulingGate",
    "Volume",
    "VolumeUse",
]

_SKIP = wire(skip=True)


class RestartPolicy(enum.Enum):
    """Which ended containers of a pod start again."""

    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    NEVER = "Never"


class PullPolicy(enum.Enum):
    """When an image is fetched."""

    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"


class MessagePolicy(enum.Enum):
    """Where the termination message of a container is taken from."""

    FILE = "File"
    FALLBACK_TO_LOGS_ON_ERROR = "FallbackToLogsOnError"


class DnsPolicy(enum.Enum):
    """Whose name servers a pod asks."""

    CLUSTER_FIRST = "ClusterFirst"
    CLUSTER_FIRST_WITH_HOST_NET = "ClusterFirstWithHostNet"
    DEFAULT = "Default"
    NONE = "None"


@typed_fields
@attrs.frozen(kw_only=True)
class VolumeUse:
    """One volume in one container: a mount, or a block device.

    Attributes:
        name: The pod's volume.
        path: Mount path, or device path, inside the container.
        read_only: Whether the container may only read.
        block: Whether the raw device is wanted (`volumeDevices`).
        sub_path: What of the volume is mounted; "" for all.
        sub_path_expr: The same with `$(VARIABLE)` in it; never both.
        propagation: `None`, `HostToContainer` or `Bidirectional`.
        recursive_read_only: `Disabled`, `IfPossible` or `Enabled`; "" for not said.
    """

    name: str
    path: str
    read_only: bool = False
    block: bool = False
    sub_path: str = ""
    sub_path_expr: str = ""
    propagation: str = "None"
    recursive_read_only: str = ""


@typed_fields
@attrs.frozen(kw_only=True)
class Volume:
    """A volume that a pod defines.

    Attributes:
        name: Unique inside the pod.
        kind: The manifest's key: `emptyDir`, `hostPath`, `configMap`, `persistentVolumeClaim`.
        spec: What stands below that key, as it came.
    """

    name: str
    kind: str
    spec: Mapping[str, Json] = attrs.field(factory=Frozen[str, Json], validator=freeze_deeply)


@attrs.frozen(kw_only=True)
class ClaimUse:
    """A resource claim of the pod in one container.

    Attributes:
        name: As the pod calls it.
        request: Which of its requests; "" for all.
    """

    name: str = attrs.field(default="", metadata=wire(required=True))
    request: str = ""


@attrs.frozen(kw_only=True)
class ResizePolicy:
    """What a change of a resource in place takes.

    Attributes:
        resource_name: `cpu` or `memory`.
        restart_policy: `NotRequired` or `RestartContainer`.
    """

    resource_name: str = attrs.field(default="", metadata=wire(required=True))
    restart_policy: str = attrs.field(default="", metadata=wire(required=True))


@attrs.frozen(kw_only=True)
class LocalName:
    """An object in the name space of the pod, such as a secret to pull images with.

    Attributes:
        name: Of the object.
    """

    name: str = ""


@attrs.frozen(kw_only=True)
class PodOs:
    """For which operating system a pod is.

    Attributes:
        name: `linux` or `windows`.
    """

    name: str = attrs.field(default="", metadata=wire(required=True))


@typed_fields
@attrs.frozen(kw_only=True)
class ReadinessGate:
    """A condition of somebody else's that a ready pod needs.

    Attributes:
        condition_type: Which.
    """

    condition_type: str = attrs.field(default="", metadata=wire(required=True))


@attrs.frozen(kw_only=True)
class SchedulingGate:
    """A reason not to schedule yet.

    Attributes:
        name: Which.
    """

    name: str = attrs.field(default="", metadata=wire(required=True))


@attrs.frozen(kw_only=True)
class PodResourceClaim:
    """A resource claim that a pod refers to. One of the two is given.

    Attributes:
        name: For its containers.
        resource_claim_name: Of the claim.
        resource_claim_template_name: Of the template that the claim is made of.
    """

    name: str = attrs.field(default="", metadata=wire(required=True, check=label))
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


@typed_fields
@attrs.frozen(kw_only=True)
class Container:
    """One container of a pod.

    Attributes:
        name: Unique inside the pod, init containers included.
        requests: What it is guaranteed. In a manifest a missing request follows the limit; a container
            that is made here requests what is written here.
        limits: What it may use at most.
        restartable: For an init container: it keeps running (a sidecar).
        image: As the manifest names it, or "".
        entrypoint: The manifest's `command`; empty for the image's own.
        args: Arguments behind the entry point; empty for the image's own.
        variables: Its environment, in order; a later one of the same name counts.
        env_from: Whole objects as variables, before `variables`.
        volumes: Mounts, then block devices.
        ports: On which it listens.
        working_dir: "" for the image's own.
        image_pull_policy: As the API defaults it where a manifest says nothing.
        liveness_probe: It is killed when this fails.
        readiness_probe: It is not ready while this fails.
        startup_probe: The other two wait for this.
        lifecycle: Hooks.
        security_context: As whom it runs; None follows the pod.
        termination_message_path: File of its termination message.
        termination_message_policy: Where else they are.
        resize_policy: What changes in place take.
        claims: Resource claims that it uses.
        stdin: Whether it has one.
        stdin_once: Whether that is closed behind the first who attached.
        tty: Whether it has a terminal.
        target_container_name: For an ephemeral container: whose name spaces it shares.
    """

    name: str = attrs.field(metadata=wire(required=True, check=label))
    requests: Resources = attrs.field(factory=Amounts, converter=resources, metadata=_SKIP)
    limits: Resources = attrs.field(factory=Amounts, converter=resources, metadata=_SKIP)
    restartable: bool = attrs.field(default=False, metadata=_SKIP)
    image: str = ""
    entrypoint: tuple[str, ...] = attrs.field(default=(), metadata=wire("command"))
    args: tuple[str, ...] = ()
    variables: tuple[Variable, ...] = attrs.field(default=(), metadata=wire("env"))
    env_from: tuple[EnvFrom, ...] = ()
    volumes: tuple[VolumeUse, ...] = attrs.field(default=(), metadata=_SKIP)
    ports: tuple[ContainerPort, ...] = ()
    working_dir: str = ""
    image_pull_policy: PullPolicy | None = None
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle | None = None
    security_context: SecurityContext | None = None
    termination_message_path: str = attrs.field(default="/dev/termination-log", metadata=wire(unset=""))
    termination_message_policy: MessagePolicy = MessagePolicy.FILE
    resize_policy: tuple[ResizePolicy, ...] = ()
    claims: tuple[ClaimUse, ...] = attrs.field(default=(), metadata=_SKIP)
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False
    target_container_name: str = ""

    @property
    def command(self) -> tuple[str, ...]:
        """Entry point with its arguments, or empty for the image's own."""
        return self.entrypoint + self.args

    @property
    def env(self) -> Mapping[str, str]:
        """The variables with literal values."""
        return Frozen({one.name: one.value for one in self.variables if one.value_from is None})
