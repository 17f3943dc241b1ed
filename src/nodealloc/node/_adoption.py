"""Taking over what runs but is not remembered; decides, writes nothing."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from nodealloc.cpuset import Assignment, CpuAllocator, RecordedState, restore
from nodealloc.idset import NodeSet
from nodealloc.memblocks import MemoryAllocator
from nodealloc.node._confinement import Confinement
from nodealloc.node._errors import AdoptionError
from nodealloc.topology import Allocator, Claim, NotYet, Shortfall, Snapshot, TopologyHint, Workload

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
    if isinstance(allocator, CpuAllocator):
        return _on_cpus(allocator, claim, where)
    answer = allocator.allocate(claim, _hint(where))
    if isinstance(answer, Shortfall | NotYet):
        why = answer.message if isinstance(answer, NotYet) else answer.detail or f"no {answer.resource} there"
        raise AdoptionError(claim.owner, why)
    if where.mems and isinstance(answer, MemoryAllocator):
        mems = NodeSet.parse(answer.mems(claim.owner.workload, claim.owner.member))
        if not mems <= where.mems:
            # A static policy widens an affinity that does not suffice; this container stands already.
            raise AdoptionError(claim.owner, f"nodes {where.mems} have too little memory left, {mems} would")
    return answer


def _on_cpus(allocator: CpuAllocator, claim: Claim, where: Confinement) -> CpuAllocator:
    if not where.exclusive:
        return allocator
    state = allocator.state.with_assignment(claim.owner, Assignment(cpus=where.exclusive))
    plan = restore(allocator.policy, RecordedState(policy_name=allocator.policy.name, state=state))
    reasons = [*(one.reason for one in plan.move), *(one.reason for one in plan.evict)]
    if reasons:
        raise AdoptionError(claim.owner, f"CPUs {where.exclusive}: {reasons[0]}")
    return plan.allocator


def _hint(where: Confinement) -> TopologyHint:
    return TopologyHint(where.mems.mask if where.mems else None, preferred=False)
