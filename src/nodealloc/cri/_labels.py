"""The words by which a kubelet finds its pods in a runtime again; ours are the same."""

from __future__ import annotations

from collections.abc import Mapping

from nodealloc.podfacts import PodIdentity
from nodealloc.runtime import ContainerConfig, SandboxConfig

__all__ = [
    "ATTEMPT",
    "CONTAINER",
    "DEFINITION",
    "UID",
    "container_annotations",
    "container_labels",
    "pod_of",
    "sandbox_labels",
]

NAME = "io.kubernetes.pod.name"
NAMESPACE = "io.kubernetes.pod.namespace"
UID = "io.kubernetes.pod.uid"
CONTAINER = "io.kubernetes.container.name"
DEFINITION = "io.kubernetes.container.hash"
ATTEMPT = "io.kubernetes.container.restartCount"
GRACE = "io.kubernetes.pod.terminationGracePeriod"


def sandbox_labels(config: SandboxConfig, /) -> Mapping[str, str]:
    """The pod's labels, and who it is."""
    return {**config.labels, **_pod_labels(config.pod)}


def container_labels(pod: PodIdentity, config: ContainerConfig, /) -> Mapping[str, str]:
    """Which container of which pod."""
    return {**config.labels, **_pod_labels(pod), CONTAINER: config.name}


def container_annotations(config: ContainerConfig, /) -> Mapping[str, str]:
    """What it was made from, which attempt it is, and the pod's grace."""
    words = {**config.annotations, ATTEMPT: str(config.attempt)}
    if config.definition:
        words[DEFINITION] = config.definition
    if config.grace_s is not None:
        words[GRACE] = str(config.grace_s)
    return words


def pod_of(labels: Mapping[str, str], /) -> PodIdentity | None:
    """Whose it is; None for something that belongs to no pod.

    Raises:
        ValueError: It says that it does, and not to which.
    """
    if UID not in labels:
        return None
    return PodIdentity(uid=labels[UID], namespace=labels.get(NAMESPACE, ""), name=labels.get(NAME, ""))


def _pod_labels(pod: PodIdentity) -> Mapping[str, str]:
    return {NAME: pod.name, NAMESPACE: pod.namespace, UID: pod.uid}
