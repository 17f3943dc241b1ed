"""CPUs of one node and who holds them, as one value; plans, pictures and files are made from it."""

from __future__ import annotations

import attrs

from nodealloc._arguments import check
from nodealloc.cpuset._policy import CpuPolicy, NonePolicy, StaticPolicy
from nodealloc.cpuset._state import CpuState
from nodealloc.idset import CPUSet
from nodealloc.topology import Owner

__all__ = ["CpuStock"]

_POLICY = "StaticPolicy.of(machine) or NonePolicy.of(machine)"
_OWNER = "an Owner(workload, member)"


def _policy(_instance: object, _attribute: object, policy: CpuPolicy) -> None:
    check("CpuAllocator.policy", policy, (StaticPolicy, NonePolicy), _POLICY)


@attrs.frozen(kw_only=True)
class CpuStock:
    """A policy and its state: the fields of `CpuAllocator`, which tells of each."""

    policy: CpuPolicy = attrs.field(validator=_policy)
    state: CpuState = attrs.field(factory=CpuState)

    @property
    def shared(self) -> CPUSet:
        """The shared pool: where everybody runs who holds nothing."""
        return CPUSet.from_mask(self.policy.pool & ~self.state.held)

    def cpus_of(self, owner: Owner, /) -> CPUSet:
        """The CPUs that an owner may run on: its own, and the shared pool where it was promised a part."""
        assignment = self.state.of(check("cpus_of", owner, Owner, _OWNER))
        if assignment is None:
            return self.shared
        return assignment.cpus | self.shared if assignment.shared_milli_cpu else assignment.cpus

    def exclusive_of(self, owner: Owner, /) -> CPUSet:
        """The CPUs that an owner holds for itself; empty for one that shares."""
        assignment = self.state.of(check("exclusive_of", owner, Owner, _OWNER))
        return CPUSet() if assignment is None else assignment.cpus
