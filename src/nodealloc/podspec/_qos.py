"""QoS class of a pod: who is squeezed first when the node runs short."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nodealloc.podspec._model import Pod

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
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    limited = True
    for container in pod.all_containers:
        for name in _COUNTED:
            asked, limit = container.requests.get(name), container.limits.get(name)
            if asked is not None and asked.nanos > 0:
                requests[name] = requests.get(name, 0) + asked.nanos
            if limit is not None and limit.nanos > 0:
                limits[name] = limits.get(name, 0) + limit.nanos
            else:
                limited = False
    if not requests and not limits:
        return QosClass.BEST_EFFORT
    return QosClass.GUARANTEED if limited and requests == limits else QosClass.BURSTABLE
