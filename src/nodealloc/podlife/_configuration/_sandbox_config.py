"""A pod's sandbox: a pure function of the pod and its node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from nodealloc._typed import typed
from nodealloc.cgroups import NO_LIMIT, container_limits
from nodealloc.podfacts import PodIdentity, Transport
from nodealloc.podlife._configuration._dns import hostname_of, pod_dns
from nodealloc.podlife._configuration._errors import SandboxConfigError
from nodealloc.podlife._configuration._security import pod_groups
from nodealloc.podlife._definitions import SANDBOX_ANNOTATION, sandbox_hash
from nodealloc.podspec import Container, Pod, ProfileType, effective_limits, effective_requests, is_static
from nodealloc.runtime import LinuxResources, PortMapping, SandboxConfig, SecurityProfile

if TYPE_CHECKING:
    from nodealloc.podlife._configuration._node import NodeSettings
    from nodealloc.podspec import PodSecurityContext, Resources

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
    host_ips: tuple[str, ...] = (),
) -> SandboxConfig:
    """What a pod's sandbox is made from.

    Args:
        pod: Whose it is.
        attempt: How many sandboxes it had before.
        node: What all pods of the node get.
        cgroup_parent: The pod's cgroup as its driver names it; "" for the runtime's own choice.
        handler: Of the pod's runtime class, "" for the default one.
        groups: Further groups, of the pod's volumes.
        host_ips: The node's addresses, which say how a pod asks itself for names.

    Raises:
        SandboxConfigError: The pod's host name is too long, it asks for what no port here has, or
            for a runtime class whose handler nobody gave.

    Source: kubelet ``kuberuntime_sandbox.go``.
    """
    _check_users(pod, node)
    if pod.runtime_class_name and not handler:
        raise SandboxConfigError(
            f"runtimeClassName {pod.runtime_class_name!r}: nothing here says its handler; have a preparation "
            "give PodRunOptions(handler=...), or leave it out"
        )
    asked = pod.security_context
    if asked is not None and asked.supplemental_groups_policy == "Strict" and not node.as_kubelet:
        raise SandboxConfigError(
            "supplementalGroupsPolicy: Strict asks for no groups of the image, which no port here can do; "
            "write Merge, or leave it out"
        )
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
        dns=pod_dns(pod, node, host_ips=host_ips).config,
        sysctls={one.dotted: one.value for one in asked.sysctls} if asked else {},
        privileged=any(_is_privileged(one) for one in (*pod.all_containers, *pod.ephemeral_containers)),
        labels=pod.labels,
        annotations={**pod.annotations, SANDBOX_ANNOTATION: sandbox_hash(pod)},
        ports=tuple(port for one in _serving(pod, node) for port in _ports(one)),
        user=asked.run_as_user if asked else None,
        group=_group(asked, node),
        groups=(*pod_groups(pod), *groups),
        seccomp=SecurityProfile(type=ProfileType.RUNTIME_DEFAULT),
        selinux=asked.se_linux_options if asked else None,
        resources=_resources(pod, node),
        overhead=_overhead(pod, node),
    )


def _group(asked: PodSecurityContext | None, node: NodeSettings) -> int | None:
    """A runtime refuses a sandbox with a group and no user; a kubelet asks for one all the same."""
    if asked is None or (asked.run_as_user is None and not node.as_kubelet):
        return None
    return asked.run_as_group


def _check_users(pod: Pod, node: NodeSettings) -> None:
    """A kubelet refuses the field alone; from pods of its own, an API server of that version takes it out."""
    if node.as_kubelet and pod.host_users is not None and (not pod.host_users or is_static(pod)):
        raise SandboxConfigError(
            'the feature gate "UserNamespacesSupport" is disabled: can\'t set spec.HostUsers'
        )
    if pod.host_users is False:
        raise SandboxConfigError(
            "hostUsers: false asks for a user name space, which is not supported; leave it out"
        )


def _is_privileged(container: Container) -> bool:
    return container.security_context is not None and bool(container.security_context.privileged)


def _serving(pod: Pod, node: NodeSettings) -> tuple[Container, ...]:
    """Whose ports lead to the pod: its containers and, but for a kubelet, its sidecars."""
    if node.as_kubelet:
        return pod.containers
    return (*(one for one in pod.init_containers if one.restartable), *pod.containers)


def _ports(container: Container) -> tuple[PortMapping, ...]:
    """Each of them; one that stands there twice without a name is one."""
    return tuple(
        PortMapping(
            container_port=one.container_port,
            host_port=one.host_port,
            host_ip=one.host_ip,
            protocol=Transport(one.protocol),
        )
        for one in dict.fromkeys(container.ports)
    )


def _resources(pod: Pod, node: NodeSettings) -> LinuxResources:
    """Of its containers together; a limit is the sum of those that there are, also where others have none."""
    own = attrs.evolve(pod, overhead={}) if pod.overhead else pod
    return _amounts(effective_requests(own), effective_limits(own), node)


def _overhead(pod: Pod, node: NodeSettings) -> LinuxResources:
    return _amounts(pod.overhead, pod.overhead, node) if pod.overhead else LinuxResources()


def _amounts(requests: Resources, limits: Resources, node: NodeSettings) -> LinuxResources:
    """As of one container that asks for these."""
    options, memory = node.limits, limits.get("memory")
    found = container_limits(Container(name="pod", requests=requests, limits=limits), options)
    ends_all = options.unified and not options.single_oom_kill
    return LinuxResources(
        cpu_shares=found.cpu_shares,
        cpu_quota_us=None if found.cpu_quota_us == NO_LIMIT else found.cpu_quota_us,
        cpu_period_us=options.period_us if options.cpu_quota else None,
        memory_bytes=(memory.value or None) if memory else None,
        unified={"memory.oom.group": "1"} if ends_all else {},
    )
