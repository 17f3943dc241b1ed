"""Which pods are more important than which."""

from __future__ import annotations

from typing import Final

from nodealloc.podfacts import PodOnNode
from nodealloc.podspec import Pod, QosClass, is_critical, qos_class

__all__ = ["eviction_order", "rank"]

_QOS: Final = {QosClass.BEST_EFFORT: 0, QosClass.BURSTABLE: 1, QosClass.GUARANTEED: 2}


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
