"""What a runtime is asked, from values to protobuf messages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from nodealloc._arguments import wrong
from nodealloc._proto import runtime_v1_pb2 as wire
from nodealloc.cri import _labels as labels
from nodealloc.podfacts import Transport
from nodealloc.podspec import ProfileType, SeLinuxOptions
from nodealloc.runtime import (
    ContainerConfig,
    LinuxResources,
    Propagation,
    PullCredentials,
    RuntimeRefusedError,
    SandboxConfig,
    SecurityProfile,
)

__all__ = [
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
_OLD_PROFILES: Final = {
    ProfileType.RUNTIME_DEFAULT: "runtime/default",
    ProfileType.UNCONFINED: "unconfined",
}
_LONGEST_GRACE_S: Final = 1e9
"""Containerd counts nanoseconds in 63 bits: some graces of centuries would be over at once."""
_TRANSPORTS: Final = {Transport.TCP: wire.TCP, Transport.UDP: wire.UDP, Transport.SCTP: wire.SCTP}


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
    """A container that is to be made.

    Raises:
        RuntimeRefusedError: Something in it is no text, as of a secret with other bytes in a variable.
    """
    try:
        return _create(sandbox_id, config, sandbox)
    except UnicodeEncodeError:
        named = [f"variable {key}" for key, value in config.env.items() if not _is_text(value)]
        reason = (
            f"{named[0] if named else 'a field of it'} holds bytes that are no UTF-8, which a runtime cannot "
            "be told; mount them as a file, or write them as base64"
        )
    # Outside, so that the first error, which shows the bytes, does not go along.
    raise RuntimeRefusedError("CreateContainer", "INVALID_ARGUMENT", reason)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _create(sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig) -> bytes:
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
            security_context=_security(config, sandbox),
        ),
        CDI_devices=[wire.CDIDevice(name=name) for name in config.cdi_devices],
    )
    return wire.CreateContainerRequest(
        pod_sandbox_id=sandbox_id, config=made, sandbox_config=_sandbox(sandbox)
    ).SerializeToString()


def _security(config: ContainerConfig, sandbox: SandboxConfig) -> wire.LinuxContainerSecurityContext:
    security = config.security
    return wire.LinuxContainerSecurityContext(
        capabilities=wire.Capability(
            add_capabilities=security.add_capabilities, drop_capabilities=security.drop_capabilities
        )
        if security.add_capabilities or security.drop_capabilities
        else None,
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
        apparmor_profile=_old_profile(security.apparmor),
        selinux_options=_selinux(security.selinux),
    )


def encode_stop(container_id: str, grace_s: float, /) -> bytes:
    """A container that is to end; whole seconds, never less than asked for, but for decades."""
    asked_s = min(max(0.0, _finite("stop_container: grace_s", grace_s)), _LONGEST_GRACE_S)
    seconds = -int(-asked_s // 1)
    return wire.StopContainerRequest(container_id=container_id, timeout=seconds).SerializeToString()


def encode_update(container_id: str, resources: LinuxResources, /) -> bytes:
    """Limits that are to change; what is not set stays, since the runtime takes 0 for that."""
    request = wire.UpdateContainerResourcesRequest(container_id=container_id, linux=_resources(resources))
    return request.SerializeToString()


def encode_command(container_id: str, command: Sequence[str], timeout_s: float, /) -> bytes:
    """A command that is to be run; whole seconds, at least 1: 0 would be for ever."""
    seconds = max(1, -int(-_finite("run_command: timeout_s", timeout_s) // 1))
    request = wire.ExecSyncRequest(container_id=container_id, cmd=command, timeout=seconds)
    return request.SerializeToString()


def encode_image(name: str, /) -> bytes:
    """A request that names an image and nothing else."""
    return wire.RemoveImageRequest(image=wire.ImageSpec(image=name)).SerializeToString()


def encode_pull(
    name: str, credentials: PullCredentials | None = None, sandbox: SandboxConfig | None = None, /
) -> bytes:
    """An image that is to be fetched, for a pod."""
    auth = None
    if credentials is not None:
        auth = wire.AuthConfig(
            username=credentials.username,
            password=credentials.password,
            server_address=credentials.server,
            identity_token=credentials.identity_token,
            registry_token=credentials.registry_token,
        )
    request = wire.PullImageRequest(
        image=wire.ImageSpec(image=name),
        auth=auth,
        sandbox_config=None if sandbox is None else _sandbox(sandbox),
    )
    return request.SerializeToString()


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
    # Who sees the processes of all of the pod, or of the node, sees those of the other one.
    target_id = shares_pid_with if pid == wire.CONTAINER else ""
    return wire.NamespaceOption(
        network=wire.NODE if config.host_network else wire.POD,
        pid=wire.TARGET if target_id else pid,
        ipc=wire.NODE if config.host_ipc else wire.POD,
        target_id=target_id,
    )


def _number(value: int | None) -> wire.Int64Value | None:
    return None if value is None else wire.Int64Value(value=value)


def _profile(profile: SecurityProfile | None) -> wire.SecurityProfile | None:
    if profile is None:
        return None
    return wire.SecurityProfile(profile_type=_PROFILES[profile.type], localhost_ref=profile.localhost)


def _old_profile(profile: SecurityProfile | None) -> str:
    """Of AppArmor, for runtimes that know no other form of it."""
    if profile is None:
        return ""
    return _OLD_PROFILES.get(profile.type) or f"localhost/{profile.localhost}"


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


def _finite(where: str, seconds: float) -> float:
    """The wire has whole numbers alone."""
    if not math.isfinite(seconds):
        raise wrong(where, seconds, "a finite number of seconds")
    return seconds
