"""Pod-level arithmetic: what a pod holds at its peak."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodealloc.podspec._quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Callable

    from nodealloc.podspec._model import Container, Pod, Resources

__all__ = ["effective_limits", "effective_requests"]


def effective_requests(pod: Pod, /) -> Resources:
    """What a scheduler reserves for the pod, resource by resource.

    The larger of what each init container needs beside the sidecars started
    before it, and what all containers need beside all sidecars; the pod's
    overhead on top.

    Source: KEP-753, "Resources calculation for scheduling and pod admission".
    """
    peak = _peak(pod, lambda container: container.requests)
    return _sum(peak, pod.overhead) if pod.overhead else peak


def effective_limits(pod: Pod, /) -> Resources:
    """The same for limits; a resource without any limit is absent."""
    peak = _peak(pod, lambda container: container.limits)
    return (
        _sum(peak, {name: one for name, one in pod.overhead.items() if name in peak})
        if pod.overhead
        else peak
    )


def _peak(pod: Pod, amounts: Callable[[Container], Resources]) -> dict[str, Quantity]:
    started: dict[str, Quantity] = {}
    largest: dict[str, Quantity] = {}
    for container in pod.init_containers:
        wanted = amounts(container)
        if container.restartable:
            started = _sum(started, wanted)
        else:
            largest = _max(largest, _sum(started, wanted))
    total = started
    for container in pod.containers:
        total = _sum(total, amounts(container))
    return _max(largest, total)


def _sum(first: Resources, second: Resources) -> dict[str, Quantity]:
    total = dict(first)
    for name, amount in second.items():
        total[name] = total[name] + amount if name in total else amount
    return total


def _max(first: Resources, second: Resources) -> dict[str, Quantity]:
    most = dict(first)
    for name, amount in second.items():
        most[name] = max(most[name], amount) if name in most else amount
    return most
