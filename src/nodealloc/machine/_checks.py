"""What makes a description of a machine nonsense; each check raises `ValueError`."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from nodealloc.errors import ConfigurationError
from nodealloc.idset import MAX_ID, CPUSet, format_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nodealloc.machine._parts import Cpu, NumaNode

_FARTHEST = 1 << 63
MOST_NODES = 1024
"""NUMA nodes for which Linux can be built; a slip in a count would fill the memory with distances."""
_SHOWN = 40
"""Ids that a message lists."""

__all__ = [
    "MOST_NODES",
    "check_cpus",
    "check_distances",
    "check_nodes",
    "check_offline",
    "cpus_by_node",
]


def cpus_by_node(cpus: Iterable[Cpu]) -> dict[int, CPUSet]:
    """The CPUs that name a NUMA node, by node; linear in the names."""
    ids: dict[int, list[int]] = {}
    for cpu in cpus:
        for home in cpu.numa_nodes:
            ids.setdefault(home, []).append(cpu.id)
    return {home: _set_of(local) for home, local in ids.items()}


def _set_of(ids: Sequence[int]) -> CPUSet:
    # A mask made bit by bit is copied for each: of many CPUs that takes most of the time.
    data = bytearray(max(ids) // 8 + 1)
    for number in ids:
        data[number >> 3] |= 1 << (number & 7)
    return CPUSet.from_mask(int.from_bytes(data, "little"))


def _ascending(noun: str, ids: Sequence[int]) -> None:
    for before, after in pairwise(ids):
        if after == before:
            raise ConfigurationError(f"{noun} {after} is described twice; every id stands once")
        if after < before:
            raise ConfigurationError(f"{noun} {after} stands after {before}; order them by ascending id")
    if ids and not 0 <= ids[0] <= ids[-1] <= MAX_ID:
        raise ConfigurationError(f"{noun} ids {ids[0]} to {ids[-1]} are outside 0 to {MAX_ID}")


def check_cpus(cpus: Sequence[Cpu]) -> None:
    """Each CPU stands once, in order; a core lies in one socket, one die and one L3 group."""
    _ascending("CPU", [cpu.id for cpu in cpus])
    first_of: dict[int, Cpu] = {}
    for cpu in cpus:
        first = first_of.setdefault(cpu.core, cpu)
        if (cpu.socket, cpu.die, cpu.l3) != (first.socket, first.die, first.l3):
            raise ConfigurationError(
                f"core {cpu.core} holds {_place(first)} and {_place(cpu)}; "
                "core ids are unique on the machine, so number the cores apart"
            )


def _place(cpu: Cpu) -> str:
    return f"CPU {cpu.id} (socket {cpu.socket}, die {cpu.die}, L3 {cpu.l3})"


def check_nodes(cpus: Sequence[Cpu], nodes: Sequence[NumaNode]) -> None:
    """CPUs and nodes name each other, and only what is there."""
    _ascending("NUMA node", [node.id for node in nodes])
    described = {node.id for node in nodes}
    for cpu in cpus:
        if len(cpu.numa_nodes) > 1 and [*cpu.numa_nodes] != sorted({*cpu.numa_nodes}):
            raise ConfigurationError(
                f"CPU {cpu.id} names its nodes as {cpu.numa_nodes}; order them by ascending id"
            )
        for home in cpu.numa_nodes:
            if home not in described:
                raise ConfigurationError(f"CPU {cpu.id} is local to NUMA node {home}, which is not described")
    local = cpus_by_node(cpus)
    for node in nodes:
        _same(node.id, node.cpus.mask, local.get(node.id, CPUSet()).mask)


def _same(node: int, named: int, naming: int) -> None:
    if stray := named & ~naming:
        raise ConfigurationError(
            f"NUMA node {node} names CPUs {format_list(stray)}, which are not online or not local to it"
        )
    if missing := naming & ~named:
        raise ConfigurationError(
            f"CPUs {format_list(missing)} are local to NUMA node {node}, which does not name them"
        )


def check_offline(online: CPUSet, offline: CPUSet, isolated: CPUSet) -> None:
    """A CPU is online or offline; only online ones are isolated."""
    if both := online & offline:
        raise ConfigurationError(f"CPUs {both} are online and offline at once")
    if stray := isolated - online:
        raise ConfigurationError(f"CPUs {stray} are isolated but not online; isolated CPUs are online ones")


def check_distances(nodes: Iterable[int], distances: Mapping[int, Mapping[int, int]] | None) -> None:
    """Every pair of nodes has a distance, and no other pair; all are whole numbers, none below 0."""
    if distances is None:
        return
    ids = set(nodes)
    if set(distances) != ids:
        raise ConfigurationError(
            f"distances are given from nodes {_few(distances.keys())}; expected from {_few(ids)}"
        )
    for source, row in distances.items():
        if set(row) != ids:
            raise ConfigurationError(
                f"distances from node {source} go to {_few(row.keys())}; expected to {_few(ids)}"
            )
        if {*map(type, row.values())} == {int} and 0 <= min(row.values()) <= max(row.values()) <= _FARTHEST:
            continue
        for target, distance in row.items():
            # What is no number (NaN) or has no end fails the first comparison, or the second.
            if not 0 <= distance <= _FARTHEST or distance != int(distance):
                raise ConfigurationError(
                    f"distance from node {source} to {target} is {distance}; "
                    "expected a whole number, 0 or more"
                )


def _few(ids: Iterable[int]) -> str:
    shown = sorted(ids)
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return f"{shown[:_SHOWN]}{more}"
