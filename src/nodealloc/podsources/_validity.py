"""What an API server checks across the fields of a pod, which nobody else does for a manifest."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from nodealloc.errors import Fault

if TYPE_CHECKING:
    from nodealloc.podspec import Container, Pod

__all__ = ["faults_of"]

_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", re.ASCII)
_SYSCTL: Final = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?", re.ASCII)
_HOST_PATHS: Final = frozenset(
    {
        "",
        "DirectoryOrCreate",
        "Directory",
        "FileOrCreate",
        "File",
        "Socket",
        "CharDevice",
        "BlockDevice",
    }
)


def faults_of(pod: Pod, /) -> tuple[Fault, ...]:
    """Why a pod cannot be static, each with its path; none where it can.

    Source: Kubernetes ``pkg/apis/core/validation``; a kubelet asks the same of its manifests.
    """
    return (
        *_of_pod(pod),
        *_of_volumes(pod),
        *(fault for one in _named(pod) for fault in _of_container(*one)),
    )


def _named(pod: Pod) -> Iterator[tuple[str, Container, bool, bool]]:
    for index, one in enumerate(pod.init_containers):
        yield f"$.spec.initContainers[{index}]", one, not one.restartable, pod.host_network
    for index, one in enumerate(pod.containers):
        yield f"$.spec.containers[{index}]", one, False, pod.host_network


def _of_pod(pod: Pod) -> Iterator[Fault]:
    if pod.resource_claims:
        yield Fault("$.spec.resourceClaims", "claims are an API server's; a static pod has none")
    if pod.ephemeral_containers:
        what = "they are added to a pod that runs, by an API server; leave them out"
        yield Fault("$.spec.ephemeralContainers", what)
    for key, value in pod.labels.items():
        if not _LABEL_VALUE.fullmatch(value):
            yield Fault(f"$.metadata.labels.{key}", f"{value!r} is no label; write 63 letters, digits, -_.")
    for index, one in enumerate(pod.security_context.sysctls if pod.security_context else ()):
        if not _SYSCTL.fullmatch(one.name):
            yield Fault(f"$.spec.securityContext.sysctls[{index}].name", f"{one.name!r} is no kernel setting")
    ports = Counter(
        (port.host_ip, port.host_port, port.protocol)
        for container in pod.containers
        for port in container.ports
        if port.host_port
    )
    for (_, number, protocol), count in ports.items():
        if count > 1:
            yield Fault("$.spec.containers", f"host port {number}/{protocol} is wanted {count} times")


def _of_volumes(pod: Pod) -> Iterator[Fault]:
    for index, one in enumerate(pod.volumes):
        if one.kind != "hostPath":
            continue
        path, kind = str(one.spec.get("path", "")), str(one.spec.get("type") or "")
        where = f"$.spec.volumes[{index}].hostPath"
        if ".." in path.split("/"):
            yield Fault(f"{where}.path", f"{path} leads upwards; write it without ..")
        if kind not in _HOST_PATHS:
            yield Fault(f"{where}.type", f"{kind!r} is none; {', '.join(sorted(_HOST_PATHS - {''}))} are")


def _of_container(where: str, one: Container, runs_once: bool, host_network: bool) -> Iterator[Fault]:
    if not one.image.strip():
        yield Fault(f"{where}.image", "an image is needed; name it")
    paths = Counter(use.path for use in one.volumes if not use.block)
    for path, count in paths.items():
        if count > 1:
            yield Fault(f"{where}.volumeMounts", f"{path} is mounted on {count} times")
    probes = {
        "livenessProbe": one.liveness_probe,
        "readinessProbe": one.readiness_probe,
        "startupProbe": one.startup_probe,
    }
    for name, probe in probes.items():
        if probe is not None and runs_once:
            yield Fault(
                f"{where}.{name}", "nobody probes what runs once; only restartPolicy Always has probes"
            )
        if probe is not None and probe.exec is not None and not probe.exec.command:
            yield Fault(f"{where}.{name}.exec.command", "a command is needed; write it")
    if runs_once and one.lifecycle is not None:
        yield Fault(f"{where}.lifecycle", "what runs once has no hooks; only restartPolicy Always has")
    for index, port in enumerate(one.ports):
        if host_network and port.host_port not in {0, port.container_port}:
            what = f"{port.host_port} is not {port.container_port}, which it is on the node's own network"
            yield Fault(f"{where}.ports[{index}].hostPort", what)
