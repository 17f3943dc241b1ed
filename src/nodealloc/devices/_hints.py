"""Pure decisions: on which NUMA nodes a number of devices can be had."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import attrs

from nodealloc._typed import typed_on_error
from nodealloc.topology import LISTED_NODES, CountedHints, Need, NumaMask, TopologyHint, node_masks

__all__ = ["device_hints", "held_hints"]


@typed_on_error
def device_hints(
    nodes: Sequence[int],
    wanted: int,
    /,
    *,
    by_node: Mapping[int, int],
    available: int,
    reusable: int = 0,
) -> list[TopologyHint] | CountedHints:
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
        Possible hints by size of mask, then node ids, counted on more than
        `LISTED_NODES` nodes; empty when there is none.

    Source: kubelet v1.32 ``cm/devicemanager/topology_hints.go``.
    """
    if len(nodes) > LISTED_NODES:
        return _counted(nodes, wanted, by_node, available, reusable)
    masks = node_masks(tuple(nodes))
    everything = 0
    for node in nodes:
        everything |= by_node.get(node, 0)
    ever = _held_by(masks, by_node, everything)
    free = _held_by(masks, by_node, available)
    reused = everything & reusable
    missing = wanted - reused.bit_count()
    possible = [mask for mask, held in zip(masks, free, strict=True) if held >= missing]
    if reused:
        needed = _held_by(masks, by_node, reused)
        whole = {mask for mask, held in zip(masks, needed, strict=True) if held == reused.bit_count()}
        possible = [mask for mask in possible if mask in whole]
    enough = (mask.bit_count() for mask, held in zip(masks, ever, strict=True) if held >= wanted)
    smallest = min(next(enough, len(nodes)), len(nodes))
    return [TopologyHint(mask, mask.bit_count() == smallest) for mask in possible]


def held_hints(nodes: Sequence[int], places: Sequence[Sequence[int]], /) -> list[TopologyHint] | CountedHints:
    """Hints for devices that are held already: wherever they are, the narrowest preferred.

    Something that runs must not be refused because a narrower place exists by
    now, so the narrowest place of these very devices is as good as any.

    Args:
        nodes: NUMA nodes of the machine, ascending.
        places: For each held device that has a place, its nodes.

    Source: ours.
    """
    by_node: dict[int, int] = {}
    every = 0
    for place, count in Counter(map(tuple, places)).items():
        alike = ((1 << count) - 1) << every.bit_length()
        every |= alike
        for node in place:
            by_node[node] = by_node.get(node, 0) | alike
    hints = device_hints(nodes, len(places), by_node=by_node, available=every)
    if isinstance(hints, CountedHints):
        return hints  # what is preferred is the narrowest place of all devices, and these are all
    narrowest = min((hint.affinity.bit_count() for hint in hints if hint.affinity), default=0)
    return [
        TopologyHint(hint.affinity, hint.affinity is not None and hint.affinity.bit_count() == narrowest)
        for hint in hints
    ]


def _counted(
    nodes: Sequence[int], wanted: int, by_node: Mapping[int, int], available: int, reusable: int
) -> list[TopologyHint] | CountedHints:
    """The same where there are too many masks to list."""
    places = [(1 << node, by_node[node]) for node in nodes if by_node.get(node)]
    every = sum([1 << node for node in nodes])
    everything = placed = 0
    for _, devices in places:
        everything |= devices
    placed = everything & reusable
    needs = [Need.touching(place) for place, _ in _amounts(places, placed)]
    missing = wanted - placed.bit_count()
    if missing > 0:
        needs.append(Need(wanted=missing, amounts=tuple(_amounts(places, available))))
    ever = CountedHints(
        nodes=every,
        needs=(Need(wanted=wanted, amounts=tuple(_amounts(places, everything))),),
        preferred_width=len(nodes),
    )
    narrowest = ever.narrowest()
    if narrowest is not None and narrowest.affinity is not None:
        ever = attrs.evolve(ever, preferred_width=narrowest.affinity.bit_count())
    found = attrs.evolve(ever, needs=tuple(needs))
    return found if found.counts(every) else []


def _amounts(places: Sequence[tuple[NumaMask, int]], among: int) -> Iterator[tuple[NumaMask, int]]:
    """How many of some devices are where; devices that are near the same nodes together."""
    parts: list[tuple[NumaMask, int]] = []
    seen = 0
    for place, here in places:
        devices = here & among
        if devices & seen:
            split = [(nodes | place, both) for nodes, old in parts if (both := old & devices)]
            parts = [(nodes, rest) for nodes, old in parts if (rest := old & ~devices)] + split
        if devices & ~seen:
            parts.append((place, devices & ~seen))
        seen |= devices
    for nodes, devices in parts:
        yield nodes, devices.bit_count()


def _held_by(masks: Sequence[NumaMask], by_node: Mapping[int, int], among: int) -> list[int]:
    """How many of some devices each mask holds, from the mask without its lowest node."""
    here = {1 << node: devices & among for node, devices in by_node.items()}
    sizes = {place: devices.bit_count() for place, devices in here.items()}
    together = 0
    for devices in here.values():
        together |= devices
    found: list[int] = []
    if sum(sizes.values()) == together.bit_count():  # no device is near several nodes
        held = {0: 0}
        for mask in masks:
            low = mask & -mask
            count = held[mask] = held[mask ^ low] + sizes.get(low, 0)
            found.append(count)
        return found
    unions = {0: 0}
    for mask in masks:
        low = mask & -mask
        union = unions[mask] = unions[mask ^ low] | here.get(low, 0)
        found.append(union.bit_count())
    return found
