"""What CPUs can do for a node besides being granted: be remembered, shown, confined to, adopted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from nodealloc.checkpoint import Checkpoint, CpuManagerState, CpuManagerStateV1
from nodealloc.cpuset._codec import from_kubelet, from_rows, to_row
from nodealloc.cpuset._demand import CPU, Demand, demand_of
from nodealloc.cpuset._policy import StaticPolicy
from nodealloc.cpuset._recorded import RecordedCpus
from nodealloc.cpuset._restore import settled
from nodealloc.cpuset._state import Assignment, CpuState
from nodealloc.cpuset._stock import CpuStock
from nodealloc.errors import DecodeError, Fault
from nodealloc.idset import NodeSet
from nodealloc.podspec import Json
from nodealloc.topology import (
    Allocator,
    Claim,
    Confinement,
    Holding,
    Recalled,
    ResourceUse,
    Restored,
    Shortfall,
)

__all__ = ["adopted", "capacity", "from_kubelet_file", "holdings", "restored"]

A = TypeVar("A", bound=Allocator)


def restored(
    stock: CpuStock, grants: Mapping[str, Json], made: Callable[[CpuState], Allocator], /
) -> Restored:
    """See `Remembers.restored`; kept, moved or evicted as `CpuAllocator.plan_restore` says."""
    recorded = RecordedCpus(policy_name=stock.policy.name, state=from_rows(grants))
    return settled(stock, recorded, made).restored("CPUs")


def from_kubelet_file(file: Checkpoint, /) -> dict[str, Recalled]:
    """See `KubeletFile.from_kubelet`."""
    if isinstance(file, CpuManagerStateV1) and file.entries:
        reason = "its layout names containers, not pods; commit what `migrate` makes of it, and start again"
        raise DecodeError("CPU state", [Fault("$.entries", reason)])
    if not isinstance(file, CpuManagerState):
        return {}
    state = from_kubelet(file).state
    return {
        workload: Recalled(members=tuple(members), grants=to_row(state, workload))
        for workload, members in state.assignments.items()
    }


def holdings(stock: CpuStock, /) -> Iterator[Holding]:
    """See `Accounts.holdings`."""
    layout = stock.policy.layout
    for owner, assignment in stock.state.items():
        cpus = assignment.cpus
        nodes = NodeSet.from_mask(layout.nodes_of(cpus.mask))
        yield Holding(owner=owner, resource=CPU, amount=len(cpus), nodes=nodes, cpus=cpus)


def capacity(stock: CpuStock, /) -> Iterator[ResourceUse]:
    """See `Accounts.capacity`; nothing where nobody gets CPUs for itself."""
    policy = stock.policy
    usable = policy.allocatable if isinstance(policy, StaticPolicy) else 0
    free = usable & ~stock.state.held
    for node, cpus in zip(policy.layout.node_ids, policy.layout.nodes, strict=True):
        there, left = (cpus & usable).bit_count(), (cpus & free).bit_count()
        yield ResourceUse(resource=CPU, node=node, allocatable=there, available=left)


def adopted(
    stock: CpuStock, claim: Claim, where: Confinement, made: Callable[[CpuState], A], /
) -> A | Shortfall:
    """See `Adopts.adopted`; a container without CPUs of its own holds none."""
    if not where.exclusive:
        return made(stock.state)
    policy = stock.policy
    demand = demand_of(policy, claim) if isinstance(policy, StaticPolicy) else Demand()
    assignment = Assignment(cpus=where.exclusive, shared_milli_cpu=demand.shared_milli_cpu)
    state = stock.state.with_assignment(claim.owner, assignment)
    plan = settled(stock, RecordedCpus(policy_name=policy.name, state=state), made)
    reasons = [*(one.reason for one in plan.move), *(one.reason for one in plan.evict)]
    if not reasons:
        return plan.allocator
    usable = policy.allocatable if isinstance(policy, StaticPolicy) else 0
    return Shortfall(
        resource=CPU,
        wanted=demand.exclusive,
        free=(where.exclusive.mask & usable & ~stock.state.held).bit_count(),
        nodes=where.mems.mask if where.mems else None,
        detail=f"CPUs {where.exclusive}: {reasons[0]}",
    )
