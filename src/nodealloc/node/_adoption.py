"""Taking over what runs but is not remembered; decides, writes nothing."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from nodealloc.node._errors import AdoptionError
from nodealloc.topology import (
    Adopts,
    Allocator,
    Claim,
    Confinement,
    NotYet,
    Shortfall,
    Snapshot,
    TopologyHint,
    Workload,
)

__all__ = ["adopted"]


def adopted(snapshot: Snapshot, workload: Workload, running: Mapping[str, Confinement], /) -> Snapshot:
    """The node with a workload in it that runs already, on the CPUs and nodes on which it runs.

    Args:
        snapshot: The node as it is remembered.
        workload: What was once asked.
        running: Member to where its container is confined now; members that do
            not run are left out, and hold nothing.

    Raises:
        AdoptionError: It runs on something that is held by others, or cannot be
            had: end it, or those others.
    """
    claims = [claim for claim in workload.claims if claim.owner.member in running]
    allocators: list[Allocator] = []
    for before in snapshot.allocators:
        allocator = before
        for claim in claims:
            allocator = _with(allocator, claim, running[claim.owner.member])
        allocators.append(allocator)
    affinity = {claim.owner.member: _hint(running[claim.owner.member]) for claim in claims}
    return attrs.evolve(
        snapshot,
        allocators=tuple(allocators),
        admitted={**snapshot.admitted, workload.key: affinity},
        generation=snapshot.generation + 1,
    )


def _with(allocator: Allocator, claim: Claim, where: Confinement) -> Allocator:
    if isinstance(allocator, Adopts):
        answer = allocator.adopted(claim, where)
    else:
        answer = allocator.allocate(claim, _hint(where))
        if answer == allocator:
            return allocator
        # It would grant what is free, and nobody knows whether the container runs on that.
        raise AdoptionError(
            claim.owner, f"allocator {allocator.name} cannot tell what it uses (it has no `adopted`)"
        )
    if isinstance(answer, Shortfall | NotYet):
        why = answer.message if isinstance(answer, NotYet) else answer.detail or f"no {answer.resource} there"
        raise AdoptionError(claim.owner, why)
    return answer


def _hint(where: Confinement) -> TopologyHint:
    return TopologyHint(where.mems.mask if where.mems else None, preferred=False)
