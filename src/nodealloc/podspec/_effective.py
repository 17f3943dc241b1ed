"""Pod-level arithmetic: what a pod holds at its peak, and its class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodealloc._peak import peak
from nodealloc._typed import typed_on_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from nodealloc.podspec._model import Container, Resources
    from nodealloc.podspec._pod import Pod
    from nodealloc.podspec._qos import QosClass

__all__ = ["effective_limits", "effective_requests", "qos_class"]


@typed_on_error
def qos_class(pod: Pod, /) -> QosClass:
    """Class of a pod, from the CPU and memory of all its containers.

    Guaranteed: every container limits both, and what the pod requests is what
    it is limited to. Best-effort: nobody asks for anything. Burstable: the
    rest. Amounts of 0 do not count; nor do huge pages and devices.

    Source: Kubernetes ``pkg/apis/core/v1/helper/qos``.
    """
    return pod.qos


@typed_on_error
def effective_requests(pod: Pod, /) -> Resources:
    """What a scheduler reserves for the pod, resource by resource.

    The larger of what each init container needs beside the sidecars started
    before it, and what all containers need beside all sidecars; the pod's
    overhead on top.

    Source: KEP-753, "Resources calculation for scheduling and pod admission".
    """
    most = _peak(pod, lambda container: container.requests)
    return _sum(most, pod.overhead) if pod.overhead else most


@typed_on_error
def effective_limits(pod: Pod, /) -> Resources:
    """The same for limits; a resource without any limit is absent."""
    most = _peak(pod, lambda container: container.limits)
    return _sum(most, {name: one for name, one in pod.overhead.items() if name in most})


def _peak(pod: Pod, amounts: Callable[[Container], Resources]) -> Resources:
    nothing: Resources = {}
    return peak(
        [(amounts(container), container.restartable) for container in pod.init_containers],
        map(amounts, pod.containers),
        nothing=nothing,
        add=_sum,
        most=_max,
    )


def _sum(first: Resources, second: Resources) -> Resources:
    total = dict(first)
    for name, amount in second.items():
        total[name] = total[name] + amount if name in total else amount
    return total


def _max(first: Resources, second: Resources) -> Resources:
    most = dict(first)
    for name, amount in second.items():
        most[name] = max(most[name], amount) if name in most else amount
    return most
