"""Values only: CPUs, NUMA nodes and the machine that they make up. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType

import attrs

from nodealloc.idset import CPUSet, NodeSet

__all__ = ["Cpu", "Machine", "NumaNode"]


@attrs.frozen(kw_only=True)
class Cpu:
    """One logical CPU that is online.

    Group ids are opaque: equal id means same group, and where a rule needs an
    order, groups go by ascending id.

    Attributes:
        id: As the kernel numbers it; 0-based, gaps allowed.
        core: Physical core, unique on the machine.
        socket: Package.
        numa_nodes: Local NUMA nodes, ascending; empty when the kernel names none.
        l3: Group of CPUs behind one last-level (uncore) cache, or None.
        die: Die inside the package, unique on the machine, or None.
        cluster: Cluster of cores inside the die, unique on the machine, or None.
        kind: Name of the core's kind on hybrid machines (`core`, `atom`), else "".
    """

    id: int
    core: int
    socket: int
    numa_nodes: tuple[int, ...] = ()
    l3: int | None = None
    die: int | None = None
    cluster: int | None = None
    kind: str = ""


@attrs.frozen(kw_only=True)
class NumaNode:
    """One NUMA node; it may lack CPUs, memory or both.

    Attributes:
        id: As the kernel numbers it; 0-based, gaps allowed.
        cpus: Online CPUs that are local to it.
        memory_bytes: Memory in bytes, huge pages included; 0 for a node without.
        hugepages: Page size in bytes to number of pages in the pool.
    """

    id: int
    cpus: CPUSet = CPUSet()
    memory_bytes: int = 0
    hugepages: Mapping[int, int] = attrs.field(factory=dict[int, int])


@attrs.frozen(kw_only=True, slots=False)
class Machine:
    """What a node has, as far as allocation is concerned.

    Attributes:
        name: For people; "" when unknown.
        cpus: Online CPUs, ascending by id.
        numa_nodes: Ascending by id; at least one where the machine has memory.
        distances: `distances[a][b]` from node a to node b, for every pair of
            ids in `numa_nodes`; None when the kernel gives none.
        offline: CPUs that exist but are not online.
        isolated: Online CPUs that the kernel's scheduler leaves alone.
    """

    name: str = ""
    cpus: tuple[Cpu, ...]
    numa_nodes: tuple[NumaNode, ...] = ()
    distances: Mapping[int, Mapping[int, int]] | None = None
    offline: CPUSet = CPUSet()
    isolated: CPUSet = CPUSet()

    @cached_property
    def online(self) -> CPUSet:
        """All online CPUs."""
        return CPUSet(cpu.id for cpu in self.cpus)

    @cached_property
    def nodes(self) -> NodeSet:
        """All NUMA node ids."""
        return NodeSet(node.id for node in self.numa_nodes)

    @cached_property
    def cpu(self) -> Mapping[int, Cpu]:
        """CPUs by id."""
        return MappingProxyType({cpu.id: cpu for cpu in self.cpus})

    @cached_property
    def node(self) -> Mapping[int, NumaNode]:
        """NUMA nodes by id."""
        return MappingProxyType({node.id: node for node in self.numa_nodes})
