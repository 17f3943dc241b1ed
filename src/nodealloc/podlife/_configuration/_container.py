"""One container's configuration: a pure function of the pod, its place, and what it was given."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from nodealloc._typed import typed
from nodealloc.cgroups import NO_LIMIT, container_files, container_limits, hugepage_name, oom_score_adj
from nodealloc.podlife._configuration._environment import variables_of
from nodealloc.podlife._configuration._errors import ContainerConfigError
from nodealloc.podlife._configuration._messages import PATH_ANNOTATION, POLICY_ANNOTATION
from nodealloc.podlife._configuration._node import ContainerRunOptions, PodAddresses
from nodealloc.podlife._configuration._security import security_of
from nodealloc.podlife._definitions import MOUNTS_ANNOTATION, RESOURCES_ANNOTATION, Definitions
from nodealloc.podspec import HASH_ANNOTATION
from nodealloc.podspec._expansion import expand, unresolved
from nodealloc.runtime import (
    ContainerConfig,
    HostDevice,
    HostMount,
    LinuxResources,
    Propagation,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nodealloc.podlife._configuration._node import EnvironmentSource, ImageFacts, NodeSettings
    from nodealloc.podspec import Container, Json, LifecycleHandler, Pod, VolumeUse

__all__ = ["container_config", "linux_resources", "message_path", "sub_paths_of"]

_HOSTS: Final = "/etc/hosts"
_PRE_STOP: Final = "io.kubernetes.container.preStopHandler"
_PORTS: Final = "io.kubernetes.container.ports"
_DELETION_GRACE: Final = "io.kubernetes.pod.deletionGracePeriod"
_READ_ONLY_KINDS: Final = frozenset({"configMap", "downwardAPI", "image", "projected", "secret"})
_PROPAGATIONS: Final = {
    "None": Propagation.PRIVATE,
    "HostToContainer": Propagation.HOST_TO_CONTAINER,
    "Bidirectional": Propagation.BIDIRECTIONAL,
}
_NOTHING: Final = ContainerRunOptions()
_NOWHERE: Final = PodAddresses()


@typed
def container_config(
    pod: Pod,
    container: Container,
    /,
    *,
    attempt: int,
    image: ImageFacts,
    node: NodeSettings,
    addresses: PodAddresses = _NOWHERE,
    options: ContainerRunOptions = _NOTHING,
    source: EnvironmentSource | None = None,
    groups: tuple[int, ...] = (),
    target_id: str = "",
) -> ContainerConfig:
    """What a container of a pod is made from.

    Args:
        pod: Whose it is.
        container: Which; of any kind.
        attempt: How many instances of it there were before.
        image: What it runs, present on the node.
        node: What all pods of the node get.
        addresses: As its variables tell them.
        options: What it was given.
        source: Config maps and secrets; None where the node has none to ask for.
        groups: Further groups, of the pod's volumes.
        target_id: For an ephemeral container: the id of the container whose processes it sees.

    Raises:
        ContainerConfigError: Something that it needs is missing or contradicts itself.

    Source: kubelet ``kuberuntime_container.go`` and ``kubelet_pods.go``.
    """
    made = Definitions.of(pod)
    own = {**options.env, **variables_of(pod, container, node=node, addresses=addresses, source=source)}
    name = container.name
    return ContainerConfig(
        name=name,
        attempt=attempt,
        image=image.id,
        image_name=container.image,
        command=tuple(expand(one, own) for one in container.entrypoint),
        args=tuple(expand(one, own) for one in container.args),
        working_dir=container.working_dir,
        env=own,
        mounts=_with_files(_mounts(pod, container, options, own, node), pod, container, attempt, node),
        devices=(*options.devices, *_block_devices(pod, container, options)),
        cdi_devices=options.cdi_devices,
        resources=linux_resources(pod, container, node, options),
        security=security_of(pod, container, image, node, groups),
        log_path=f"{name}/{attempt}.log",
        definition=made.kubelet.get(name, ""),
        grace_s=pod.termination_grace_period_seconds,
        annotations={**options.annotations, **_annotations(pod, container, made)},
        tty=container.tty,
        stdin=container.stdin,
        stdin_once=container.stdin_once,
        shares_pid_with=target_id,
    )


@typed
def linux_resources(
    pod: Pod, container: Container, node: NodeSettings, options: ContainerRunOptions = _NOTHING, /
) -> LinuxResources:
    """Limits of a container as its runtime is told them.

    Under cgroup v1 swap is as large as memory, which leaves none.

    Source: kubelet ``kuberuntime_container_linux.go``.
    """
    limits = container_limits(container, node.limits)
    memory = container.limits.get("memory")
    memory_bytes = (memory.value or None) if memory else None
    score = oom_score_adj(pod, container, memory_capacity_bytes=node.memory_capacity_bytes)
    return LinuxResources(
        cpu_shares=limits.cpu_shares,
        cpu_quota_us=None if limits.cpu_quota_us == NO_LIMIT else limits.cpu_quota_us,
        cpu_period_us=node.limits.period_us if node.limits.cpu_quota else None,
        memory_bytes=memory_bytes,
        swap_bytes=None if node.limits.unified else memory_bytes,
        oom_score_adj=score,
        cpus=options.cpus,
        mems=options.mems,
        hugepages_bytes={hugepage_name(size): amount for size, amount in limits.hugepage_bytes.items()},
        unified=container_files(
            pod, container, node.limits, memory_capacity_bytes=node.memory_capacity_bytes
        ),
    )


def message_path(uid: str, container: str, attempt: int, node: NodeSettings, /) -> str:
    """The file on the node that the termination message of an instance is read from."""
    return f"{node.pods_directory}/{uid}/containers/{container}/{attempt}"


@typed
def sub_paths_of(container: Container, variables: Mapping[str, str], /) -> tuple[tuple[int, str, str], ...]:
    """Number of the mount, volume and path in it of every part of a volume that a container mounts.

    Raises:
        ContainerConfigError: A path leads out of its volume, or names a variable that is empty or not there.
    """
    used = [(one, _sub_path(container, one, variables)) for one in container.volumes if not one.block]
    return tuple((number, one.name, path) for number, (one, path) in enumerate(used) if path)


def _sub_path(container: Container, use: VolumeUse, variables: Mapping[str, str]) -> str:
    if missing := unresolved(use.sub_path_expr, variables):
        raise ContainerConfigError(container.name, f"missing value for {', '.join(missing)}")
    path = expand(use.sub_path_expr, variables) if use.sub_path_expr else use.sub_path
    if path.startswith("/"):
        raise ContainerConfigError(container.name, f"error SubPath `{path}` must not be an absolute path")
    if ".." in path.split("/"):
        raise ContainerConfigError(
            container.name, f"unable to provision SubPath `{path}`: must not contain '..'"
        )
    return path


def _mounts(
    pod: Pod,
    container: Container,
    options: ContainerRunOptions,
    variables: Mapping[str, str],
    node: NodeSettings,
) -> tuple[HostMount, ...]:
    """What it was given, then its volumes."""
    kinds = {one.name for one in pod.volumes if one.kind in _READ_ONLY_KINDS}
    read_only = _read_only(pod, options) | kinds
    mounts = list(options.mounts)
    for use in container.volumes:
        if use.block:
            continue
        if use.recursive_read_only == "Enabled":
            raise ContainerConfigError(container.name, _too_read_only(use.name, node))
        mounts.append(
            HostMount(
                host_path=_place(container, use, options, variables),
                container_path=_absolute(use.path),
                read_only=use.read_only or use.name in read_only,
                propagation=_PROPAGATIONS.get(use.propagation, Propagation.PRIVATE),
            )
        )
    return tuple(mounts)


def _too_read_only(volume: str, node: NodeSettings) -> str:
    if node.as_kubelet:
        asked = f'volume "{volume}" requested recursive read-only mode'
        return f"failed to resolve recursive read-only mode: {asked}, but it is not supported by the runtime"
    return (
        f"recursiveReadOnly of volume {volume} is Enabled, and nothing here makes mounts "
        "below it read-only; say IfPossible or leave it out"
    )


def _read_only(pod: Pod, options: ContainerRunOptions) -> frozenset[str]:
    """Names of volumes that nobody in the pod may write to, whatever a container says of its use."""
    said = (one.name for one in pod.volumes if one.spec.get("readOnly") is True)
    return options.read_only_volumes.union(said)


def _with_files(
    mounts: tuple[HostMount, ...], pod: Pod, container: Container, attempt: int, node: NodeSettings
) -> tuple[HostMount, ...]:
    """The pod's hosts file, unless something else is mounted there; always that for termination messages."""
    if not node.pods_directory:
        return mounts
    files: list[HostMount] = []
    if all(one.container_path != _HOSTS for one in mounts):
        hosts = f"{node.pods_directory}/{pod.uid}/etc-hosts"
        files.append(HostMount(host_path=hosts, container_path=_HOSTS))
    if container.termination_message_path:
        words = message_path(pod.uid, container.name, attempt, node)
        path = _absolute(container.termination_message_path)
        files.append(HostMount(host_path=words, container_path=path))
    return (*mounts, *files)


