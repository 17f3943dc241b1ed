"""What containers hold at their peak, in bare numbers: worked out when a pod is made, as nodes ask often."""

from __future__ import annotations

from collections.abc import Sequence

from nodealloc._peak import peak
from nodealloc.podspec._amounts import Resources
from nodealloc.podspec._model import Container

__all__ = ["Nanos", "requested_nanos"]

Nanos = tuple[tuple[str, int], ...]
"""Resource name and billionths."""


def requested_nanos(before: Sequence[Container], main: Sequence[Container], overhead: Resources, /) -> Nanos:
    """`effective_requests` without making quantities; what is not asked for is left out.

    Args:
        before: Init containers and sidecars.
        main: The others.
        overhead: On top.
    """
    most: dict[str, int] = {}
    if before:
        most = peak(
            [(_nanos(one), one.restartable) for one in before],
            map(_nanos, main),
            nothing=most,
            add=_sum,
            most=_most,
        )
    else:
        for one in main:
            for name, amount in one.requests.items():
                most[name] = most.get(name, 0) + amount.nanos
    if overhead:
        most = _sum(most, {name: amount.nanos for name, amount in overhead.items()})
    return tuple([one for one in most.items() if one[1]])


def _nanos(container: Container) -> dict[str, int]:
    return {name: amount.nanos for name, amount in container.requests.items()}


def _sum(first: dict[str, int], second: dict[str, int]) -> dict[str, int]:
    return {**first, **{name: first.get(name, 0) + nanos for name, nanos in second.items()}}


def _most(first: dict[str, int], second: dict[str, int]) -> dict[str, int]:
    return {**first, **{name: max(first.get(name, 0), nanos) for name, nanos in second.items()}}
