"""Resize of what runs: more or less memory on the nodes that it has; memory does not move."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from nodealloc.memblocks._demand import demand_of
from nodealloc.topology import Shortfall, TopologyHint

if TYPE_CHECKING:
    from nodealloc.memblocks._allocator import MemoryAllocator
    from nodealloc.topology import Claim

__all__ = ["resize"]

_INFEASIBLE = "Infeasible"


def resize(allocator: MemoryAllocator, claim: Claim, /) -> MemoryAllocator | Shortfall:
    """The allocator with the claim's owner holding what it asks for now, on its own nodes.

    Source: ours; a kubelet's memory manager resizes nothing.
    """
    held = {block.resource: block for block in allocator.state.blocks(claim.owner)}
    layout = allocator.state.layout
    demand = demand_of(layout, claim.amounts) if claim.exclusive else ()
    if isinstance(demand, Shortfall):
        return demand
    wanted = {layout.resources[row]: size for row, size in demand}
    if wanted == {name: block.size_bytes for name, block in held.items()}:
        return allocator
    if wanted.keys() != held.keys():
        name = min(wanted.keys() ^ held.keys())
        had = held[name].size_bytes if name in held else 0
        detail = (
            f"{name} resized from {had} to {wanted.get(name, 0)} bytes of its own; start it anew for that"
        )
        return Shortfall(resource=name, wanted=wanted.get(name, 0), free=0, reason=_INFEASIBLE, detail=detail)
    (nodes,) = {block.nodes for block in held.values()}
    # What ended init members left stays theirs: only what the owner holds is given back and granted anew.
    alone = attrs.evolve(claim, reuse=())
    emptied = allocator.release(claim.owner.workload, claim.owner.member)
    after = emptied.allocate(alone, TopologyHint(affinity=nodes, preferred=True))
    if isinstance(after, Shortfall):
        return after
    if {block.nodes for block in after.state.blocks(claim.owner)} != {nodes}:
        name = max(wanted, key=lambda one: wanted[one] - held[one].size_bytes)
        return Shortfall(
            resource=name,
            wanted=wanted[name],
            free=held[name].size_bytes,
            nodes=nodes,
            detail=f"{wanted[name]} bytes of {name} need other NUMA nodes than its own, and memory does not "
            "move; ask for less, or start it anew",
        )
    return after
