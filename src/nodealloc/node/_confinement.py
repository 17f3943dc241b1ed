"""Values only: where a container may run, from what its owner was granted."""

from __future__ import annotations

import attrs

from nodealloc.cpuset import CpuAllocator
from nodealloc.idset import CPUSet, NodeSet
from nodealloc.memblocks import MemoryAllocator
from nodealloc.topology import Owner, Snapshot

__all__ = ["Confinement", "confinement_of"]


@attrs.frozen(kw_only=True)
class Confinement:
    """CPUs and memory nodes of one container.

    Attributes:
        cpus: Where it runs: its own CPUs, or the shared pool. None where nobody
            gives out CPUs.
        exclusive: Those of `cpus` that are its own.
        mems: NUMA nodes that it takes memory from; None for all.
    """

    cpus: CPUSet | None = None
    exclusive: CPUSet = CPUSet()
    mems: NodeSet | None = None


def confinement_of(snapshot: Snapshot, owner: Owner, /) -> Confinement:
    """Where an owner's container runs, by what the snapshot's allocators hold."""
    found = Confinement()
    for allocator in snapshot.allocators:
        if isinstance(allocator, CpuAllocator):
            found = attrs.evolve(
                found, cpus=allocator.cpus_of(owner), exclusive=allocator.exclusive_of(owner)
            )
        elif isinstance(allocator, MemoryAllocator):
            mems = allocator.mems(owner.workload, owner.member)
            found = attrs.evolve(found, mems=NodeSet.parse(mems) if mems else None)
    return found
