"""The static policy's decisions: pure functions from a state to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodealloc._typed import trusting
from nodealloc.cpuset._demand import CPU, demand_of
from nodealloc.cpuset._pickers import take_unbroken
from nodealloc.cpuset._state import Assignment, CpuState
from nodealloc.cpuset._take import check_taken
from nodealloc.idset import CPUSet
from nodealloc.topology import Hints, Shortfall, TopologyHint, peak

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nodealloc.cpuset._demand import Demand
    from nodealloc.cpuset._policy import StaticPolicy
    from nodealloc.topology import Claim

__all__ = ["SMT_ALIGNMENT", "choose", "grant", "hints_for", "room_for_shared", "shortfall"]

SMT_ALIGNMENT = "SMTAlignmentError"

_assignment, _shortfall = trusting(Assignment), trusting(Shortfall)


def hints_for(policy: StaticPolicy, state: CpuState, claims: Sequence[Claim], /) -> Hints:
    """Where the claims could go together; for claims that are held, where they are.

    Source: kubelet ``cm/cpumanager/policy_static.go``, `GetTopologyHints` and
    `GetPodTopologyHints`.
    """
    if not claims:
        return {}
    claim = claims[0]
    members = state.assignments.get(claim.owner.workload, ())
    if len(claims) == 1 and claim.owner.member not in members:
        request = demand_of(policy, claim).exclusive
        if not request:
            return {}
        free = policy.allocatable & ~state.held
        reusable = state.lent_to(claim) if claim.reuse else 0
        return {CPU: policy.hint_table.hints(free, request, reusable=reusable)}
    wanted = {claim.owner.member: demand_of(policy, claim).exclusive for claim in claims}
    if not any(wanted.values()):
        return {}
    request = peak(claims, lambda claim: wanted[claim.owner.member])
    held = 0
    for claim in claims if members else ():
        assignment = state.of(claim.owner)
        if assignment is not None:
            if len(assignment.cpus) != wanted[claim.owner.member]:
                return {CPU: ()}
            held |= assignment.cpus.mask
    if held.bit_count() == request:
        return {CPU: policy.hint_table.hints(held, request)}
    free = policy.allocatable & ~state.held
    return {CPU: policy.hint_table.hints(free, request, reusable=held)}


def grant(
    policy: StaticPolicy, state: CpuState, claim: Claim, affinity: TopologyHint, /
) -> CpuState | Shortfall:
    """The state with the claim granted on these nodes; `state` itself where there is nothing to do.

    Source: kubelet ``cm/cpumanager/policy_static.go``, `Allocate`. What is held
    already is answered first, also where no core would be free any more.
    """
    if not claim.exclusive and not policy.per_container:
        return state
    demand = demand_of(policy, claim)
    count = demand.exclusive
    if demand.fault:
        return Shortfall(resource=CPU, wanted=count, free=0, detail=demand.fault)
    owner = claim.owner
    if count == 0 or owner.member in state.assignments.get(owner.workload, ()):
        return state
    free = available = policy.allocatable & ~state.held
    if claim.reuse:
        available |= state.lent_to(claim)
    if policy.options.full_pcpus_only:
        # The kubelet counts before it thinks of what is lent.
        refusal = _smt_refusal(policy, available if policy.only_whole_cores else free, count)
        if refusal is not None:
            return refusal
    chosen = choose(policy, available, count, affinity.affinity)
    if not isinstance(chosen, int):
        return chosen
    assignment = _assignment(cpus=CPUSet.from_mask(chosen), shared_milli_cpu=demand.shared_milli_cpu)
    granted = state.with_assignment(claim.owner, assignment)
    if granted.shared_milli_cpu == 0:
        return granted
    return room_for_shared(policy, granted, demand) or granted


def choose(policy: StaticPolicy, available: int, count: int, nodes: int | None, /) -> int | Shortfall:
    """CPUs on the nodes first, then on any; whole cores where the policy says so.

    Args:
        policy: How to choose.
        available: CPUs that may be taken, as a mask.
        count: Whole CPUs, at least 1.
        nodes: NUMA nodes as a mask, or None for any.
    """
    taken = _take(policy, available, count, nodes)
    layout = policy.layout
    if policy.options.full_pcpus_only and policy.only_whole_cores and taken != layout.whole_cores(taken or 0):
        # A reserved or offline sibling, or a core of another size, leaves single threads behind.
        whole = layout.whole_cores(available)
        taken = _take(policy, whole, count, nodes)
        if taken is None or layout.whole_cores(taken) != taken:
            taken = take_unbroken(layout, whole, count, _local(policy, nodes))
        if taken is None:
            return shortfall(count, whole.bit_count(), "whole cores are asked for", reason=SMT_ALIGNMENT)
    if taken is None:
        return shortfall(count, available.bit_count(), "ask for fewer, or release some first")
    check_taken(policy.picker, taken, available, count)
    return taken


def _take(policy: StaticPolicy, available: int, count: int, nodes: int | None) -> int | None:
    layout, pick = policy.layout, policy.picker.pick
    if nodes is None:
        return pick(layout, available, count)
    aligned = available & _local(policy, nodes)
    there = aligned.bit_count()
    if there >= count:
        return pick(layout, aligned, count)
    near = pick(layout, aligned, there)
    if near is None:
        return None
    far = pick(layout, available & ~near, count - there)
    return None if far is None else near | far


def _local(policy: StaticPolicy, nodes: int | None) -> int:
    """CPUs that an affinity speaks of."""
    if nodes is None:
        return policy.layout.cpus
    layout = policy.layout
    return layout.sockets_on(nodes) if policy.options.align_by_socket else layout.on_nodes(nodes)


def _smt_refusal(policy: StaticPolicy, free: int, count: int) -> Shortfall | None:
    """Why whole cores, which are asked for, cannot be had, before anything is picked."""
    threads = policy.layout.threads_per_core
    physical = (free & ~policy.reserved_cores).bit_count()
    if policy.layout.uniform and count % threads:
        return shortfall(count, physical, f"ask for a multiple of {threads}", reason=SMT_ALIGNMENT)
    if count > physical:
        return shortfall(count, physical, "whole cores are asked for", reason=SMT_ALIGNMENT)
    return None


def room_for_shared(policy: StaticPolicy, state: CpuState, demand: Demand, /) -> Shortfall | None:
    """Why the shared pool is too small for what members were promised of it, or None."""
    promised = state.shared_milli_cpu
    if promised == 0:
        return None
    left = (policy.allocatable & ~state.held).bit_count()
    if promised <= 1000 * left:
        return None
    detail = (
        f"{promised}m CPU of the shared pool are promised beside exclusive CPUs, and {left} CPUs would be "
        f"left in it ({demand.exclusive} exclusive and {demand.shared_milli_cpu}m shared wanted); "
        "ask for fewer"
    )
    return Shortfall(resource=CPU, wanted=-(-promised // 1000), free=left, detail=detail)


def shortfall(
    wanted: int, free: int, remedy: str, /, *, reason: str = "UnexpectedAdmissionError"
) -> Shortfall:
    """A refusal with its numbers in words as well."""
    what = "whole cores" if reason == SMT_ALIGNMENT else "CPUs"
    detail = f"{wanted} exclusive CPUs wanted, {free} free in {what}; {remedy}"
    return _shortfall(resource=CPU, wanted=wanted, free=free, reason=reason, detail=detail)
