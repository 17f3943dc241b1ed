"""Does the node take anybody in as it is: pressure, shutdown."""

from __future__ import annotations

from typing import Final

from nodealloc._typed import typed
from nodealloc.admission._verdicts import ADMITTED
from nodealloc.podfacts import NodeView, Pressure
from nodealloc.podspec import Pod, QosClass, is_critical, qos_class
from nodealloc.verdicts import Admitted, Refused

__all__ = ["pressure", "shutdown"]

_MEMORY_TAINT: Final = "node.kubernetes.io/memory-pressure"


@typed
def pressure(pod: Pod, view: NodeView, /) -> Admitted | Refused:
    """Whether a node that runs short takes this pod: critical ones always, others short of memory alone.

    Short of memory, a pod that requests or limits something may come in, and
    one that does not if it tolerates that.

    Source: kubelet ``eviction/eviction_manager.go``.
    """
    if not view.pressure or is_critical(pod):
        return ADMITTED
    if view.pressure == frozenset({Pressure.MEMORY}) and (
        qos_class(pod) is not QosClass.BEST_EFFORT or _tolerates_memory_pressure(pod)
    ):
        return ADMITTED
    names = " ".join(sorted(one.value for one in view.pressure))
    return Refused(
        reason="Evicted", message=f"The node had condition: [{names}]. ", figures={"conditions": names}
    )


def _tolerates_memory_pressure(pod: Pod) -> bool:
    return any(
        one.effect in {"", "NoSchedule"}
        and one.key in {"", _MEMORY_TAINT}
        and (one.operator == "Exists" or not one.value)
        for one in pod.tolerations
    )


@typed
def shutdown(pod: Pod, view: NodeView, /) -> Admitted | Refused:
    """Nobody comes in while the machine goes down. Source: kubelet ``nodeshutdown``."""
    del pod
    if not view.shutting_down:
        return ADMITTED
    return Refused(reason="NodeShutdown", message="Pod was rejected as the node is shutting down.")
