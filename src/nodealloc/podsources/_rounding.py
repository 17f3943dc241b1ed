"""Amounts as a kubelet reads them: rounded up to thousandths, and 0 where none stands."""

from __future__ import annotations

from typing import Final

import attrs

from nodealloc._raw_parts import Fields, fields_of, items_of
from nodealloc.podspec import Container, Pod, Quantity, Resources

__all__ = ["in_thousandths", "with_bare_amounts"]

_LISTS: Final = ("initContainers", "containers")

_MILLI: Final = 10**6
"""Billionths."""


def with_bare_amounts(spec: Fields, /) -> Fields:
    """The spec of a manifest in which an amount of null is 0, and none has blanks around it.

    Source: Kubernetes ``k8s.io/apimachinery/pkg/api/resource``.
    """
    lists = {
        key: [_read_by_go(one) for one in items_of(spec[key])] for key in _LISTS if items_of(spec.get(key))
    }
    overhead = fields_of(spec.get("overhead"))
    return {**spec, **lists, **({"overhead": _bare(overhead)} if overhead else {})}


def _read_by_go(container: object) -> object:
    fields = fields_of(container)
    asked = fields_of(fields.get("resources"))
    amounts = {key: _bare(found) for key in ("limits", "requests") if (found := fields_of(asked.get(key)))}
    return {**fields, "resources": {**asked, **amounts}} if amounts else container


def _bare(amounts: Fields) -> Fields:
    return {
        name: 0 if one is None else one.strip() if isinstance(one, str) else one
        for name, one in amounts.items()
    }


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
