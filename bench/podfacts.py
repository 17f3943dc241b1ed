"""A node's view: what one pod more costs on a node with few and with many pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.figure import Figure, best_ns
from nodealloc.podfacts import NodeView, PodOnNode, PodsOnNode
from nodealloc.podspec import Container, Pod, Quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["figures"]

_SIZES = (10, 100, 1000)


def _pod(number: int) -> PodOnNode:
    amounts = {"cpu": Quantity.of("100m"), "memory": Quantity.of("64Mi")}
    return PodOnNode.of(Pod(uid=f"uid-{number}", containers=(Container(name="app", requests=amounts),)))


def figures() -> Iterator[Figure]:
    """The time of one more pod, and of one less, by how many are there."""
    growth: list[tuple[float, float]] = []
    for size in _SIZES:
        view = NodeView(name="n", pods=PodsOnNode(map(_pod, range(size))))
        one = _pod(size)

        def visit(view: NodeView = view, one: PodOnNode = one) -> None:
            view.with_pod(one).without(one.pod.uid)

        growth.append((size, best_ns(visit) / 1e3))
    yield Figure(
        package="podfacts",
        name="one pod comes to a node's view of 1000 pods and goes again",
        value=growth[-1][1],
        unit="µs",
        growth=growth,
        growth_of="pods",
    )
    yield Figure(
        package="podfacts",
        name="the same, 1000 pods over 10",
        value=growth[-1][1] / growth[0][1],
        unit="×",
        at_most=3,
    )
