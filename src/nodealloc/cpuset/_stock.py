"""CPUs of one node and who holds them, as one value; plans, pictures and files are made from it."""

from __future__ import annotations

from nodealloc import _attrs as attrs
from nodealloc._arguments import check
from nodealloc.cpuset._policy import CpuPolicy, NonePolicy, StaticPolicy
from nodealloc.cpuset._state import CpuState
from nodealloc.idset import CPUSet

__all__ = ["CpuStock"]

_NOTHING_HELD = CpuState()

_POLICY = "StaticPolicy.of(machine) or NonePolicy.of(machine)"


def _policy(_instance: object, _attribute: object, policy: CpuPolicy) -> None:
    check("CpuAllocator.policy", policy, (StaticPolicy, NonePolicy), _POLICY)


@attrs.frozen(kw_only=True)
class CpuStock:
    """A policy and its state: the fields of `CpuAllocator`, which tells of each."""

    policy: CpuPolicy = attrs.field(validator=_policy)
    state: CpuState = _NOTHING_HELD

    @property
    def shared(self) -> CPUSet:
        """The shared pool: where everybody runs who holds nothing."""
        return CPUSet.from_mask(self.policy.pool & ~self.state.held)
