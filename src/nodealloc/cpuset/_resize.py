"""Resize of what runs: up keeps what it has and adds, down goes back towards where it began."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from nodealloc.cpuset._demand import CPU, demand_of
from nodealloc.cpuset._grant import SMT_ALIGNMENT, choose, room_for_shared, shortfall
from nodealloc.idset import CPUSet
from nodealloc.topology import Shortfall

if TYPE_CHECKING:
    from nodealloc.cpuset._demand import Demand
    from nodealloc.cpuset._policy import StaticPolicy
    from nodealloc.cpuset._state import Assignment, CpuState
    from nodealloc.topology import Claim

__all__ = ["resize"]

_INFEASIBLE = "Infeasible"


def resize(policy: StaticPolicy, state: CpuState, claim: Claim, /) -> CpuState | Shortfall:
    """The state with the claim's owner holding as many CPUs as the claim now asks for.

    Growing keeps every CPU and adds near ones: of its NUMA nodes first.
    Shrinking below the size at admission returns a subset of the CPUs of then;
    down to a larger size keeps all of these. A shortfall leaves all as it was.

    Source: KEP-5554 for what is kept; the choice of CPUs is ours.
    """
    held = state.of(claim.owner)
    demand = demand_of(policy, claim)
    if held is not None and not demand.fault and _is_as_asked(held, demand):
        return state  # it asks for something else of another resource: there is nothing to resize here
    refusal = _refusal(policy, held, demand.exclusive, demand.fault)
    if refusal is not None or held is None:
        return refusal or state
    cpus = _resized(policy, state, held, demand.exclusive)
    if isinstance(cpus, Shortfall):
        return cpus
    baseline = held.cpus if held.baseline is None else held.baseline
    changed = attrs.evolve(
        held,
        cpus=cpus,
        baseline=None if cpus == baseline else baseline,
        shared_milli_cpu=demand.shared_milli_cpu,
    )
    if changed == held:
        return state
    resized = state.with_assignment(claim.owner, changed)
    grows = len(cpus) > len(held.cpus) or changed.shared_milli_cpu > held.shared_milli_cpu
    return (room_for_shared(policy, resized, demand) if grows else None) or resized


def _is_as_asked(held: Assignment, demand: Demand) -> bool:
    return (len(held.cpus), held.shared_milli_cpu) == (demand.exclusive, demand.shared_milli_cpu)


def _refusal(policy: StaticPolicy, held: Assignment | None, wanted: int, fault: str) -> Shortfall | None:
    now = 0 if held is None else len(held.cpus)
    if not policy.resizable:
        fault = "this node does not resize exclusive CPUs; switch StaticPolicy.resizable on, or start anew"
    elif held is None or wanted == 0:
        fault = fault or (
            f"resized from {now} to {wanted} exclusive CPUs; who changes between exclusive and shared "
            "CPUs has to start anew"
        )
    if fault:
        return Shortfall(resource=CPU, wanted=wanted, free=now, reason=_INFEASIBLE, detail=fault)
    threads = policy.layout.threads_per_core
    if policy.options.full_pcpus_only and policy.layout.uniform and wanted % threads:
        return shortfall(wanted, now, f"ask for a multiple of {threads}", reason=SMT_ALIGNMENT)
    return None


def _resized(policy: StaticPolicy, state: CpuState, held: Assignment, wanted: int) -> CPUSet | Shortfall:
    now = held.cpus.mask
    missing = wanted - len(held.cpus)
    if missing == 0:
        return held.cpus
    if missing > 0:
        free = policy.allocatable & ~state.held
        added = choose(policy, free, missing, policy.layout.nodes_of(now))
        return added if isinstance(added, Shortfall) else CPUSet.from_mask(now | added)
    first = now if held.baseline is None else held.baseline.mask & now
    kept = first if wanted >= first.bit_count() else 0
    rest = choose(policy, (now if kept else first) & ~kept, wanted - kept.bit_count(), None) if wanted else 0
    return rest if isinstance(rest, Shortfall) else CPUSet.from_mask(kept | rest)
