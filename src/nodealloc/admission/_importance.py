"""Which pods are more important than which."""

from __future__ import annotations

from typing import Final

from nodealloc._typed import typed
from nodealloc.podfacts import PodOnNode
from nodealloc.podspec import Pod, QosClass, qos_class

__all__ = ["comes_from_node", "eviction_order", "is_critical", "rank"]

_SOURCE: Final = "kubernetes.io/config.source"
_MIRROR: Final = "kubernetes.io/config.mirror"
_CRITICAL: Final = 2_000_000_000
"""The least priority that only pods of the system have."""
_QOS: Final = {QosClass.BEST_EFFORT: 0, QosClass.BURSTABLE: 1, QosClass.GUARANTEED: 2}


@typed
def comes_from_node(pod: Pod, /) -> bool:
    """Whether it comes from the node's own files, by its annotation."""
    return pod.annotations.get(_SOURCE, "api") != "api"


def is_critical(pod: Pod, /) -> bool:
    """Whether others make room for it: static, a mirror, or of a priority of the system.

    Source: kubelet ``types/pod_update.go``.
    """
    if pod.annotations and (comes_from_node(pod) or _MIRROR in pod.annotations):
        return True
    return pod.priority is not None and pod.priority >= _CRITICAL


def rank(pod: Pod, /) -> tuple[bool, int]:
    """The greater the more important; none gives way to an equal one. Source: ours."""
    return is_critical(pod), pod.priority or 0


def eviction_order(one: PodOnNode, /) -> tuple[bool, int, int, int, int, str]:
    """Who goes first: a total order by rank, QoS class, memory, CPU (larger first) and uid. Source: ours."""
    memory, cpu = (one.requests.get(name) for name in ("memory", "cpu"))
    return (
        *rank(one.pod),
        _QOS[qos_class(one.pod)],
        -memory.nanos if memory else 0,
        -cpu.nanos if cpu else 0,
        one.pod.uid,
    )
