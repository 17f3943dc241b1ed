"""Where a pod comes from, and whether the system needs it; by its annotations and its priority."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nodealloc._typed import typed_on_error

if TYPE_CHECKING:
    from nodealloc.podspec._pod import Pod

__all__ = ["API", "MIRROR", "SOURCE", "comes_from_node", "is_critical", "is_mirror", "is_static"]

API: Final = "api"
"""The source whose pods are not static."""
SOURCE: Final = "kubernetes.io/config.source"
MIRROR: Final = "kubernetes.io/config.mirror"

_CRITICAL: Final = 2_000_000_000
"""The least priority that only pods of the system have."""


@typed_on_error
def is_mirror(pod: Pod, /) -> bool:
    """Whether it only stands in the API for a static pod; it is never run."""
    return MIRROR in pod.annotations


def comes_from_node(pod: Pod, /) -> bool:
    """Whether its source is not the API, by its annotation; a mirror may carry its pod's.

    Source: kubelet ``types/pod_update.go``.
    """
    return pod.annotations.get(SOURCE, API) != API


@typed_on_error
def is_static(pod: Pod, /) -> bool:
    """Whether it comes from a source of this node's own, which alone can delete it; no mirror does."""
    return comes_from_node(pod) and bool(pod.annotations[SOURCE]) and not is_mirror(pod)


@typed_on_error
def is_critical(pod: Pod, /) -> bool:
    """Whether others make room for it: static, a mirror, or of a priority of the system.

    Source: kubelet ``types/pod_update.go``.
    """
    annotations = pod.annotations
    if annotations and (annotations.get(SOURCE, API) != API or MIRROR in annotations):
        return True
    return pod.priority is not None and pod.priority >= _CRITICAL
