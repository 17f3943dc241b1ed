"""Which CPUs to take of those that are free, packed onto few parts of the machine."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence

from nodealloc.cpuset._layout import CpuLayout
from nodealloc.idset import lowest

__all__ = ["SortStrategy", "node_order", "take_packed", "take_unbroken"]


class SortStrategy(enum.Enum):
    """In which order single CPUs are taken; the values are the kubelet's names."""

    PACKED = "packed"
    """Whole cores first, then what is left of cores that are in use already."""
    SPREAD = "spread"
    """By number inside a socket, whatever the core (`distribute-cpus-across-cores`)."""


# Members of an enumeration are slow to look up before Python 3.12.
_SPREAD = SortStrategy.SPREAD


def take_packed(
    layout: CpuLayout,
    available: int,
    count: int,
    /,
    *,
    strategy: SortStrategy = SortStrategy.PACKED,
    align_caches: bool = False,
) -> int | None:
    """Take CPUs so that large parts of the machine stay whole.

    In this order: whole NUMA nodes and sockets, whole caches or a part of one
    (with `align_caches`), whole cores, single CPUs; among equals the part with
    the fewest free CPUs first.

    Args:
        layout: The machine.
        available: CPUs that may be taken: a mask inside `layout.cpus`.
        count: Whole logical CPUs, 0 or more.
        strategy: Order of the single CPUs.
        align_caches: `prefer-align-cpus-by-uncorecache`.

    Returns:
        A mask of exactly `count` CPUs, or None where fewer are available.

    Source: kubelet ``cm/cpumanager/cpu_assignment.go``.
    """
    if count <= 0:
        return 0
    free = available.bit_count()
    if free <= count:
        return available if free == count else None
    taken = _large_parts(layout, available, count) if count >= layout.smallest_part else 0
    if align_caches:
        taken |= _caches(layout, available & ~taken, count - taken.bit_count())
    if strategy is _SPREAD:
        return taken | _spread_cpus(layout, available & ~taken, count - taken.bit_count())
    taken |= _whole_cores(layout, available & ~taken, count - taken.bit_count())
    missing = count - taken.bit_count()
    return taken | _single_cpus(layout, available & ~taken, missing) if missing else taken


def take_unbroken(layout: CpuLayout, available: int, count: int, near: int, /) -> int | None:
    """Take CPUs as whole cores only, large cores first, so that small ones fill what is left.

    Args:
        layout: The machine.
        available: CPUs that may be taken, a mask.
        count: Whole logical CPUs, 1 or more.
        near: CPUs whose cores are preferred among cores of one size, a mask.

    Returns:
        A mask of exactly `count` CPUs, or None where no whole cores add up to
        it. Exact where each size of core divides the next one.

    Source: ours; the kubelet divides CPUs by cores and knows one size.
    """
    taken = 0
    for core in sorted(layout.cores, key=lambda core: (-core.bit_count(), not core & near)):
        if core & available == core and core.bit_count() <= count:
            taken |= core
            count -= core.bit_count()
    return None if count else taken


def node_order(layout: CpuLayout, available: int, /) -> list[int]:
    """NUMA nodes with free CPUs, as indexes: fullest first, then by id.

    Where sockets are larger than nodes, nodes are ordered inside their socket.
    """
    if layout.numa_first:
        if len(layout.nodes) == 1:
            return [0]
        return _fullest_first(range(len(layout.nodes)), layout.nodes, available)
    order: list[int] = []
    for socket in socket_order(layout, available):
        order += _fullest_first(layout.socket_nodes[socket], layout.nodes, available)
    return order


def socket_order(layout: CpuLayout, available: int, /) -> list[int]:
    """Sockets with free CPUs, as indexes; as `node_order`, with nodes the larger part."""
    if not layout.numa_first:
        if len(layout.sockets) == 1:
            return [0]
        return _fullest_first(range(len(layout.sockets)), layout.sockets, available)
    order: list[int] = []
    for node in node_order(layout, available):
        order += _fullest_first(layout.node_sockets[node], layout.sockets, available)
    return order


def _fullest_first(indexes: Sequence[int], parts: Sequence[int], available: int) -> list[int]:
    if len(indexes) == 1:
        return [index for index in indexes if parts[index] & available]
    counted = [(free, index) for index in indexes if (free := (parts[index] & available).bit_count())]
    counted.sort()
    return [index for _, index in counted]


