"""The allocator of CPUs: a policy and its state, as one immutable value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from nodealloc.cpuset._demand import CPU, demand_of
from nodealloc.cpuset._grant import grant, hints_for
from nodealloc.cpuset._policy import CpuPolicy, StaticPolicy
from nodealloc.cpuset._resize import resize
from nodealloc.cpuset._state import CpuState
from nodealloc.idset import CPUSet
from nodealloc.topology import Availability, Hints, Shortfall, TopologyHint, peak

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nodealloc.topology import Claim, Owner

__all__ = ["CpuAllocator"]


@attrs.frozen(kw_only=True)
class CpuAllocator:
    """CPUs of one node: an `Allocator` that `Reports`.

    Every method answers with a value and changes nothing. Can be pickled, and
    shared between threads.

    Attributes:
        policy: How CPUs are given out.
        state: Who holds which.
    """

    policy: CpuPolicy
    state: CpuState = attrs.field(factory=CpuState)

    @property
    def name(self) -> str:
        """`cpu`."""
        return CPU

    @property
    def shared(self) -> CPUSet:
        """The shared pool: where everybody runs who holds nothing."""
        return CPUSet.from_mask(self.policy.pool & ~self.state.held)

    def cpus_of(self, owner: Owner, /) -> CPUSet:
        """The CPUs that an owner may run on: its own, and the shared pool where it was promised a part."""
        assignment = self.state.of(owner)
        if assignment is None:
            return self.shared
        return assignment.cpus | self.shared if assignment.shared_milli_cpu else assignment.cpus

    def exclusive_of(self, owner: Owner, /) -> CPUSet:
        """The CPUs that an owner holds for itself; empty for one that shares."""
        assignment = self.state.of(owner)
        return CPUSet() if assignment is None else assignment.cpus

    def hints(self, claims: Sequence[Claim], /) -> Hints:
        """See `Allocator.hints`."""
        return hints_for(self.policy, self.state, claims) if isinstance(self.policy, StaticPolicy) else {}

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> CpuAllocator | Shortfall:
        """See `Allocator.allocate`."""
        if not isinstance(self.policy, StaticPolicy):
            return self
        state = grant(self.policy, self.state, claim, affinity)
        if state is self.state:
            return self
        return state if isinstance(state, Shortfall) else CpuAllocator(policy=self.policy, state=state)

    def release(self, workload: str, member: str | None = None, /) -> CpuAllocator:
        """See `Allocator.release`; the CPUs of an init member that has ended may go back by themselves."""
        return self._moved(self.state.without(workload, member))

    def resize(self, claim: Claim, /) -> CpuAllocator | Shortfall:
        """This allocator with the claim's owner holding as many CPUs as it asks for now.

        Needs `StaticPolicy.resizable`. Up keeps all that it has; down is a
        subset. See `docs/how-to/resize-a-container.md`.
        """
        if not isinstance(self.policy, StaticPolicy):
            return self
        state = resize(self.policy, self.state, claim)
        return state if isinstance(state, Shortfall) else self._moved(state)

    def availability(self, claims: Sequence[Claim], /) -> Sequence[Availability]:
        """See `Reports.availability`."""
        policy = self.policy
        if not isinstance(policy, StaticPolicy):
            return ()
        wanted = peak(claims, lambda claim: demand_of(policy, claim).exclusive)
        if wanted == 0:
            return ()
        free = policy.allocatable & ~self.state.held
        nodes = list(zip(policy.layout.node_ids, policy.layout.nodes, strict=True))
        return (
            Availability(
                resource=CPU,
                wanted=wanted,
                free={node: (cpus & free).bit_count() for node, cpus in nodes},
                allocatable={node: (cpus & policy.allocatable).bit_count() for node, cpus in nodes},
            ),
        )

    def _moved(self, state: CpuState) -> CpuAllocator:
        return self if state is self.state else CpuAllocator(policy=self.policy, state=state)
