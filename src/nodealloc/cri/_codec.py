"""Protobuf messages of a runtime and their values; raw bytes stop here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeVar, cast

from google.protobuf.message import DecodeError as ProtobufError

from nodealloc._proto import runtime_v1_pb2 as wire
from nodealloc.cri import _labels as labels
from nodealloc.errors import DecodeError, Fault
from nodealloc.idset import CPUSet, NodeSet
from nodealloc.podfacts import Exited, ExitUnknown, PodIdentity, Transport
from nodealloc.podspec import ProfileType, SeLinuxOptions
from nodealloc.runtime import (
    CgroupDriverKind,
    CommandResult,
    ContainerConfig,
    ContainerRecord,
    ContainerReport,
    Exit,
    ImageRecord,
    LinuxResources,
    Oddity,
    Propagation,
    PullCredentials,
    RunState,
    RuntimeCondition,
    RuntimeHealth,
    SandboxConfig,
    SandboxRecord,
    SandboxReport,
    SecurityProfile,
)

__all__ = [
    "Confined",
    "decode_cgroup_driver",
    "decode_command",
    "decode_confined",
    "decode_container",
    "decode_containers",
    "decode_health",
    "decode_id",
    "decode_images",
    "decode_sandbox",
    "decode_sandboxes",
    "encode_about",
    "encode_command",
    "encode_create",
    "encode_image",
    "encode_of_pod",
    "encode_pull",
    "encode_run",
    "encode_stop",
    "encode_update",
]

_NANO: Final = 1_000_000_000
_STATES: Final = {
    wire.CONTAINER_CREATED: RunState.CREATED,
    wire.CONTAINER_RUNNING: RunState.RUNNING,
    wire.CONTAINER_EXITED: RunState.EXITED,
    wire.CONTAINER_UNKNOWN: RunState.UNKNOWN,
}
_PROPAGATION: Final = {
    Propagation.PRIVATE: wire.PROPAGATION_PRIVATE,
    Propagation.HOST_TO_CONTAINER: wire.PROPAGATION_HOST_TO_CONTAINER,
    Propagation.BIDIRECTIONAL: wire.PROPAGATION_BIDIRECTIONAL,
}
_PROFILES: Final = {
    ProfileType.RUNTIME_DEFAULT: wire.SecurityProfile.RuntimeDefault,
    ProfileType.UNCONFINED: wire.SecurityProfile.Unconfined,
    ProfileType.LOCALHOST: wire.SecurityProfile.Localhost,
}
_TRANSPORTS: Final = {Transport.TCP: wire.TCP, Transport.UDP: wire.UDP, Transport.SCTP: wire.SCTP}
_UNKNOWN_CODE: Final = 255
_UNKNOWN_REASON: Final = "Unknown"

M_co = TypeVar("M_co", covariant=True)


class _Kind(Protocol[M_co]):
    def FromString(self, data: bytes, /) -> M_co: ...  # noqa: N802 - protobuf's name


def _read(kind: _Kind[M_co], what: str, data: bytes) -> M_co:
    try:
        return kind.FromString(data)
    except (ProtobufError, UnicodeDecodeError) as error:
        raise DecodeError(what, [Fault("$", f"not a protobuf message of this kind ({error})")]) from error


def _unix_s(nanoseconds: int) -> float | None:
    return nanoseconds / _NANO if nanoseconds > 0 else None


# What is asked.


def encode_about(kind: str, id: str, /) -> bytes:  # noqa: A002 - the field's word
    """A request that names a sandbox or container and nothing else, by its method."""
    if kind == "ContainerStatus":
        return wire.ContainerStatusRequest(container_id=id).SerializeToString()
    if kind == "PodSandboxStatus":
        return wire.PodSandboxStatusRequest(pod_sandbox_id=id).SerializeToString()
    # All others have the id as their first field.
    return wire.StartContainerRequest(container_id=id).SerializeToString()


def encode_confined(container_id: str, /) -> bytes:
    """A question for all that the runtime knows of a container."""
    return wire.ContainerStatusRequest(container_id=container_id, verbose=True).SerializeToString()


def encode_of_pod(uid: str, /) -> tuple[bytes, bytes]:
    """Questions for the sandboxes and the containers of one pod."""
    mine = {labels.UID: uid}
    boxes = wire.ListPodSandboxRequest(filter=wire.PodSandboxFilter(label_selector=mine))
    runs = wire.ListContainersRequest(filter=wire.ContainerFilter(label_selector=mine))
    return boxes.SerializeToString(), runs.SerializeToString()


def encode_run(config: SandboxConfig, /) -> bytes:
    """A sandbox that is to be made."""
    request = wire.RunPodSandboxRequest(config=_sandbox(config), runtime_handler=config.handler)
    return request.SerializeToString()


def encode_create(sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig, /) -> bytes:
    """A container that is to be made."""
    security = config.security
    made = wire.ContainerConfig(
        metadata=wire.ContainerMetadata(name=config.name, attempt=config.attempt),
        image=wire.ImageSpec(image=config.image, user_specified_image=config.image_name),
        command=config.command,
        args=config.args,
        working_dir=config.working_dir,
        envs=[wire.KeyValue(key=key, value=value) for key, value in config.env.items()],
        mounts=[
            wire.Mount(
                container_path=one.container_path,
                host_path=one.host_path,
                readonly=one.read_only,
                propagation=_PROPAGATION[one.propagation],
            )
            for one in config.mounts
        ],
        devices=[
            wire.Device(
                container_path=one.container_path, host_path=one.host_path, permissions=one.permissions
            )
            for one in config.devices
        ],
        labels=labels.container_labels(sandbox.pod, config),
        annotations=labels.container_annotations(config),
        log_path=config.log_path,
        stdin=config.stdin,
        stdin_once=config.stdin_once,
        tty=config.tty,
        linux=wire.LinuxContainerConfig(
            resources=_resources(config.resources),
            security_context=wire.LinuxContainerSecurityContext(
                capabilities=wire.Capability(
                    add_capabilities=security.add_capabilities, drop_capabilities=security.drop_capabilities
                ),
                privileged=security.privileged,
                namespace_options=_namespaces(sandbox, config.shares_pid_with),
                run_as_user=_number(security.user),
                run_as_group=_number(security.group),
                readonly_rootfs=security.read_only_root,
                supplemental_groups=security.groups,
                no_new_privs=security.no_new_privileges,
                run_as_username=security.username,
                masked_paths=security.masked_paths,
                readonly_paths=security.readonly_paths,
                seccomp=_profile(security.seccomp),
                apparmor=_profile(security.apparmor),
                selinux_options=_selinux(security.selinux),
            ),
        ),
        CDI_devices=[wire.CDIDevice(name=name) for name in config.cdi_devices],
    )
    return wire.CreateContainerRequest(
        pod_sandbox_id=sandbox_id, config=made, sandbox_config=_sandbox(sandbox)
    ).SerializeToString()


def encode_stop(container_id: str, grace_s: float, /) -> bytes:
    """A container that is to end; whole seconds, never less than asked for."""
    seconds = -int(-max(0.0, grace_s) // 1)
    return wire.StopContainerRequest(container_id=container_id, timeout=seconds).SerializeToString()


def encode_update(container_id: str, resources: LinuxResources, /) -> bytes:
    """Limits that are to change; what is not set stays, since the runtime takes 0 for that."""
    request = wire.UpdateContainerResourcesRequest(container_id=container_id, linux=_resources(resources))
    return request.SerializeToString()


def encode_command(container_id: str, command: Sequence[str], timeout_s: float, /) -> bytes:
    """A command that is to be run; whole seconds, at least 1: 0 would be for ever."""
    seconds = max(1, -int(-timeout_s // 1))
    request = wire.ExecSyncRequest(container_id=container_id, cmd=command, timeout=seconds)
    return request.SerializeToString()


def encode_image(name: str, /) -> bytes:
    """A request that names an image and nothing else."""
    return wire.RemoveImageRequest(image=wire.ImageSpec(image=name)).SerializeToString()


def encode_pull(name: str, credentials: PullCredentials | None = None, /) -> bytes:
    """An image that is to be fetched."""
    auth = None
    if credentials is not None:
        auth = wire.AuthConfig(
            username=credentials.username,
            password=credentials.password,
            server_address=credentials.server,
            identity_token=credentials.identity_token,
            registry_token=credentials.registry_token,
        )
    return wire.PullImageRequest(image=wire.ImageSpec(image=name), auth=auth).SerializeToString()


def _sandbox(config: SandboxConfig) -> wire.PodSandboxConfig:
    pod = config.pod
    dns = config.dns
    return wire.PodSandboxConfig(
        metadata=wire.PodSandboxMetadata(
            name=pod.name, uid=pod.uid, namespace=pod.namespace, attempt=config.attempt
        ),
        hostname="" if config.host_network else config.hostname,
        log_directory=config.log_directory,
        dns_config=None
        if dns is None
        else wire.DNSConfig(servers=dns.servers, searches=dns.searches, options=dns.options),
        port_mappings=[
            wire.PortMapping(
                protocol=_TRANSPORTS[one.protocol],
                container_port=one.container_port,
                host_port=one.host_port,
                host_ip=one.host_ip,
            )
            for one in config.ports
        ],
        labels=labels.sandbox_labels(config),
        annotations=config.annotations,
        linux=wire.LinuxPodSandboxConfig(
            cgroup_parent=config.cgroup_parent,
            security_context=wire.LinuxSandboxSecurityContext(
                namespace_options=_namespaces(config),
                privileged=config.privileged,
                run_as_user=_number(config.user),
                run_as_group=_number(config.group),
                supplemental_groups=config.groups,
                seccomp=_profile(config.seccomp),
                selinux_options=_selinux(config.selinux),
            ),
            sysctls=config.sysctls,
            resources=_resources(config.resources),
            overhead=_resources(config.overhead),
        ),
    )


def _namespaces(config: SandboxConfig, shares_pid_with: str = "") -> wire.NamespaceOption:
    own_pid = wire.POD if config.shares_pid else wire.CONTAINER
    pid = wire.NODE if config.host_pid else own_pid
    return wire.NamespaceOption(
        network=wire.NODE if config.host_network else wire.POD,
        pid=wire.TARGET if shares_pid_with else pid,
        ipc=wire.NODE if config.host_ipc else wire.POD,
        target_id=shares_pid_with,
    )


def _number(value: int | None) -> wire.Int64Value | None:
    return None if value is None else wire.Int64Value(value=value)


def _profile(profile: SecurityProfile | None) -> wire.SecurityProfile | None:
    if profile is None:
        return None
    return wire.SecurityProfile(profile_type=_PROFILES[profile.type], localhost_ref=profile.localhost)


def _selinux(label: SeLinuxOptions | None) -> wire.SELinuxOption | None:
    if label is None:
        return None
    return wire.SELinuxOption(user=label.user, role=label.role, type=label.type, level=label.level)


def _resources(asked: LinuxResources) -> wire.LinuxContainerResources:
    return wire.LinuxContainerResources(
        cpu_period=asked.cpu_period_us or 0,
        cpu_quota=asked.cpu_quota_us or 0,
        cpu_shares=asked.cpu_shares or 0,
        memory_limit_in_bytes=asked.memory_bytes or 0,
        memory_swap_limit_in_bytes=asked.swap_bytes or 0,
        oom_score_adj=asked.oom_score_adj or 0,
        cpuset_cpus="" if asked.cpus is None else str(asked.cpus),
        cpuset_mems="" if asked.mems is None else str(asked.mems),
        hugepage_limits=[
            wire.HugepageLimit(page_size=size, limit=limit) for size, limit in asked.hugepages_bytes.items()
        ],
        unified=asked.unified,
    )


# What is answered.


def decode_id(data: bytes, /) -> str:
    """The id of what was made, or of an image that was pulled."""
    return _read(wire.CreateContainerResponse, "id", data).container_id


def decode_sandboxes(data: bytes, /) -> tuple[list[SandboxRecord], list[Oddity]]:
    """Sandboxes of pods, and what made no sense among them."""
    found = _read(wire.ListPodSandboxResponse, "sandboxes", data).items
    return _all(found, _sandbox_record, lambda one: one.metadata.uid)


def decode_containers(data: bytes, /) -> tuple[list[ContainerRecord], list[Oddity]]:
    """Containers of pods, and what made no sense among them; others are not ours."""
    found = _read(wire.ListContainersResponse, "containers", data).containers
    mine = [one for one in found if labels.UID in one.labels]
    return _all(mine, _container_record, lambda one: one.labels[labels.UID])


class _Listed(Protocol):
    @property
    def id(self) -> str: ...


L = TypeVar("L", bound=_Listed)
R = TypeVar("R")


def _all(
    found: Iterable[L], read: Callable[[L], R], uid_of: Callable[[L], str]
) -> tuple[list[R], list[Oddity]]:
    records: list[R] = []
    oddities: list[Oddity] = []
    for one in found:
        try:
            records.append(read(one))
        except ValueError as error:
            oddities.append(Oddity.of(uid_of(one), f"{one.id[:80]!r}: {error}"))
    return records, oddities


def decode_sandbox(data: bytes, /) -> SandboxReport:
    """One sandbox, inspected."""
    status = _read(wire.PodSandboxStatusResponse, "sandbox", data).status
    network = status.linux.namespaces.options.network == wire.NODE
    ips: tuple[str, ...] | None = None
    if status.HasField("network") and not network:
        also = (one.ip for one in status.network.additional_ips)
        ips = tuple(one for one in (status.network.ip, *also) if one)
    return SandboxReport(record=_sandbox_record(status), uses_host_network=network, ips=ips)


def decode_container(data: bytes, /) -> ContainerReport | None:
    """One container, inspected; None for one that belongs to no pod."""
    status = _read(wire.ContainerStatusResponse, "container", data).status
    if labels.pod_of(status.labels) is None:
        return None
    record = _container_record(status)
    return ContainerReport(
        record=record,
        exit=_exit(status) if record.state is RunState.EXITED else None,
        reason=status.reason,
        message=status.message,
        started_unix_s=_unix_s(status.started_at),
        finished_unix_s=_unix_s(status.finished_at),
        log_path=status.log_path,
    )


def decode_command(data: bytes, /) -> CommandResult:
    """What a command left."""
    answer = _read(wire.ExecSyncResponse, "command", data)
    return CommandResult(code=answer.exit_code, output=answer.stdout, errors=answer.stderr)


def decode_images(data: bytes, /) -> list[ImageRecord]:
    """Images; one without an id cannot be asked for, and is left out."""
    return [
        ImageRecord(
            id=one.id,
            names=(*one.repo_tags, *one.repo_digests),
            size_bytes=one.size,
            is_pinned=one.pinned,
            user=one.uid.value if one.HasField("uid") else None,
            username=one.username,
        )
        for one in _read(wire.ListImagesResponse, "images", data).images
        if one.id
    ]


def decode_health(status: bytes, version: bytes, /) -> RuntimeHealth:
    """What a runtime says of itself."""
    said = _read(wire.StatusResponse, "status", status)
    who = _read(wire.VersionResponse, "version", version)
    return RuntimeHealth(
        conditions={
            one.type: RuntimeCondition(holds=one.status, reason=one.reason, message=one.message)
            for one in said.status.conditions
        },
        name=who.runtime_name,
        version=who.runtime_version,
        handlers=tuple(one.name for one in said.runtime_handlers),
    )


def decode_cgroup_driver(data: bytes, /) -> CgroupDriverKind | None:
    """Who makes cgroups; None where the runtime does not say."""
    answer = _read(wire.RuntimeConfigResponse, "configuration", data)
    if not answer.HasField("linux"):
        return None
    kinds = {wire.SYSTEMD: CgroupDriverKind.SYSTEMD, wire.CGROUPFS: CgroupDriverKind.CGROUPFS}
    return kinds.get(answer.linux.cgroup_driver)


def _sandbox_record(one: wire.PodSandbox | wire.PodSandboxStatus) -> SandboxRecord:
    meta = one.metadata
    if one.state not in (wire.SANDBOX_READY, wire.SANDBOX_NOTREADY):
        raise ValueError(f"a sandbox in state {one.state}, which nobody knows")
    return SandboxRecord(
        id=one.id,
        pod=PodIdentity(uid=meta.uid, namespace=meta.namespace, name=meta.name),
        attempt=meta.attempt,
        is_ready=one.state == wire.SANDBOX_READY,
        created_unix_s=_unix_s(one.created_at),
        handler=one.runtime_handler,
        labels=dict(one.labels),
        annotations=dict(one.annotations),
    )


def _container_record(one: wire.Container | wire.ContainerStatus) -> ContainerRecord:
    pod = labels.pod_of(one.labels)
    if pod is None:
        raise ValueError("a container of no pod")
    if one.state not in _STATES:
        raise ValueError(f"a container in state {one.state}, which nobody knows")
    # The inspection of a container does not say in which sandbox it is.
    sandbox_id = one.pod_sandbox_id if isinstance(one, wire.Container) else "-"
    return ContainerRecord(
        id=one.id,
        pod=pod,
        name=one.labels.get(labels.CONTAINER, "") or one.metadata.name,
        sandbox_id=sandbox_id,
        attempt=one.metadata.attempt,
        state=_STATES[one.state],
        created_unix_s=_unix_s(one.created_at),
        image=one.image.user_specified_image or one.image.image,
        image_id=one.image_id or one.image_ref,
        definition=one.annotations.get(labels.DEFINITION, ""),
        labels=dict(one.labels),
        annotations=dict(one.annotations),
    )


def _exit(status: wire.ContainerStatus) -> Exit:
    code = status.exit_code
    # What a runtime says of a container that ended while it was away itself.
    if status.reason == _UNKNOWN_REASON and code == _UNKNOWN_CODE:
        return ExitUnknown()
    return Exited(code=code) if 0 <= code <= _UNKNOWN_CODE else ExitUnknown()


class Confined:
    """What a container is confined to, as its runtime wrote it down.

    Attributes:
        cpus: None where it was not confined.
        mems: None where it was not confined.
        pid: Of its first process; 0 where none runs.
    """

    def __init__(self, cpus: CPUSet | None, mems: NodeSet | None, pid: int) -> None:
        self.cpus = cpus
        self.mems = mems
        self.pid = pid


def decode_confined(data: bytes, /) -> Confined:
    """From the runtime's own notes, which all versions keep; raises `DecodeError`."""
    answer = _read(wire.ContainerStatusResponse, "container", data)
    try:
        info = json.loads(answer.info.get("info", "{}"))
    except ValueError as error:
        raise DecodeError("notes of the runtime", [Fault("$.info", f"no JSON: {error}")]) from error
    cpu = _below(info, "runtimeSpec", "linux", "resources", "cpu")
    linux = answer.status.resources.linux
    cpus = str(cpu.get("cpus") or linux.cpuset_cpus)
    mems = str(cpu.get("mems") or linux.cpuset_mems)
    pid = _below(info).get("pid")
    return Confined(
        CPUSet.parse(cpus) if cpus else None,
        NodeSet.parse(mems) if mems else None,
        pid if isinstance(pid, int) else 0,
    )


def _below(value: object, *path: str) -> Mapping[str, object]:
    for key in path:
        value = cast("Mapping[str, object]", value).get(key) if isinstance(value, Mapping) else None
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}
