"""Which CPUs to take of those that are free, evenly from as few NUMA nodes as can serve."""

from __future__ import annotations

from nodealloc.cpuset._balance import Split, splits
from nodealloc.cpuset._layout import CpuLayout
from nodealloc.cpuset._pickers import SortStrategy, node_order, take_packed

__all__ = ["take_distributed"]


def take_distributed(
    layout: CpuLayout,
    available: int,
    count: int,
    /,
    *,
    strategy: SortStrategy = SortStrategy.PACKED,
    group_size: int = 1,
) -> int | None:
    """Take CPUs evenly from as few NUMA nodes as can serve.

    Args:
        layout: The machine.
        available: CPUs that may be taken: a mask inside `layout.cpus`.
        count: Whole logical CPUs, 0 or more.
        strategy: Order of single CPUs inside a node.
        group_size: CPUs are taken in groups of this many, 1 or more; a count
            that is no multiple of it is packed instead.

    Returns:
        A mask of exactly `count` CPUs, or None where fewer are available.

    Source: KEP-2902; kubelet ``cm/cpumanager/cpu_assignment.go``. It ends on
    every input: CPUs that make up no whole group are left out of the count of
    what a node can still give, where the kubelet waits for them for ever.
    """
    if count <= 0:
        return 0
    if available.bit_count() < count:
        return None
    if count % group_size == 0 and len(layout.nodes) > 1:
        nodes = [layout.nodes[index] for index in node_order(layout, available)]
        free = [(node & available).bit_count() for node in nodes]
        for size in _sizes(layout, len(nodes), count // group_size, group_size):
            for split in splits(free, count, size, group_size):
                taken = _hand_out(
                    layout, available, nodes, split, count, strategy=strategy, group_size=group_size
                )
                if taken is not None:
                    return taken
    return take_packed(layout, available, count, strategy=strategy)


def _sizes(layout: CpuLayout, usable_nodes: int, groups: int, group_size: int) -> range:
    """How many nodes could serve, fewest first."""
    in_all = -(-layout.cpus.bit_count() // group_size)
    on_node = -(-in_all // len(layout.nodes))
    return range(-(-groups // on_node), min(groups, usable_nodes) + 1)


def _hand_out(
    layout: CpuLayout,
    available: int,
    nodes: list[int],
    split: Split,
    count: int,
    *,
    strategy: SortStrategy,
    group_size: int,
) -> int | None:
    """CPUs of a split, or None where its nodes hold too few."""
    taken = 0
    for rank in split.nodes:
        part = take_packed(layout, nodes[rank] & available & ~taken, split.share, strategy=strategy)
        if part is None:
            return None
        taken |= part
    rest = count - split.share * len(split.nodes)
    while rest:
        before = rest
        for rank in split.donors:
            left = nodes[rank] & available & ~taken
            part = take_packed(layout, left, group_size, strategy=strategy) if rest else None
            if part is not None:
                taken |= part
                rest -= group_size
        if rest == before:
            return None
    return taken
