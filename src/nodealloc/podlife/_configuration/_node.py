"""Values only: what a node gives to every pod, and what one container was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol, Self

from nodealloc import _attrs as attrs
from nodealloc._arguments import absolute, addresses, filled, whole
from nodealloc._frozen import Frozen, freeze
from nodealloc._typed import typed, typed_fields
from nodealloc.cgroups import PodOptions
from nodealloc.idset import CPUSet, NodeSet
from nodealloc.podspec import Quantity
from nodealloc.runtime import DnsConfig, HostDevice, HostMount, Images

__all__ = ["ContainerRunOptions", "EnvironmentSource", "ImageFacts", "NodeSettings", "PodAddresses"]

_PODS: Final = "/var/lib/kubelet/pods"
_LOGS: Final = "/var/log/pods"
_SECCOMP: Final = "/var/lib/kubelet/seccomp"


@typed_fields
@attrs.frozen(kw_only=True)
class NodeSettings:
    """What is the same for all pods of a node.

    Attributes:
        name: Its name, as `spec.nodeName` tells it.
        memory_capacity_bytes: Of the machine; the OOM score is a part of it.
        hostname: Of the machine; "" for `name`.
        cluster_dns: Addresses of the cluster's name servers; none for the node's own.
        cluster_domain: Domain of services, or "".
        resolver: What the node's resolv.conf says; None takes name resolution away from
            pods that would use it.
        hosts: What the node's hosts file says, for pods with the node's network.
        allocatable: What a limit that a container lacks is told as.
        services: Variables of the services that pods know, for pods that ask for them; those of
            the service `kubernetes`, by which programs find the API server, for all.
        pods_directory: Where each pod has a folder of its own; "" where containers get no
            hosts file and no file for a termination message from it.
        logs_directory: Where each pod has its logs.
        seccomp_directory: Where profiles of the node lie.
        seccomp_default: Whether a pod that says nothing gets the runtime's profile, or none.
        limits: How requests and limits become numbers of the kernel.
        as_kubelet: Whether a static pod's `hostUsers` is refused, whatever it says; a sandbox has its
            pod's group also without a user, with which it is not made; it is made though the pod
            wants no groups of its image; ports of sidecars do not lead to the pod. A variable that
            names a limit which an init container does not have is 0 then, not what is allocatable;
            one of the address of a static pod with the node's network is empty. That no mount is
            read-only all the way down is told in a kubelet's words.

    Raises:
        ConfigurationError: No name, a name server that is no IP address, or a directory
            that does not begin at the root.
    """

    name: str = attrs.field(validator=filled)
    memory_capacity_bytes: int = attrs.field(validator=whole(1))
    hostname: str = ""
    cluster_dns: tuple[str, ...] = ()
    cluster_domain: str = ""
    resolver: DnsConfig | None = DnsConfig()
    hosts: str = ""
    allocatable: Mapping[str, Quantity] = attrs.field(factory=Frozen[str, Quantity], validator=freeze)
    services: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    pods_directory: str = _PODS
    logs_directory: str = _LOGS
    seccomp_directory: str = _SECCOMP
    seccomp_default: bool = False
    limits: PodOptions = PodOptions()
    as_kubelet: bool = False

    def __attrs_post_init__(self) -> None:
        addresses("NodeSettings.cluster_dns", self.cluster_dns)
        if self.pods_directory:
            absolute("NodeSettings.pods_directory", self.pods_directory)
        absolute("NodeSettings.logs_directory", self.logs_directory)
        absolute("NodeSettings.seccomp_directory", self.seccomp_directory)


@typed_fields
@attrs.frozen(kw_only=True)
class PodAddresses:
    """Addresses that a pod can be told of.

    Attributes:
        pod_ips: Its own, the first is the one that is told alone; none before it has any.
        host_ips: Of its node, likewise.
    """

    pod_ips: tuple[str, ...] = ()
    host_ips: tuple[str, ...] = ()


@typed_fields
@attrs.frozen(kw_only=True)
class ImageFacts:
    """What is known of the image that a container is made from.

    Attributes:
        id: By which the runtime finds it.
        user: User id that it runs as; None where it says none, or a name.
        username: The same by name; "" where it says none, or an id. Who says neither runs as root.
        is_listed: Whether the runtime listed it; what is known of one that it did not may still come.
    """

    id: str
    user: int | None = attrs.field(default=None, validator=attrs.validators.optional(whole(0)))
    username: str = ""
    is_listed: bool = attrs.field(default=True, eq=False)

    @classmethod
    @typed
    def of(cls, images: Images, id_: str, /) -> Self:
        """What a runtime tells of an image; of one that it does not list, the id alone."""
        found = next((one for one in images.images() if one.id == id_), None)
        return (
            cls(id=id_, is_listed=False)
            if found is None
            else cls(id=id_, user=found.user, username=found.username)
        )


@typed_fields
@attrs.frozen(kw_only=True)
class ContainerRunOptions:
    """What allocators, plugins and volumes give to one container: a kubelet's `RunContainerOptions`.

    Attributes:
        cpus: Its CPUs; None for those that all share.
        mems: Memory nodes; None for all.
        devices: Of the host.
        cdi_devices: By full name.
        mounts: Beside those of its volumes.
        env: Variables; the container's own of the same name count.
        annotations: For the runtime.
        volumes: Volume name to where it is on the host.
        read_only_volumes: Names of those that may only be read, whatever a container says of its use.
        sub_paths: Volume name and path in it, to where that is on the host. Whoever mounts has
            made sure that no link leads out of the volume.
    """

    cpus: CPUSet | None = None
    mems: NodeSet | None = None
    devices: tuple[HostDevice, ...] = ()
    cdi_devices: tuple[str, ...] = ()
    mounts: tuple[HostMount, ...] = ()
    env: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    annotations: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    volumes: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    read_only_volumes: frozenset[str] = frozenset()
    sub_paths: Mapping[tuple[str, str], str] = attrs.field(
        factory=Frozen[tuple[str, str], str], validator=freeze
    )

    @classmethod
    @typed
    def joined(cls, given: Sequence[ContainerRunOptions], /) -> ContainerRunOptions:
        """Several of them as one; of what only one can give, the last counts."""
        sets = [(one.cpus, one.mems) for one in given]
        return cls(
            cpus=next((one for one, _ in reversed(sets) if one is not None), None),
            mems=next((one for _, one in reversed(sets) if one is not None), None),
            devices=tuple(each for one in given for each in one.devices),
            cdi_devices=tuple(each for one in given for each in one.cdi_devices),
            mounts=tuple(each for one in given for each in one.mounts),
            env={key: value for one in given for key, value in one.env.items()},
            annotations={key: value for one in given for key, value in one.annotations.items()},
            volumes={key: value for one in given for key, value in one.volumes.items()},
            read_only_volumes=frozenset(name for one in given for name in one.read_only_volumes),
            sub_paths={key: value for one in given for key, value in one.sub_paths.items()},
        )


class EnvironmentSource(Protocol):
    """Objects that variables are taken from.

    May raise `RetryableError` where it cannot tell; a container waits for that.
    """

    def config_map(self, namespace: str, name: str, /) -> Mapping[str, str] | None:
        """The data of a config map; None where there is none of that name."""
        ...

    def secret(self, namespace: str, name: str, /) -> Mapping[str, bytes] | None:
        """The data of a secret, decoded; None where there is none of that name."""
        ...
