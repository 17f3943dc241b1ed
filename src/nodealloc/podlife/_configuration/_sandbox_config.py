"""A pod's sandbox: a pure function of the pod and its node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodealloc._typed import typed
from nodealloc.cgroups import NO_LIMIT, pod_limits
from nodealloc.podfacts import PodIdentity, Transport
from nodealloc.podlife._configuration._dns import hostname_of, pod_dns
from nodealloc.podlife._configuration._errors import SandboxConfigError
from nodealloc.podlife._configuration._security import pod_groups
from nodealloc.podspec import Container, Pod, ProfileType
from nodealloc.runtime import LinuxResources, PortMapping, SandboxConfig, SecurityProfile

if TYPE_CHECKING:
    from nodealloc.podlife._configuration._node import NodeSettings

__all__ = ["sandbox_config"]


@typed
def sandbox_config(
    pod: Pod,
    /,
    *,
    attempt: int,
    node: NodeSettings,
    cgroup_parent: str = "",
    handler: str = "",
    groups: tuple[int, ...] = (),
) -> SandboxConfig:
    """What a pod's sandbox is made from.

    Args:
        pod: Whose it is.
        attempt: How many sandboxes it had before.
        node: What all pods of the node get.
        cgroup_parent: The pod's cgroup as its driver names it; "" for the runtime's own choice.
        handler: Of the pod's runtime class, "" for the default one.
        groups: Further groups, of the pod's volumes.

    Raises:
        SandboxConfigError: The pod's host name is too long, or it asks for what no port here has.

    Source: kubelet ``kuberuntime_sandbox.go``.
    """
    if pod.host_users is False:
        raise SandboxConfigError(
            "hostUsers: false asks for a user name space, which is not supported; leave it out"
        )
    asked = pod.security_context
    return SandboxConfig(
        pod=PodIdentity.of(pod),
        attempt=attempt,
        hostname="" if pod.host_network else hostname_of(pod, node),
        log_directory=f"{node.logs_directory}/{pod.namespace}_{pod.name}_{pod.uid}",
        cgroup_parent=cgroup_parent,
        host_network=pod.host_network,
        host_pid=pod.host_pid,
        host_ipc=pod.host_ipc,
        shares_pid=pod.share_process_namespace,
        handler=handler,
        dns=pod_dns(pod, node).config,
        sysctls={one.name.replace("/", "."): one.value for one in asked.sysctls} if asked else {},
        privileged=any(_is_privileged(one) for one in (*pod.all_containers, *pod.ephemeral_containers)),
        labels=pod.labels,
        annotations=pod.annotations,
        ports=tuple(port for one in _serving(pod) for port in _ports(one)),
        user=asked.run_as_user if asked else None,
        group=asked.run_as_group if asked and asked.run_as_user is not None else None,
        groups=(*pod_groups(pod), *groups),
        seccomp=SecurityProfile(type=ProfileType.RUNTIME_DEFAULT),
        selinux=asked.se_linux_options if asked else None,
        resources=_resources(pod, node),
        overhead=_overhead(pod),
    )


def _is_privileged(container: Container) -> bool:
    return container.security_context is not None and bool(container.security_context.privileged)


def _serving(pod: Pod) -> tuple[Container, ...]:
    """Whose ports lead to the pod: its containers and sidecars."""
    return (*(one for one in pod.init_containers if one.restartable), *pod.containers)


def _ports(container: Container) -> tuple[PortMapping, ...]:
    return tuple(
        PortMapping(
            container_port=one.container_port,
            host_port=one.host_port,
            host_ip=one.host_ip,
            protocol=Transport(one.protocol),
        )
        for one in container.ports
    )


def _resources(pod: Pod, node: NodeSettings) -> LinuxResources:
    limits = pod_limits(pod, node.limits)
    return LinuxResources(
        cpu_shares=limits.cpu_shares,
        cpu_quota_us=None if limits.cpu_quota_us == NO_LIMIT else limits.cpu_quota_us,
        cpu_period_us=node.limits.period_us,
        memory_bytes=limits.memory_bytes,
    )


def _overhead(pod: Pod) -> LinuxResources:
    cpu, memory = pod.overhead.get("cpu"), pod.overhead.get("memory")
    return LinuxResources(
        cpu_shares=None if cpu is None else max(2, cpu.milli_value * 1024 // 1000),
        memory_bytes=None if memory is None else memory.value,
    )
