"""How CPU assignments are remembered."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from nodealloc.checkpoint import CPU_STATE, Checkpoint
from nodealloc.cpuset import CpuAllocator, RecordedState, from_rows, restore, to_kubelet, to_row
from nodealloc.node._ports import Restored
from nodealloc.podspec import Json
from nodealloc.topology import Allocator

__all__ = ["CpuKeeper"]


@attrs.frozen
class CpuKeeper:
    """A `Keeper` for `nodealloc.cpuset.CpuAllocator`."""

    def grants(self, allocator: Allocator, workload: str, /) -> Json:
        """Member to its CPUs."""
        return to_row(_cpus(allocator).state, workload) or None

    def restore(self, allocator: Allocator, grants: Mapping[str, Json], /) -> Restored:
        """Assignments are kept, moved or evicted as `nodealloc.cpuset.restore` says."""
        policy = _cpus(allocator).policy
        plan = restore(policy, RecordedState(policy_name=policy.name, state=from_rows(grants)))
        moved = (
            f"{one.owner.workload}/{one.owner.member}: CPUs {one.before} to {one.after}: {one.reason}"
            for one in plan.move
        )
        return Restored(
            allocator=plan.allocator,
            moved=tuple(moved),
            evicted={one.owner.workload: one.reason for one in plan.evict},
            notes=plan.notes,
        )

    def files(self, allocator: Allocator, _before: Allocator | None = None, /) -> Mapping[str, Checkpoint]:
        """`cpu_manager_state`."""
        return {CPU_STATE: to_kubelet(_cpus(allocator))}


def _cpus(allocator: Allocator) -> CpuAllocator:
    if not isinstance(allocator, CpuAllocator):
        raise TypeError(
            f"{allocator.name} is a {type(allocator).__name__}, no CpuAllocator: give it another keeper"
        )
    return allocator