def _large_parts(layout: CpuLayout, available: int, needed: int) -> int:
    """Whole NUMA nodes and sockets, the smaller kind last."""
    levels: tuple[tuple[Sequence[int], Callable[[CpuLayout, int], list[int]]], ...]
    levels = ((layout.sockets, socket_order), (layout.nodes, node_order))
    taken = 0
    for parts, order in reversed(levels) if layout.numa_first else levels:
        free = available & ~taken
        # Most requests are smaller than every part: they need no order.
        if not any(part & free == part and part.bit_count() <= needed for part in parts):
            continue
        for index in order(layout, free):
            part = parts[index]
            if part & free == part and part.bit_count() <= needed:
                taken |= part
                needed -= part.bit_count()
    return taken


def _caches(layout: CpuLayout, available: int, needed: int) -> int:
    """Whole caches as long as they fit, then a part of the first one that holds the rest."""
    if needed <= 0:
        return 0
    order: list[int] = []
    for node in node_order(layout, available):
        order += _fullest_first(layout.node_caches[node], layout.caches, available)
    taken = 0
    # The kubelet looks for whole caches from the average size on, however small some are: a
    # request that fits into one larger cache is then not put together from smaller ones.
    for index in order if needed >= layout.cache_share else ():
        cache = layout.caches[index]
        if cache & available & ~taken == cache and cache.bit_count() <= needed:
            taken |= cache
            needed -= cache.bit_count()
    if needed:
        for index in order:
            part = _part_of_cache(layout, available & ~taken, index, needed)
            if part:
                return taken | part
    return taken


def _part_of_cache(layout: CpuLayout, available: int, index: int, needed: int) -> int:
    """CPUs of the cache's first cores, if these hold exactly what is needed; else none."""
    wanted = needed // layout.threads_per_core
    found = 0
    for core in layout.cache_cores[index]:
        if wanted == 0:
            break
        if core & available:
            found |= core & available
            wanted -= 1
    return found if found.bit_count() == needed else 0


def _core_groups(layout: CpuLayout, available: int) -> list[tuple[int, ...]]:
    """Cores, group by group in the order in which groups are used up."""
    parts, cores, order = layout.nodes, layout.node_cores, node_order
    if layout.numa_first:
        parts, cores, order = layout.sockets, layout.socket_cores, socket_order
    # Most requests go to one node: they need no order.
    for part, its_cores in zip(parts, cores, strict=True):
        if part & available:
            if available & ~part:
                break
            return [its_cores]
    return [cores[index] for index in order(layout, available)]


def _whole_cores(layout: CpuLayout, available: int, needed: int) -> int:
    if not layout.uniform:
        return _uneven_cores(layout, available, needed)
    taken, missing = 0, needed // layout.threads_per_core
    if not missing:
        return taken
    for cores in _core_groups(layout, available):
        for core in cores:
            if core & available == core:
                taken |= core
                missing -= 1
                if not missing:
                    return taken
    return taken


def _uneven_cores(layout: CpuLayout, available: int, needed: int) -> int:
    """Whole cores of several sizes, the small ones of each group first."""
    taken = 0
    for cores in _core_groups(layout, available) if needed else ():
        for core in sorted(cores, key=int.bit_count):
            size = core.bit_count()
            if core & available == core and size <= needed:
                taken |= core
                needed -= size
    return taken


def _single_cpus(layout: CpuLayout, available: int, needed: int) -> int:
    """Single CPUs, of the cores with the fewest free ones first."""
    taken = 0
    if needed <= 0:
        return taken
    for cores in _core_groups(layout, available):
        parts = [part for core in cores if (part := core & available)]
        parts.sort(key=int.bit_count)
        for part in parts:
            size = part.bit_count()
            if size >= needed:
                return taken | lowest(part, needed)
            taken |= part
            available &= ~part
            needed -= size
    return taken


def _spread_cpus(layout: CpuLayout, available: int, needed: int) -> int:
    taken = 0
    for index in socket_order(layout, available) if needed > 0 else ():
        part = layout.sockets[index] & available
        size = part.bit_count()
        if size >= needed:
            return taken | lowest(part, needed)
        taken |= part
        available &= ~part
        needed -= size
    return taken
