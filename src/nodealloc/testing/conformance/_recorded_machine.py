"""A machine as recorded decisions describe it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from nodealloc.idset import CPUSet
from nodealloc.machine import Cpu, Machine, NumaNode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nodealloc.testing.conformance._kinds import Row

__all__ = ["recorded_machine"]

_PAGES = {"hugepages_2Mi_count": 2 << 20, "hugepages_1Gi_count": 1 << 30}


def recorded_machine(row: Row, /) -> Machine:
    """The machine of one recorded row of kind `machines`; rows of distances go by node id, gaps and all."""
    cpus = tuple(
        Cpu(
            id=cpu["cpu"],
            core=cpu["core"],
            socket=cpu["socket"],
            numa_nodes=(cpu["numa"],),
            l3=cpu.get("uncore"),
        )
        for cpu in cast("Sequence[Mapping[str, int]]", row["cpus"])
    )
    ids = cast("Sequence[int]", row["numa_nodes"])
    memory = cast("Mapping[str, int]", row.get("memory_bytes") or {})
    pages = {size: cast("Mapping[str, int]", row[name]) for name, size in _PAGES.items() if row.get(name)}
    nodes = tuple(
        NumaNode(
            id=node,
            cpus=CPUSet(cpu.id for cpu in cpus if cpu.numa_nodes == (node,)),
            memory_bytes=memory.get(str(node), 0),
            hugepages={size: counts.get(str(node), 0) for size, counts in pages.items()},
        )
        for node in ids
    )
    distances = cast("Mapping[str, Sequence[int]] | None", row.get("distances"))
    return Machine(
        name=str(row["name"]),
        cpus=cpus,
        numa_nodes=nodes,
        distances={int(a): {node: far[node] for node in ids} for a, far in distances.items()}
        if distances
        else None,
    )
