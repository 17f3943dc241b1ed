"""QoS class of a pod: who is squeezed first when the node runs short."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from nodealloc._typed import typed_on_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nodealloc.podspec._model import Container
    from nodealloc.podspec._pod import Pod

__all__ = ["QosClass", "qos_class", "qos_of"]

_COUNTED = ("cpu", "memory")


class QosClass(enum.Enum):
    """The three classes, by their Kubernetes names."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


# Members of an enumeration are slow to look up before Python 3.12.
_GUARANTEED, _BURSTABLE, _BEST_EFFORT = QosClass


@typed_on_error
def qos_class(pod: Pod, /) -> QosClass:
    """Class of a pod, from the CPU and memory of all its containers.

    Guaranteed: every container limits both, and what the pod requests is what
    it is limited to. Best-effort: nobody asks for anything. Burstable: the
    rest. Amounts of 0 do not count; nor do huge pages and devices.

    Source: Kubernetes ``pkg/apis/core/v1/helper/qos``.
    """
    return pod.qos


def qos_of(containers: Sequence[Container], /) -> QosClass:
    """What `qos_class` tells: worked out when a pod is made, as many ask for it."""
    for name in _COUNTED:
        beyond = 0  # what is requested less the limits, in billionths
        for container in containers:
            limit, asked = container.limits.get(name), container.requests.get(name)
            if limit is None or limit.nanos <= 0:
                return _BURSTABLE if any(map(_asks, containers)) else _BEST_EFFORT
            if asked is not limit:
                beyond += (0 if asked is None else max(asked.nanos, 0)) - limit.nanos
        if beyond:
            return _BURSTABLE
    return _GUARANTEED if containers else _BEST_EFFORT


def _asks(container: Container) -> bool:
    """Whether a container requests, or is limited to, some of what counts."""
    for amounts in (container.limits, container.requests):
        for name in _COUNTED:
            amount = amounts.get(name)
            if amount is not None and amount.nanos > 0:
                return True
    return False
