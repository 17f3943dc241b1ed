"""Resize of what runs: more or less memory on the nodes that it has; memory does not move.

Source: ours; a kubelet's memory manager resizes nothing.
"""

from __future__ import annotations

from nodealloc.memblocks._demand import demand_of
from nodealloc.memblocks._state import MemoryState
from nodealloc.topology import Claim, NumaMask, Owner, Shortfall

__all__ = ["moved", "nodes_to_resize"]

_INFEASIBLE = "Infeasible"


def nodes_to_resize(state: MemoryState, claim: Claim, /) -> NumaMask | Shortfall | None:
    """Where the claim's owner is granted what it asks for now; None where that is what it has."""
    held = {block.resource: block for block in state.blocks(claim.owner)}
    layout = state.layout
    demand = demand_of(layout, claim.amounts) if claim.exclusive else ()
    if isinstance(demand, Shortfall):
        return demand
    wanted = {layout.resources[row]: size for row, size in demand}
    if wanted == {name: block.size_bytes for name, block in held.items()}:
        return None
    if wanted.keys() != held.keys():
        name = min(wanted.keys() ^ held.keys())
        had = held[name].size_bytes if name in held else 0
        detail = (
            f"{name} resized from {had} to {wanted.get(name, 0)} bytes of its own; start it anew for that"
        )
        return Shortfall(resource=name, wanted=wanted.get(name, 0), free=0, reason=_INFEASIBLE, detail=detail)
    (nodes,) = {block.nodes for block in held.values()}
    return nodes


def moved(before: MemoryState, after: MemoryState, owner: Owner, /) -> Shortfall | None:
    """Why an owner cannot hold what a resize granted it, which is elsewhere; None where it is not."""
    held = {block.resource: block for block in before.blocks(owner)}
    granted = {block.resource: block for block in after.blocks(owner)}
    (nodes,) = {block.nodes for block in held.values()}
    if {block.nodes for block in granted.values()} == {nodes}:
        return None
    wanted = {name: block.size_bytes for name, block in granted.items()}
    name = max(wanted, key=lambda one: wanted[one] - held[one].size_bytes)
    return Shortfall(
        resource=name,
        wanted=wanted[name],
        free=held[name].size_bytes,
        nodes=nodes,
        detail=f"{wanted[name]} bytes of {name} need other NUMA nodes than its own, and memory does not "
        "move; ask for less, or start it anew",
    )
