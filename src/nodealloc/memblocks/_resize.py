"""Resize of what runs: more or less memory on the nodes that it has; memory does not move.

Source: ours; a kubelet's memory manager resizes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from nodealloc.errors import ConfigurationError
from nodealloc.memblocks._demand import demand_of
from nodealloc.memblocks._state import NOBODY, MemoryState
from nodealloc.topology import Claim, NumaMask, Owner, Shortfall, Workload

__all__ = ["moved", "nodes_to_resize", "to_regrant"]

_INFEASIBLE = "Infeasible"


def to_regrant(state: MemoryState, claim: Claim, workload: Workload | None, /) -> Sequence[Claim]:
    """Claims of a workload that hold something, as they are to be, in the order in which they start.

    What one holds depends on what it has over from those before it, so that all
    are granted anew where one is resized.

    Raises:
        ConfigurationError: The claim is none of its workload, or has memory over from a member that is
            not told.
    """
    claims = (claim,) if workload is None else workload.claims
    held = state.grants.get(claim.owner.workload, NOBODY)
    if claim not in claims:
        raise ConfigurationError(
            f"resize of {claim.owner.member}: not among the claims of workload "
            f"{workload.key if workload else claim.owner.workload!r}; give it all of them, as they are to be"
        )
    told = {one.owner.member for one in claims}
    untold = [name for name in claim.reuse if name in held and name not in told]
    if untold:
        raise ConfigurationError(
            f"resize of {claim.owner.member}: it may have memory over from {', '.join(untold)}; "
            "give the workload with their claims, so that they get back what they need"
        )
    return [one for one in claims if one.owner.member in held]


def nodes_to_resize(state: MemoryState, claim: Claim, /) -> NumaMask | Shortfall | None:
    """Where the claim's owner gets what it asks for now, which is where it is; None where that is nothing."""
    held = {block.resource: block for block in state.blocks(claim.owner)}
    layout = state.layout
    demand = demand_of(layout, claim.amounts) if claim.exclusive else ()
    if isinstance(demand, Shortfall):
        return demand
    wanted = {layout.resources[row]: size for row, size in demand}
    if wanted.keys() != held.keys():
        name = min(wanted.keys() ^ held.keys())
        had = held[name].size_bytes if name in held else 0
        detail = (
            f"{name} resized from {had} to {wanted.get(name, 0)} bytes of its own; start it anew for that"
        )
        return Shortfall(resource=name, wanted=wanted.get(name, 0), free=0, reason=_INFEASIBLE, detail=detail)
    return next((block.nodes for block in held.values()), None)


def moved(before: MemoryState, after: MemoryState, owner: Owner, /) -> Shortfall | None:
    """Why an owner cannot hold what a resize granted it, which is elsewhere; None where it is not."""
    held = {block.resource: block for block in before.blocks(owner)}
    granted = {block.resource: block for block in after.blocks(owner)}
    if all(block.nodes == held[name].nodes for name, block in granted.items()):
        return None
    wanted = {name: block.size_bytes for name, block in granted.items()}
    name = max(wanted, key=lambda one: wanted[one] - held[one].size_bytes)
    return Shortfall(
        resource=name,
        wanted=wanted[name],
        free=held[name].size_bytes,
        nodes=held[name].nodes,
        detail=f"{wanted[name]} bytes of {name} need other NUMA nodes than its own, and memory does not "
        "move; ask for less, or start it anew",
    )
