"""Values only: a pod as running it on one node needs to know it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping

import attrs

from nodealloc._arguments import checked, several
from nodealloc._frozen import Frozen, freeze, freeze_deeply
from nodealloc._reading import MAX_DOCUMENT_BYTES, Json
from nodealloc._wire import wire
from nodealloc.errors import Fault
from nodealloc.podspec._amounts import Amounts, Resources, resources
from nodealloc.podspec._checks import at_least, label, maybe, one_of, subdomain
from nodealloc.podspec._network import ContainerPort, DnsConfig, HostAlias
from nodealloc.podspec._placement import Affinity, Toleration
from nodealloc.podspec._probes import Lifecycle, Probe
from nodealloc.podspec._security import PodSecurityContext, SecurityContext
from nodealloc.podspec._variables import EnvFrom, Variable

__all__ = [
    "ClaimUse",
    "Container",
    "DnsPolicy",
    "Json",
    "LocalName",
    "MessagePolicy",
    "Pod",
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
    """Where the last words of a container are taken from."""

    FILE = "File"
    FALLBACK_TO_LOGS_ON_ERROR = "FallbackToLogsOnError"


class DnsPolicy(enum.Enum):
    """Whose name servers a pod asks."""

    CLUSTER_FIRST = "ClusterFirst"
    CLUSTER_FIRST_WITH_HOST_NET = "ClusterFirstWithHostNet"
    DEFAULT = "Default"
    NONE = "None"


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


@attrs.frozen(kw_only=True)
class Container:
    """One container of a pod.

    Attributes:
        name: Unique inside the pod, init containers included.
        requests: What it is guaranteed; a missing request follows the limit.
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
        termination_message_path: File of its last words.
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
    termination_message_path: str = "/dev/termination-log"
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


_CONTAINERS = several(Container, "a Container")


