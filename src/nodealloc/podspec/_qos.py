"""QoS class of a pod: who is squeezed first when the node runs short."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nodealloc.podspec._model import Pod, Resources

__all__ = ["QosClass", "qos_class"]

_COUNTED = ("cpu", "memory")


class QosClass(enum.Enum):
    """The three classes, by their Kubernetes names."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


def qos_class(pod: Pod, /) -> QosClass:
    """Class of a pod, from the CPU and memory of all its containers.

    Guaranteed: every container limits both, and what the pod requests is what
    it is limited to. Best-effort: nobody asks for anything. Burstable: the
    rest. Amounts of 0 do not count; nor do huge pages and devices.

    Source: Kubernetes ``pkg/apis/core/v1/helper/qos``.
    """
    containers = pod.all_containers
    requests = _totals(container.requests for container in containers)
    limits = _totals(container.limits for container in containers)
    if not requests and not limits:
        return QosClass.BEST_EFFORT
    limited = all(len(_totals([container.limits])) == len(_COUNTED) for container in containers)
    return QosClass.GUARANTEED if limited and requests == limits else QosClass.BURSTABLE


def _totals(amounts: Iterable[Resources]) -> dict[str, int]:
    """Sum of positive amounts by resource, in billionths."""
    totals: dict[str, int] = {}
    for resources in amounts:
        for name in _COUNTED:
            nanos = resources[name].nanos if name in resources else 0
            if nanos > 0:
                totals[name] = totals.get(name, 0) + nanos
    return totals
