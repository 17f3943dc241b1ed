"""Taking over what runs but is not remembered; decides, writes nothing."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from nodealloc.errors import ConfigurationError
from nodealloc.node._errors import AdoptionError
from nodealloc.topology import (
    Adopts,
    Allocator,
    Claim,
    ClaimKind,
    Confinement,
    NotYet,
    Shortfall,
    Snapshot,
    TopologyHint,
    Workload,
)

__all__ = ["adopted", "left_out"]


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
        ConfigurationError: Nothing runs, or a member that the workload has not.
    """
    _check_members(workload, running)
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


def left_out(claim: Claim, running: Mapping[str, Confinement], /) -> bool:
    """Whether a member of an adopted workload is still to be granted what it asks for.

    An init member that does not run has ended, or never will run: nothing starts behind it.
    """
    return claim.owner.member not in running and claim.kind is not ClaimKind.INIT


def _check_members(workload: Workload, running: Mapping[str, Confinement]) -> None:
    members = [claim.owner.member for claim in workload.claims]
    if not members:
        raise ConfigurationError(
            f"adopt: workload {workload.key!r} has no claims: give one for each member, "
            "with empty amounts where a member asks for nothing"
        )
    if stray := sorted(set(running) - set(members)):
        raise ConfigurationError(
            f"adopt: {', '.join(map(repr, stray))} is no member of workload {workload.key!r}, which has "
            f"{', '.join(map(repr, members))}; name its containers as they are named in it"
        )
    if not running:
        raise ConfigurationError(
            f"adopt: nothing of workload {workload.key!r} is said to run; name where its members are "
            "confined, or admit it"
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
