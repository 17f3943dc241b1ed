"""The allocator of the policy that pins nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nodealloc import _attrs as attrs
from nodealloc._typed import typed_methods
from nodealloc.checkpoint import MEMORY_STATE, Checkpoint, MemoryManagerState
from nodealloc.memblocks import _abilities as abilities
from nodealloc.memblocks._blocks import MEMORY, is_memory
from nodealloc.memblocks._codec import recorded, to_kubelet
from nodealloc.memblocks._options import MemoryPolicy
from nodealloc.memblocks._recorded import RecordedMemory
from nodealloc.memblocks._restore import MAX_DRIFT_BYTES, MemoryRestorePlan, unpinned
from nodealloc.podspec import Json
from nodealloc.topology import (
    Allocator,
    Availability,
    Claim,
    Confinement,
    Hints,
    Holding,
    Owner,
    Recalled,
    ResourceUse,
    Restored,
    TopologyHint,
)

__all__ = ["UnpinnedMemory"]


@typed_methods
@attrs.frozen
class UnpinnedMemory:
    """The policy `None`: no preference, nothing pinned, nothing held."""

    @property
    def name(self) -> str:
        """`memory`."""
        return MEMORY

    @property
    def policy(self) -> MemoryPolicy:
        """`NONE`."""
        return MemoryPolicy.NONE

    def serves(self, resource: str, /) -> bool:
        """Memory and huge pages, of whatever size."""
        return is_memory(resource)

    def hints(self, claims: Sequence[Claim], /) -> Hints:
        """No preference about anything."""
        del claims
        return {}

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> UnpinnedMemory:
        """Itself."""
        del claim, affinity
        return self

    def release(self, workload: str, member: str | None = None, /) -> UnpinnedMemory:
        """Itself."""
        del workload, member
        return self

    def availability(self, claims: Sequence[Claim], /) -> Sequence[Availability]:
        """Nothing: what is not pinned has no node."""
        del claims
        return ()

    def recorded(self) -> RecordedMemory:
        """That nothing is held."""
        return RecordedMemory(policy=MemoryPolicy.NONE)

    def plan_restore(
        self,
        stored: MemoryManagerState | RecordedMemory,
        /,
        *,
        max_drift_bytes: int = MAX_DRIFT_BYTES,
    ) -> MemoryRestorePlan[UnpinnedMemory]:
        """See `MemoryAllocator.plan_restore`; who held blocks takes memory anywhere now."""
        del max_drift_bytes
        return unpinned(self, recorded(stored))

    def remembered(self, _workload: str, /) -> Json:
        """Nothing."""
        return None

    def restored(self, grants: Mapping[str, Json], /) -> Restored:
        """Itself; who held blocks takes memory anywhere now."""
        remembered = RecordedMemory(policy=self.policy, grants=abilities.from_rows(grants))
        return unpinned(self, remembered).restored("memory")

    def holdings(self) -> Sequence[Holding]:
        """Nothing."""
        return ()

    def capacity(self) -> Sequence[ResourceUse]:
        """Nothing: what is not pinned is not counted."""
        return ()

    def confinement(self, owner: Owner, /) -> Confinement:
        """To nothing."""
        del owner
        return Confinement()

    def adopted(self, claim: Claim, where: Confinement, /) -> UnpinnedMemory:
        """Itself."""
        del claim, where
        return self

    def kubelet_key(self) -> str:
        """`memory_manager_state`."""
        return MEMORY_STATE

    def to_kubelet(self, _before: Allocator | None = None, /) -> MemoryManagerState:
        """See `MemoryAllocator.to_kubelet`."""
        return to_kubelet(self.recorded())

    def from_kubelet(self, file: Checkpoint, /) -> Mapping[str, Recalled]:
        """See `MemoryAllocator.from_kubelet`."""
        return abilities.from_kubelet_file(file)
