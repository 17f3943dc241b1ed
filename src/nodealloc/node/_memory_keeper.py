"""How memory blocks are remembered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs
import cattrs

from nodealloc.checkpoint import MEMORY_STATE, Checkpoint
from nodealloc.errors import DecodeError, Fault
from nodealloc.memblocks import (
    Block,
    MemoryAllocator,
    RecordedState,
    UnpinnedMemory,
    restore,
    to_kubelet,
)
from nodealloc.node._ports import Restored
from nodealloc.podspec import Json
from nodealloc.topology import Allocator

__all__ = ["MemoryKeeper", "memory_row"]

_Rows = dict[str, dict[str, tuple[Block, ...]]]
_CONVERTER: Final = cattrs.Converter(forbid_extra_keys=True)


def memory_row(held: Mapping[str, Sequence[Block]], /) -> dict[str, Json]:
    """Member to its blocks: nodes as a mask, resource, bytes."""
    return {member: [attrs.asdict(block) for block in blocks] for member, blocks in held.items()}


@attrs.frozen
class MemoryKeeper:
    """A `Keeper` for the allocators of `nodealloc.memblocks`."""

    def grants(self, allocator: Allocator, workload: str, /) -> Json:
        """Member to its blocks: nodes as a mask, resource, bytes."""
        memory = _memory(allocator)
        if isinstance(memory, UnpinnedMemory):
            return None
        return memory_row(memory.state.grants.get(workload, {})) or None

    def restore(self, allocator: Allocator, grants: Mapping[str, Json], /) -> Restored:
        """Blocks are kept, moved or evicted as `nodealloc.memblocks.restore` says."""
        memory = _memory(allocator)
        try:
            remembered = _CONVERTER.structure(dict(grants), _Rows)
        except cattrs.BaseValidationError as error:
            faults = [Fault("$", line) for line in cattrs.transform_error(error)]
            raise DecodeError("memory grants", faults) from error
        plan = restore(memory, RecordedState(policy=memory.policy, grants=remembered))
        moved = (
            f"{one.owner.workload}/{one.owner.member}: memory {_listed(one.before)} "
            f"to {_listed(one.after)}: {one.reason}"
            for one in plan.move
        )
        return Restored(
            allocator=plan.allocator,
            moved=tuple(moved),
            evicted={one.owner.workload: one.reason for one in plan.evict},
        )

    def files(self, allocator: Allocator, _before: Allocator | None = None, /) -> Mapping[str, Checkpoint]:
        """`memory_manager_state`."""
        return {MEMORY_STATE: to_kubelet(_memory(allocator))}


def _memory(allocator: Allocator) -> MemoryAllocator | UnpinnedMemory:
    if not isinstance(allocator, MemoryAllocator | UnpinnedMemory):
        kind = type(allocator).__name__
        raise TypeError(f"{allocator.name} is a {kind}, no MemoryAllocator: give it another keeper")
    return allocator


def _listed(blocks: tuple[Block, ...]) -> str:
    return ", ".join(map(str, blocks)) or "anywhere"
