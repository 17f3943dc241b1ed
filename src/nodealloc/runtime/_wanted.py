"""Values only: what a runtime is asked to make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

from nodealloc import _attrs as attrs
from nodealloc._arguments import addresses, filled, whole, wrong
from nodealloc._frozen import Frozen, freeze
from nodealloc._typed import typed, typed_fields
from nodealloc.errors import ConfigurationError
from nodealloc.idset import CPUSet, NodeSet
from nodealloc.podfacts import PodIdentity, Transport
from nodealloc.podspec import ProfileType, SeLinuxOptions
from nodealloc.runtime._mounts import HostDevice, HostMount

__all__ = [
    "ContainerConfig",
    "DnsConfig",
    "LinuxResources",
    "PortMapping",
    "PullCredentials",
    "SandboxConfig",
    "Security",
    "SecurityProfile",
]


_NO_LIMIT: Final = -1


@typed_fields
@attrs.frozen(kw_only=True)
class LinuxResources:
    """Limits of one container; what is None is left to the runtime, or as it is.

    Attributes:
        cpu_shares: Weight, 2 to 262144.
        cpu_quota_us: CPU time in a period, in microseconds; -1 for no limit.
        cpu_period_us: Length of the period, in microseconds.
        memory_bytes: Most memory; -1 for no limit.
        swap_bytes: Most memory and swap together; likewise.
        oom_score_adj: -1000 to 1000.
        cpus: Which CPUs; never an empty set.
        mems: Which memory nodes; never an empty set.
        hugepages_bytes: Page size as the kernel names it (`2MB`) to the most bytes.
        unified: Files of cgroup v2 with what to write into them.

    Raises:
        ConfigurationError: An empty set of CPUs or memory nodes, or a number out of its range.
    """

    cpu_shares: int | None = None
    cpu_quota_us: int | None = None
    cpu_period_us: int | None = None
    memory_bytes: int | None = None
    swap_bytes: int | None = None
    oom_score_adj: int | None = None
    cpus: CPUSet | None = None
    mems: NodeSet | None = None
    hugepages_bytes: Mapping[str, int] = attrs.field(factory=Frozen[str, int], validator=freeze)
    unified: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)

    def __attrs_post_init__(self) -> None:
        for name, value in (("cpus", self.cpus), ("mems", self.mems)):
            if value is not None and not value:
                raise ConfigurationError(
                    f"{name} is an empty set, which runtimes take for no change; leave it out, or name some"
                )
        for name, number, low, high in (
            ("cpu_shares", self.cpu_shares, 2, 262144),
            ("cpu_quota_us", self.cpu_quota_us, -1, None),
            ("cpu_period_us", self.cpu_period_us, 1, None),
            ("memory_bytes", None if self.memory_bytes == _NO_LIMIT else self.memory_bytes, 1, None),
            ("swap_bytes", self.swap_bytes, -1, None),
            ("oom_score_adj", self.oom_score_adj, -1000, 1000),
        ):
            if number is not None and (number < low or (high is not None and number > high)):
                span = f"{low} or more" if high is None else f"from {low} to {high}"
                raise wrong(f"LinuxResources.{name}", number, f"a whole number {span}, or None to leave it")
        for size, most in self.hugepages_bytes.items():
            if most < 0:
                raise wrong(f"LinuxResources.hugepages_bytes[{size}]", most, "a whole number, 0 or more")


@typed_fields
@attrs.frozen(kw_only=True)
class SecurityProfile:
    """Which profile of seccomp or AppArmor confines a process.

    Attributes:
        type: Which.
        localhost: Of LOCALHOST: the file of a seccomp profile, or the name of a loaded AppArmor one.

    Raises:
        ConfigurationError: LOCALHOST without a file or name.
    """

    type: ProfileType
    localhost: str = ""

    def __attrs_post_init__(self) -> None:
        if self.type is ProfileType.LOCALHOST and not self.localhost:
            raise wrong("SecurityProfile.localhost", "", "the profile's file or name")


@typed_fields
@attrs.frozen(kw_only=True)
class PortMapping:
    """A port of a pod, and the port of the node that leads to it.

    Attributes:
        container_port: In the pod.
        host_port: On the node; 0 for none.
        host_ip: Which of the node's addresses; "" for all.
        protocol: Of both.

    Raises:
        ConfigurationError: Numbers that no port has, or no IP address.
    """

    container_port: int = attrs.field(validator=whole(1, 65535))
    host_port: int = attrs.field(default=0, validator=whole(0, 65535))
    host_ip: str = ""
    protocol: Transport = Transport.TCP

    def __attrs_post_init__(self) -> None:
        if self.host_ip:
            addresses("PortMapping.host_ip", (self.host_ip,))


@typed_fields
@attrs.frozen(kw_only=True)
class PullCredentials:
    """As whom an image is fetched. What is secret does not show when this is printed.

    Attributes:
        username: Of the registry.
        password: Of that user.
        server: Whose registry; "" for the image's own.
        identity_token: In place of a password, to get tokens with.
        registry_token: A token of the registry itself.
    """

    username: str = ""
    password: str = attrs.field(default="", repr=False)
    server: str = ""
    identity_token: str = attrs.field(default="", repr=False)
    registry_token: str = attrs.field(default="", repr=False)


@typed_fields
@attrs.frozen(kw_only=True)
class Security:
    """As whom, and with which rights, a container's processes run.

    Attributes:
        user: User id; None for the image's.
        group: Group id; None for the image's. Needs `user`.
        groups: Further group ids.
        privileged: Whether all rights of the host are given.
        read_only_root: Whether the root file system may only be read.
        no_new_privileges: Whether set-uid programs gain nothing.
        add_capabilities: Beyond the runtime's default ones, without `CAP_`.
        drop_capabilities: Of the runtime's default ones, or `ALL`.
        username: Name of the image's user where its id is not known; "" where `user` says all.
        masked_paths: Of /proc and /sys, hidden from it.
        readonly_paths: Of /proc and /sys, which it may only read.
        seccomp: Its profile; None for the runtime's choice.
        apparmor: Its profile; None for the runtime's choice.
        selinux: Its label; None for the runtime's choice.

    Raises:
        ConfigurationError: A group without a user, or an id below 0.
    """

    user: int | None = None
    group: int | None = None
    groups: tuple[int, ...] = ()
    privileged: bool = False
    read_only_root: bool = False
    no_new_privileges: bool = False
    add_capabilities: tuple[str, ...] = ()
    drop_capabilities: tuple[str, ...] = ()
    username: str = ""
    masked_paths: tuple[str, ...] = ()
    readonly_paths: tuple[str, ...] = ()
    seccomp: SecurityProfile | None = None
    apparmor: SecurityProfile | None = None
    selinux: SeLinuxOptions | None = None

    def __attrs_post_init__(self) -> None:
        for name, ids in (("user", (self.user,)), ("group", (self.group,)), ("groups", self.groups)):
            for id_ in ids:
                if id_ is not None and id_ < 0:
                    raise wrong(f"Security.{name}", id_, "an id, 0 or more")
        if self.group is not None and self.user is None and not self.username:
            raise ConfigurationError(
                f"group {self.group} without a user; runtimes refuse that, so give a user as well"
            )


@typed_fields
@attrs.frozen(kw_only=True)
class DnsConfig:
    """What `/etc/resolv.conf` says in a pod.

    Attributes:
        servers: Addresses.
        searches: Domains to look in.
        options: As resolv.conf(5) has them.
    """

    servers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    @classmethod
    @typed
    def of_resolv_conf(cls, text: str, /) -> Self:
        """What a file such as `/etc/resolv.conf` says; lines that it does not know mean nothing.

        The last `search` counts, and the last of options with one name.

        Source: resolv.conf(5); kubelet ``network/dns/dns.go``.
        """
        servers: list[str] = []
        searches: tuple[str, ...] = ()
        options: dict[str, str] = {}
        for name, *words in (line.split() for line in text.splitlines() if line.strip()):
            if name == "nameserver":
                servers += words[:1]
            elif name == "search":
                searches = tuple(one.removesuffix(".") or "." for one in words)
            elif name == "options":
                options |= {one.partition(":")[0]: one for one in words}
        return cls(servers=tuple(servers), searches=searches, options=tuple(options.values()))


@typed_fields
@attrs.frozen(kw_only=True)
class SandboxConfig:
    """A sandbox that is to be made; its pod and attempt name it.

    Attributes:
        pod: Whose it is.
        attempt: One more than that of any sandbox that the pod had.
        hostname: Needed where the pod has a network of its own; unused where it has the node's.
        log_directory: Where its containers' logs go.
        cgroup_parent: The pod's cgroup as its driver names it, or "" for the runtime's own choice.
        host_network: Whether the pod has the node's network.
        host_pid: Whether it sees the node's processes.
        host_ipc: Whether it has the node's IPC.
        shares_pid: Whether its containers see each other's processes.
        handler: Runtime handler, "" for the default one.
        dns: None leaves it to the runtime.
        sysctls: Kernel settings of its namespaces.
        privileged: Whether any container of it is.
        labels: The pod's; the runtime's adapter adds what names the pod.
        annotations: The pod's, and what its maker adds to tell by what it was made from.
        ports: Of its containers.
        user: User id of the sandbox's own process; None for the runtime's choice.
        group: Group id, likewise; there are runtimes that refuse one without a user.
        groups: Further group ids.
        seccomp: Profile of the sandbox's own process; None for the runtime's choice.
        selinux: Label; None for the runtime's choice.
        resources: What all containers of the pod may use together, for runtimes that size by it.
        overhead: What running the pod takes beside its containers, likewise.
    """

    pod: PodIdentity
    attempt: int = 0
    hostname: str = ""
    log_directory: str = ""
    cgroup_parent: str = ""
    host_network: bool = False
    host_pid: bool = False
    host_ipc: bool = False
    shares_pid: bool = False
    handler: str = ""
    dns: DnsConfig | None = None
    sysctls: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    privileged: bool = False
    labels: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    annotations: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    ports: tuple[PortMapping, ...] = ()
    user: int | None = None
    group: int | None = None
    groups: tuple[int, ...] = ()
    seccomp: SecurityProfile | None = None
    selinux: SeLinuxOptions | None = None
    resources: LinuxResources = LinuxResources()
    overhead: LinuxResources = LinuxResources()


@typed_fields
@attrs.frozen(kw_only=True)
class ContainerConfig:
    """A container that is to be made; its sandbox, name and attempt name it.

    Attributes:
        name: As the pod names it.
        attempt: One more than that of any instance that the pod had: its restart count.
        image: The runtime's id of the image, or a name of it.
        image_name: As the pod names it, for whoever reads of the container; "" for `image`.
        command: Entry point, empty for the image's.
        args: Its arguments, empty for the image's.
        working_dir: "" for the image's.
        env: Variables.
        mounts: Of the host's file system.
        devices: Of the host.
        cdi_devices: Full names, `vendor.com/class=name`.
        resources: Limits.
        security: Rights.
        log_path: Below the sandbox's log directory; "" for no log.
        definition: Fingerprint of what it is made from, kept with it.
        grace_s: The pod's grace period, kept with it; None where there is none.
        labels: More labels; the adapter adds what names pod and container.
        annotations: More annotations.
        tty: Whether it has a terminal.
        stdin: Whether it has a standard input.
        stdin_once: Whether that is closed behind the first who attached.
        shares_pid_with: Id of the container whose processes it sees; "" for as its sandbox has it, which
            also holds where that one shares processes itself.
    """

    name: str = attrs.field(validator=filled)
    attempt: int = 0
    image: str
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    env: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    mounts: tuple[HostMount, ...] = ()
    devices: tuple[HostDevice, ...] = ()
    cdi_devices: tuple[str, ...] = ()
    resources: LinuxResources = LinuxResources()
    security: Security = Security()
    log_path: str = ""
    definition: str = ""
    grace_s: int | None = None
    labels: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    annotations: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    tty: bool = False
    stdin: bool = False
    stdin_once: bool = False
    shares_pid_with: str = ""
    image_name: str = ""
