"""What becomes of remembered assignments when the machine or the policy has changed: keep, move or evict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

import attrs

from nodealloc.cpuset._grant import choose
from nodealloc.cpuset._policy import StaticPolicy
from nodealloc.cpuset._state import Assignment, CpuState
from nodealloc.cpuset._stock import CpuStock
from nodealloc.idset import CPUSet, bits
from nodealloc.topology import Allocator, Eviction, Move, Owner, RestorePlan, Shortfall

if TYPE_CHECKING:
    from nodealloc.cpuset._recorded import RecordedCpus

__all__ = ["settled"]

A = TypeVar("A", bound=Allocator)


def settled(
    stock: CpuStock, recorded: RecordedCpus, made: Callable[[CpuState], A], /
) -> RestorePlan[CPUSet, A]:
    """What `CpuAllocator.plan_restore` plans for a policy, whatever the stock holds.

    Args:
        stock: Whose policy.
        recorded: What was remembered.
        made: An allocator of that policy with a state.
    """
    policy = stock.policy
    if not isinstance(policy, StaticPolicy):
        return _without_exclusive(stock, recorded, made)
    plan = _Planning(policy, recorded.state)
    for workload, members in recorded.state.assignments.items():
        plan.settle(workload, members)
    plan.settle_homeless()
    state = plan.state(recorded.state)
    return RestorePlan(
        keep=tuple(plan.keep),
        move=tuple(plan.move),
        evict=tuple(plan.evict),
        notes=_notes(CpuStock(policy=policy, state=state), recorded),
        allocator=made(state),
    )


def _without_exclusive(
    stock: CpuStock, recorded: RecordedCpus, made: Callable[[CpuState], A]
) -> RestorePlan[CPUSet, A]:
    state = CpuState(generation=recorded.state.generation + len(recorded.state.assignments))
    after = CpuStock(policy=stock.policy, state=state)
    reason = f"policy {stock.policy.name} gives nobody CPUs for itself"
    moves = (
        Move(owner=owner, before=held.cpus, after=after.shared, reason=reason)
        for owner, held in recorded.state.items()
    )
    return RestorePlan(move=tuple(moves), notes=_notes(after, recorded), allocator=made(state))


def _notes(after: CpuStock, recorded: RecordedCpus) -> tuple[str, ...]:
    notes: list[str] = []
    if recorded.policy_name != after.policy.name:
        notes.append(f"policy was {recorded.policy_name}, is {after.policy.name}")
    if recorded.shared and recorded.shared != after.shared:
        notes.append(f"shared pool was {recorded.shared}, is {after.shared}")
    return tuple(notes)


class _Planning:
    """Workload by workload: what is settled so far."""

    def __init__(self, policy: StaticPolicy, remembered: CpuState) -> None:
        self.policy = policy
        self.keep: list[Owner] = []
        self.move: list[Move[CPUSet]] = []
        self.evict: list[Eviction[CPUSet]] = []
        self._settled: dict[str, Mapping[str, Assignment]] = {}
        self._homeless: dict[str, Mapping[str, Assignment]] = {}
        self._taken = 0
        # What somebody may keep is offered to nobody else, also not before his turn.
        self._claimed = remembered.held

    def state(self, before: CpuState) -> CpuState:
        changed = bool(self.move or self.evict)
        return CpuState(assignments=self._settled, generation=before.generation + changed)

    def settle(self, workload: str, members: Mapping[str, Assignment]) -> None:
        """Keep or move a workload; one that finds no place yet is homeless."""
        refused = self._find_place(workload, members)
        if refused:
            self._homeless[workload] = members

    def settle_homeless(self) -> None:
        """A second round for the homeless, who need not spare each other's CPUs any more."""
        self._claimed &= ~CpuState(assignments=self._homeless).held
        for workload, members in self._homeless.items():
            reason = self._find_place(workload, members)
            self.evict += [
                Eviction(owner=Owner(workload, member), before=assignment.cpus, reason=reason)
                for member, assignment in (members.items() if reason else ())
            ]

    def _find_place(self, workload: str, members: Mapping[str, Assignment]) -> str:
        """Keep or move a workload, or say why that cannot be."""
        held = 0
        for assignment in members.values():
            held |= assignment.cpus.mask
        lost = held & ~(self.policy.allocatable & ~self._taken)
        if not lost:
            self._settle(workload, members)
            self.keep += [Owner(workload, member) for member in members]
            return ""
        reason = self._reason(lost)
        if self.policy.options.full_pcpus_only:
            lost = self.policy.layout.siblings(lost) & held | lost
        free = self.policy.allocatable & ~self._taken & ~self._claimed & ~held
        near = self.policy.layout.nodes_of(held & ~lost) or None
        found = choose(self.policy, free, lost.bit_count(), near)
        if isinstance(found, Shortfall):
            return f"{reason}, and {found.detail}"
        self._exchange(workload, members, dict(zip(bits(lost), bits(found), strict=True)), reason)
        return ""

    def _exchange(
        self, workload: str, members: Mapping[str, Assignment], new: Mapping[int, int], reason: str
    ) -> None:
        moved: dict[str, Assignment] = {}
        for member, assignment in members.items():
            after = CPUSet(new.get(cpu, cpu) for cpu in assignment.cpus)
            baseline = assignment.baseline
            if baseline is not None:
                baseline = CPUSet(new.get(cpu, cpu) for cpu in baseline)
            moved[member] = attrs.evolve(assignment, cpus=after, baseline=baseline)
            owner = Owner(workload, member)
            if after == assignment.cpus:
                self.keep.append(owner)
            else:
                self.move.append(Move(owner=owner, before=assignment.cpus, after=after, reason=reason))
        self._settle(workload, moved)

    def _settle(self, workload: str, members: Mapping[str, Assignment]) -> None:
        self._settled[workload] = members
        for assignment in members.values():
            self._taken |= assignment.cpus.mask

    def _reason(self, lost: int) -> str:
        policy = self.policy
        parts = (
            ("not online on this machine", lost & ~policy.layout.cpus),
            ("reserved now", lost & policy.reserved.mask),
            ("held by another workload as well", lost & policy.allocatable),
        )
        return "; ".join(f"CPUs {CPUSet.from_mask(cpus)} are {what}" for what, cpus in parts if cpus)