def _place(
    container: Container, use: VolumeUse, options: ContainerRunOptions, variables: Mapping[str, str]
) -> str:
    path = _sub_path(container, use, variables)
    found = options.sub_paths.get((use.name, path)) if path else options.volumes.get(use.name)
    if found is None:
        part = f"path {path} of volume" if path else "volume"
        raise ContainerConfigError(
            container.name, f"mount {use.path}: {part} {use.name} is not mounted on the node yet"
        )
    return found


def _absolute(path: str) -> str:
    return path if path.startswith("/") else f"/{path}"


def _block_devices(pod: Pod, container: Container, options: ContainerRunOptions) -> Sequence[HostDevice]:
    read_only = _read_only(pod, options)
    found: list[HostDevice] = []
    for use in container.volumes:
        if not use.block:
            continue
        if not use.path.startswith("/"):
            message = f"error DevicePath `{use.path}` must be an absolute path"
            raise ContainerConfigError(container.name, message)
        if use.name not in options.volumes:
            raise ContainerConfigError(
                container.name, f"device {use.path}: volume {use.name} is not mapped on the node yet"
            )
        found.append(
            HostDevice(
                host_path=options.volumes[use.name],
                container_path=use.path,
                permissions="r" if use.read_only or use.name in read_only else "mrw",
            )
        )
    return found


