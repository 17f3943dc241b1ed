"""Which pods come from a source of this node's own, and which stand for them in the API."""

from __future__ import annotations

from typing import Final

import attrs

from nodealloc._typed import typed
from nodealloc.errors import ConfigurationError
from nodealloc.podspec import Pod, Toleration, is_mirror, is_static
from nodealloc.podspec._origin import MIRROR, SOURCE

__all__ = ["HASH", "LOCAL", "SEEN", "is_mirror_of", "mirror_of"]

SEEN: Final = "kubernetes.io/config.seen"
HASH: Final = "kubernetes.io/config.hash"
LOCAL: Final = (SOURCE, SEEN, MIRROR)
"""Annotations that the node writes; what a source says of them changes nothing."""
_ALL: Final = Toleration(operator="Exists", effect="NoExecute")


@typed
def mirror_of(pod: Pod, /, *, node_uid: str = "") -> Pod:
    """What is to stand in the API for a static pod; without uid, which the API gives.

    It tolerates every taint that ends pods, as its pod runs on whatever the taints.

    Args:
        pod: As a source tells it.
        node_uid: Of the node's object in the API, which owns the mirror then: an API server with
            the admission plugin `NodeRestriction` refuses one without. "" leaves owners as they are.

    Raises:
        ConfigurationError: The pod is not static, or names no node that could own its mirror.

    Source: kubelet ``config/common.go`` and ``pod/mirror_client.go``.
    """
    if not is_static(pod):
        raise ConfigurationError(f"{pod.full_name} is not static; only static pods have a mirror")
    carried = pod.carried
    if node_uid:
        if not pod.node_name:
            raise ConfigurationError(f"{pod.full_name} is of no node; give its source a node_name")
        owner = {"apiVersion": "v1", "kind": "Node", "name": pod.node_name, "uid": node_uid}
        carried = {**carried, "metadata.ownerReferences": [{**owner, "controller": True}]}
    tolerations = pod.tolerations if _ALL in pod.tolerations else (*pod.tolerations, _ALL)
    annotations = {**pod.annotations, MIRROR: _hash(pod)}
    return attrs.evolve(pod, uid="", annotations=annotations, carried=carried, tolerations=tolerations)


@typed
def is_mirror_of(mirror: Pod, pod: Pod, /) -> bool:
    """Whether a pod of the API stands for this static pod, as it is now.

    A mirror of an earlier edition or of a predecessor is none of this one.
    """
    return (
        is_mirror(mirror)
        and is_static(pod)
        and mirror.full_name == pod.full_name
        and mirror.annotations[MIRROR] == _hash(pod)
    )


def _hash(pod: Pod) -> str:
    return pod.annotations.get(HASH) or pod.uid
