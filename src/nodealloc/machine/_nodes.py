"""NUMA nodes of a sysfs tree: their CPUs, memory, huge pages and distances."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nodealloc.idset import CPUSet, bits, format_list
from nodealloc.machine._parts import NumaNode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nodealloc.machine._sysfs import Notes, Tree

__all__ = ["read_distances", "read_nodes"]

_HERE = "devices/system/node"
# As many digits as 64 bits of bytes have, so that junk is no number.
_TOTAL = re.compile(r"MemTotal:\s*([0-9]{1,15}) kB")
_POOL = re.compile(r"hugepages-([0-9]{1,15})kB")
_KIB = 1024
_FARTHEST = (1 << 31) - 1


def read_nodes(tree: Tree, notes: Notes, online: int, offline: int) -> tuple[NumaNode, ...]:
    """All NUMA nodes; one that holds everything where the kernel knows none.

    Args:
        tree: The sysfs root.
        notes: Where to remark on what is missing.
        online: Mask of the online CPUs; only these are named.
        offline: Mask of the other CPUs that exist; a node may name them.

    Source: the kernel's ``Documentation/ABI/stable/sysfs-devices-node``; for a
    kernel without NUMA, ours.
    """
    there = tree.ids(_HERE, "node")
    ids = _listed(tree, notes, there)
    if not ids:
        notes.add(_HERE, "no NUMA nodes; one node 0 stands for the whole machine")
        return (_whole_machine(tree, notes, online),)
    nodes: list[NumaNode] = []
    seen = 0
    for node in bits(ids):
        told = _cpus(tree, notes, node)
        if stray := told & ~(online | offline):
            notes.add(
                f"{_HERE}/node{node}/cpumap", f"CPUs {format_list(stray)} do not exist; they are left out"
            )
        mask = told & online
        if mask & seen:
            notes.add(
                f"{_HERE}/node{{}}/cpumap", "shares CPUs with a node before it; both keep them", ids=1 << node
            )
        seen |= mask
        nodes.append(
            NumaNode(
                id=node,
                cpus=CPUSet.from_mask(mask),
                memory_bytes=_memory(tree, notes, f"{_HERE}/node{node}/meminfo"),
                hugepages=_hugepages(tree, notes, f"{_HERE}/node{node}/hugepages"),
            )
        )
    if homeless := online & ~seen:
        notes.add(f"{_HERE}/node*/cpumap", f"CPUs {format_list(homeless)} are in no node")
    return tuple(nodes)


def _listed(tree: Tree, notes: Notes, there: int) -> int:
    online = tree.list(f"{_HERE}/online")
    if not online or not there:
        return there
    if lost := online & ~there:
        notes.add(f"{_HERE}/online", f"nodes {format_list(lost)} have no directory; they are left out")
    return online & there or there


def _whole_machine(tree: Tree, notes: Notes, online: int) -> NumaNode:
    return NumaNode(
        id=0,
        cpus=CPUSet.from_mask(online),
        # The mount of /proc stands beside that of /sys, on machines and in captures.
        memory_bytes=_memory(tree, notes, "../proc/meminfo"),
        hugepages=_hugepages(tree, notes, "kernel/mm/hugepages"),
    )


def _cpus(tree: Tree, notes: Notes, node: int) -> int:
    where = f"{_HERE}/node{node}"
    mask = tree.mask(f"{where}/cpumap")
    if mask is None:
        # An empty list is an answer where the file is there: a node without CPUs.
        mask = tree.list(f"{where}/cpulist")
    if mask is None:
        mask = tree.ids(where, "cpu")
        notes.add(f"{_HERE}/node{{}}/cpumap", "unreadable; CPUs were taken from its links", ids=1 << node)
    return mask


def _memory(tree: Tree, notes: Notes, path: str) -> int:
    found = _TOTAL.search(tree.text(path) or "")
    if found is None:
        notes.add(path, "no MemTotal; the memory is taken as 0")
        return 0
    return int(found[1]) * _KIB


def _hugepages(tree: Tree, notes: Notes, folder: str) -> Mapping[int, int]:
    pools: dict[int, int] = {}
    for name in tree.names(folder):
        found = _POOL.fullmatch(name)
        if found is None or not int(found[1]):
            continue
        count = tree.number(f"{folder}/{name}/nr_hugepages")
        if count is None or count < 0:
            notes.add(f"{folder}/{name}/nr_hugepages", "unreadable; the pool is taken as empty")
            count = 0
        pools[int(found[1]) * _KIB] = count
    return dict(sorted(pools.items()))


def read_distances(tree: Tree, notes: Notes, nodes: int) -> Mapping[int, Mapping[int, int]] | None:
    """Distances between all pairs of a mask of nodes; None where a row is missing or does not fit.

    A row has one column for each online node, ascending, however sparse the
    ids are. Source: the kernel's ``drivers/base/node.c`` as its ABI document
    describes it.
    """
    listed = tree.list(f"{_HERE}/online")
    distances: dict[int, Mapping[int, int]] = {}
    for node in bits(nodes):
        path = f"{_HERE}/node{node}/distance"
        row = _row(tree.text(path))
        columns = next(
            (
                [*bits(ids)]
                for ids in (listed, nodes)
                if ids and ids.bit_count() == len(row) and not nodes & ~ids
            ),
            None,
        )
        if not row or columns is None:
            if nodes.bit_count() > 1:
                notes.add(path, f"{len(row)} distances for {nodes.bit_count()} nodes; none were taken")
            return None
        distances[node] = {other: far for other, far in zip(columns, row, strict=True) if nodes >> other & 1}
    return distances or None


def _row(text: str | None) -> list[int]:
    try:
        row = [int(word) for word in (text or "").split()]
    except ValueError:
        return []
    return row if all(0 <= far <= _FARTHEST for far in row) else []