def _annotations(pod: Pod, container: Container, made: Definitions) -> dict[str, str]:
    """What a kubelet, or this library after a restart, finds beside the container."""
    name = container.name
    words = {
        PATH_ANNOTATION: container.termination_message_path,
        POLICY_ANNOTATION: container.termination_message_policy.value,
        HASH_ANNOTATION: made.ours.get(name, ""),
        RESOURCES_ANNOTATION: made.resources.get(name, ""),
        MOUNTS_ANNOTATION: made.mounts.get(name, ""),
    }
    if pod.deletion_grace_period_seconds is not None:
        words[_DELETION_GRACE] = str(pod.deletion_grace_period_seconds)
    hook = container.lifecycle.pre_stop if container.lifecycle else None
    if hook is not None:
        words[_PRE_STOP] = _go_json(_handler(hook))
    if container.ports:
        words[_PORTS] = _go_json([_port(container, index) for index in range(len(container.ports))])
    return words


def _port(container: Container, index: int) -> dict[str, Json]:
    one = container.ports[index]
    fields: dict[str, Json] = {
        "name": one.name,
        "hostPort": one.host_port,
        "containerPort": one.container_port,
        "protocol": one.protocol,
        "hostIP": one.host_ip,
    }
    return {key: value for key, value in fields.items() if value}


def _handler(hook: LifecycleHandler) -> dict[str, Json]:
    if hook.exec is not None:
        return {"exec": {"command": [*hook.exec.command]}}
    if hook.http_get is not None:
        get = hook.http_get
        fields: dict[str, Json] = {"path": get.path, "port": get.port, "host": get.host, "scheme": get.scheme}
        if get.http_headers:
            fields["httpHeaders"] = [{"name": one.name, "value": one.value} for one in get.http_headers]
        return {"httpGet": {key: value for key, value in fields.items() if value}}
    if hook.sleep is not None:
        return {"sleep": {"seconds": hook.sleep.seconds}}
    if hook.tcp_socket is not None:
        of, host = hook.tcp_socket, hook.tcp_socket.host
        return {"tcpSocket": {"port": of.port, "host": host} if host else {"port": of.port}}
    return {}


def _go_json(value: Json) -> str:
    """JSON as Go writes it, so that a kubelet that compares texts finds the same."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for one in "<>&\u2028\u2029":
        text = text.replace(one, f"\\u{ord(one):04x}")
    return text