@attrs.frozen(kw_only=True)
class Pod:
    """A pod.

    Attributes:
        uid: Unique for all time; a pod made anew under its old name has another.
        name: For people.
        namespace: For people.
        init_containers: Run before the containers, in this order.
        containers: Run together; at least one.
        ephemeral_containers: Added to look at a pod that runs; never restarted.
        volumes: What the pod's containers can mount.
        labels: As the manifest has them.
        annotations: As the manifest has them.
        restart_policy: Of its containers.
        termination_grace_period_seconds: From being told to end to being killed.
        active_deadline_seconds: How long it may be active; None for ever.
        security_context: Of all containers.
        image_pull_secrets: Names of secrets to pull with.
        node_name: The node that it is for; "" for any.
        node_selector: Labels that the node has to have.
        affinity: Which nodes, and near which pods.
        tolerations: Taints that do not matter.
        priority: The higher the more important; None where nobody resolved its class.
        priority_class_name: Its class, or "".
        preemption_policy: `PreemptLowerPriority`, `Never`, or "" where not said.
        overhead: What running it takes beside its containers.
        runtime_class_name: Which runtime; None for the node's own.
        host_network: It shares the node's network.
        host_pid: It sees the node's processes.
        host_ipc: It shares the node's IPC.
        host_users: False gives it a user name space of its own.
        share_process_namespace: Its containers see one another's processes.
        dns_policy: Whose name servers.
        dns_config: What is added to resolv.conf.
        host_aliases: Added to /etc/hosts.
        hostname: "" for the pod's name.
        subdomain: Behind the host name.
        set_hostname_as_fqdn: Whether the kernel's host name has the domain.
        enable_service_links: Whether services stand in the environment.
        service_account_name: As which it speaks to the API.
        automount_service_account_token: None follows the account.
        resource_claims: Claims that its containers use.
        readiness_gates: Conditions of others that being ready needs.
        scheduling_gates: Reasons not to schedule it yet.
        os: For which operating system; None for any.
        creation_timestamp: RFC 3339, or "".
        deletion_timestamp: RFC 3339 of when it has to be gone; "" while nobody asked for it.
        deletion_grace_period_seconds: Of the deletion; None where not said. 0 is a value.
        carried: What concerns others than the node, as it came, by its path
            (`metadata.ownerReferences`, `spec.schedulerName`).
        status: What was last told of it, as it came.
    """

    uid: str = attrs.field(validator=checked(str, "a text, unique for all time"), metadata=_SKIP)
    name: str = attrs.field(default="", metadata=_SKIP)
    namespace: str = attrs.field(default="default", metadata=_SKIP)
    init_containers: tuple[Container, ...] = attrs.field(default=(), validator=_CONTAINERS)
    containers: tuple[Container, ...] = attrs.field(default=(), validator=_CONTAINERS)
    ephemeral_containers: tuple[Container, ...] = attrs.field(default=(), validator=_CONTAINERS)
    volumes: tuple[Volume, ...] = ()
    labels: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze, metadata=_SKIP)
    annotations: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze, metadata=_SKIP)
    restart_policy: RestartPolicy = RestartPolicy.ALWAYS
    termination_grace_period_seconds: int = attrs.field(default=30, metadata=wire(check=at_least(0)))
    active_deadline_seconds: int | None = attrs.field(default=None, metadata=wire(check=at_least(1)))
    security_context: PodSecurityContext | None = None
    image_pull_secrets: tuple[LocalName, ...] = ()
    node_name: str = ""
    node_selector: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = attrs.field(
        default="", metadata=wire(check=one_of("PreemptLowerPriority", "Never"))
    )
    overhead: Resources = attrs.field(factory=Amounts, converter=resources)
    runtime_class_name: str | None = attrs.field(default=None, metadata=wire(check=subdomain))
    host_network: bool = False
    host_pid: bool = attrs.field(default=False, metadata=wire("hostPID"))
    host_ipc: bool = attrs.field(default=False, metadata=wire("hostIPC"))
    host_users: bool | None = None
    share_process_namespace: bool = False
    dns_policy: DnsPolicy = DnsPolicy.CLUSTER_FIRST
    dns_config: DnsConfig | None = None
    host_aliases: tuple[HostAlias, ...] = ()
    hostname: str = attrs.field(default="", metadata=wire(check=maybe(label)))
    subdomain: str = attrs.field(default="", metadata=wire(check=maybe(label)))
    set_hostname_as_fqdn: bool = attrs.field(default=False, metadata=wire("setHostnameAsFQDN"))
    enable_service_links: bool = True
    service_account_name: str = ""
    automount_service_account_token: bool | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    readiness_gates: tuple[ReadinessGate, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    os: PodOs | None = None
    creation_timestamp: str = attrs.field(default="", metadata=_SKIP)
    deletion_timestamp: str = attrs.field(default="", metadata=_SKIP)
    deletion_grace_period_seconds: int | None = attrs.field(default=None, metadata=_SKIP)
    carried: Mapping[str, Json] = attrs.field(
        factory=Frozen[str, Json], validator=freeze_deeply, metadata=_SKIP
    )
    status: Mapping[str, Json] = attrs.field(
        factory=Frozen[str, Json], validator=freeze_deeply, metadata=_SKIP
    )

    @classmethod
    def from_manifest(
        cls,
        manifest: object,
        /,
        *,
        source: str = "",
        max_bytes: int = MAX_DOCUMENT_BYTES,
        unread: Callable[[Fault], None] | None = None,
    ) -> Pod:
        """Read a Pod manifest, a mapping as YAML or JSON gives it.

        Raises `DecodeError` that lists every wrong field with its path, or says
        that it is larger than `max_bytes`; see `nodealloc.podspec.pod_from_manifest`.
        """
        # Imported late: the manifest's reader needs this class.
        from nodealloc.podspec._manifest import pod_from_manifest  # noqa: PLC0415

        return pod_from_manifest(manifest, source=source, max_bytes=max_bytes, unread=unread)

    def to_manifest(self) -> dict[str, Json]:
        """The manifest of this pod; read again it is an equal pod.

        Fields that have the API's defaults are left out.
        """
        from nodealloc.podspec._writing import manifest_of  # noqa: PLC0415 - it needs this class

        return manifest_of(self)

    @property
    def all_containers(self) -> tuple[Container, ...]:
        """Init containers, then containers: the order in which they are admitted."""
        return self.init_containers + self.containers

    @property
    def full_name(self) -> str:
        """`namespace/name`, for messages."""
        return f"{self.namespace}/{self.name or self.uid}"
