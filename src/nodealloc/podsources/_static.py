"""Which pods come from a source of this node's own, and which stand for them in the API."""

from __future__ import annotations

from typing import Final

import attrs

from nodealloc.errors import ConfigurationError
from nodealloc.podspec import Pod, is_mirror, is_static
from nodealloc.podspec._origin import MIRROR, SOURCE

__all__ = ["HASH", "LOCAL", "SEEN", "is_mirror_of", "mirror_of"]

SEEN: Final = "kubernetes.io/config.seen"
HASH: Final = "kubernetes.io/config.hash"
LOCAL: Final = (SOURCE, SEEN, MIRROR)
"""Annotations that the node writes; what a source says of them changes nothing."""


def mirror_of(pod: Pod, /) -> Pod:
    """What is to stand in the API for a static pod; without uid, which the API gives.

    Raises:
        ConfigurationError: The pod is not static.
    """
    if not is_static(pod):
        raise ConfigurationError(f"{pod.full_name} is not static; only static pods have a mirror")
    return attrs.evolve(pod, uid="", annotations={**pod.annotations, MIRROR: _hash(pod)})


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
