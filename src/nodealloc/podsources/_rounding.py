"""Amounts as a kubelet reads them: rounded up to thousandths."""

from __future__ import annotations

from typing import Final

import attrs

from nodealloc.podspec import Container, Pod, Quantity, Resources

__all__ = ["in_thousandths"]

_MILLI: Final = 10**6
"""Billionths."""


def in_thousandths(pod: Pod, /) -> Pod:
    """The pod with each amount rounded up: three containers of `100u` are `3m`.

    Source: Kubernetes ``pkg/apis/core/v1/defaults``.
    """
    return attrs.evolve(
        pod,
        init_containers=tuple(map(_container, pod.init_containers)),
        containers=tuple(map(_container, pod.containers)),
        overhead=_rounded(pod.overhead),
    )


def _container(container: Container) -> Container:
    requests, limits = _rounded(container.requests), _rounded(container.limits)
    if requests is container.requests and limits is container.limits:
        return container
    return attrs.evolve(container, requests=requests, limits=limits)


def _rounded(amounts: Resources) -> Resources:
    if not any(one.nanos % _MILLI for one in amounts.values()):
        return amounts
    return {
        name: Quantity(nanos=one.milli_value * _MILLI, format=one.format) for name, one in amounts.items()
    }
