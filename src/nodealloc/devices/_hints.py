"""Pure decisions: on which NUMA nodes a number of devices can be had."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from itertools import combinations
from math import comb

from nodealloc.topology import NumaMask, TopologyHint

__all__ = ["device_hints", "held_hints", "node_masks"]

KUBELET_NODES = 8
"""Up to here every mask of the machine is tried, as the kubelet does; it stops there."""
MASKS_AT_MOST = 4096
"""Beyond: masks that are tried at most, the mask of all nodes left out of account."""


@functools.lru_cache(maxsize=64)
def node_masks(nodes: tuple[int, ...], /) -> tuple[NumaMask, ...]:
    """Masks over `nodes`, smaller ones first, then by node ids.

    All of them for up to 12 nodes. For more, whole sizes as long as there are
    no more than `MASKS_AT_MOST`, and then the mask of all nodes, so that the
    answer stays bounded on any machine.
    """
    masks: list[NumaMask] = []
    for size in range(1, len(nodes) + 1):
        if size < len(nodes) and len(masks) + comb(len(nodes), size) > MASKS_AT_MOST:
            continue
        masks += [sum(1 << node for node in chosen) for chosen in combinations(nodes, size)]
    return tuple(masks)


def device_hints(
    nodes: Sequence[int],
    wanted: int,
    /,
    *,
    by_node: Mapping[int, int],
    available: int,
    reusable: int = 0,
) -> list[TopologyHint]:
    """Hints for a number of devices of one resource.

    A mask of nodes is possible when every reusable device with a place is at
    one of them, and those together with the available devices there suffice.
    It is preferred when no smaller mask holds that many devices, free or not.

    Args:
        nodes: NUMA nodes of the machine, ascending.
        wanted: Devices, 0 or more.
        by_node: NUMA node to all devices there, as a mask of devices.
        available: Devices that are free and healthy.
        reusable: Devices that the workload holds already and may use again.

    Returns:
        Possible hints by size of mask, then node ids; empty when there is none.

    Source: kubelet v1.32 ``cm/devicemanager/topology_hints.go``; on more than
    8 nodes, where the kubelet has no answer, only nodes with devices are tried.
    """
    held = _ordered(nodes, by_node)
    placed_reusable = 0
    for node in by_node:
        placed_reusable |= by_node[node] & reusable
    first = placed_reusable.bit_count()
    unions: dict[NumaMask, int] = {0: 0}
    smallest = len(nodes)
    possible: list[NumaMask] = []
    for mask in node_masks(held):
        inside = _union(mask, unions, by_node)
        if mask.bit_count() < smallest and inside.bit_count() >= wanted:
            smallest = mask.bit_count()
        if placed_reusable & ~inside:
            continue
        if first + (inside & available).bit_count() >= wanted:
            possible.append(mask)
    return [TopologyHint(mask, mask.bit_count() == smallest) for mask in possible]


def held_hints(nodes: Sequence[int], places: Sequence[Sequence[int]], /) -> list[TopologyHint]:
    """Hints for devices that are held already: wherever they are, the narrowest preferred.

    Something that runs must not be refused because a narrower place exists by
    now, so the narrowest place of these very devices is as good as any.

    Args:
        nodes: NUMA nodes of the machine, ascending.
        places: For each held device that has a place, its nodes.

    Source: ours.
    """
    by_node: dict[int, int] = {}
    for bit, place in enumerate(places):
        for node in place:
            by_node[node] = by_node.get(node, 0) | 1 << bit
    hints = device_hints(nodes, len(places), by_node=by_node, available=(1 << len(places)) - 1)
    narrowest = min((hint.affinity.bit_count() for hint in hints if hint.affinity), default=0)
    return [
        TopologyHint(hint.affinity, hint.affinity is not None and hint.affinity.bit_count() == narrowest)
        for hint in hints
    ]


def _ordered(nodes: Sequence[int], by_node: Mapping[int, int]) -> tuple[int, ...]:
    if len(nodes) <= KUBELET_NODES:
        return tuple(nodes)
    return tuple(node for node in nodes if by_node.get(node))


def _union(mask: NumaMask, unions: dict[NumaMask, int], by_node: Mapping[int, int]) -> int:
    """Devices at any node of a mask, from the union without its lowest node."""
    rest = mask & (mask - 1)
    known = unions.get(rest)
    union = _union(rest, unions, by_node) if known is None else known
    union |= by_node.get((mask ^ rest).bit_length() - 1, 0)
    unions[mask] = union
    return union
