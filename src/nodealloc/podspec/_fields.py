"""Values only: all fields of a pod, without what reads and writes manifests."""

from __future__ import annotations

from collections.abc import Mapping

from nodealloc import _attrs as attrs
from nodealloc._arguments import checked, several
from nodealloc._frozen import Frozen, freeze, freeze_deeply
from nodealloc._reading import Json
from nodealloc._wire import wire
from nodealloc.podspec._amounts import Amounts, Resources, resources
from nodealloc.podspec._checks import at_least, label, maybe, one_of, subdomain
from nodealloc.podspec._model import (
    Container,
    DnsPolicy,
    LocalName,
    PodOs,
    PodResourceClaim,
    ReadinessGate,
    RestartPolicy,
    SchedulingGate,
    Volume,
)
from nodealloc.podspec._network import HostAlias, PodDnsConfig
from nodealloc.podspec._peaks import Nanos, requested_nanos
from nodealloc.podspec._placement import Affinity, Toleration
from nodealloc.podspec._qos import QosClass, qos_of
from nodealloc.podspec._security import PodSecurityContext

__all__ = ["PodFields"]

_SKIP = wire(skip=True)
_CONTAINERS = several(Container, "a Container")


@attrs.frozen(kw_only=True)
class PodFields:
    """What stands in a pod; see `nodealloc.podspec.Pod`."""

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
    dns_config: PodDnsConfig | None = None
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
    requested_nanos: Nanos = attrs.field(init=False, eq=False, repr=False, metadata=_SKIP)
    qos: QosClass = attrs.field(init=False, eq=False, repr=False, metadata=_SKIP)

    def __attrs_post_init__(self) -> None:
        nanos = requested_nanos(self.init_containers, self.containers, self.overhead)
        object.__setattr__(self, "requested_nanos", nanos)
        object.__setattr__(self, "qos", qos_of(self.all_containers))

    @property
    def all_containers(self) -> tuple[Container, ...]:
        """Init containers, then containers: the order in which they are admitted."""
        return self.init_containers + self.containers

    @property
    def full_name(self) -> str:
        """`namespace/name`, for messages."""
        return f"{self.namespace}/{self.name or self.uid}"
