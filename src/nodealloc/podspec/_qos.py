"""QoS class of a pod: who is squeezed first when the node runs short."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nodealloc.podspec._model import Container

__all__ = ["QosClass", "qos_of"]

_COUNTED = ("cpu", "memory")


class QosClass(enum.Enum):
    """The three classes, by their Kubernetes names."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


# Members of an enumeration are slow to look up before Python 3.12.
_GUARANTEED, _BURSTABLE, _BEST_EFFORT = QosClass


def qos_of(containers: Sequence[Container], /) -> QosClass:
    """What `qos_class` tells of a pod with these containers; worked out when it is made, as many ask."""
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
