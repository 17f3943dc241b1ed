"""From what a node holds to what its store has to say of it; decides, writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from nodealloc.checkpoint import Checkpoint, row_key
from nodealloc.node._codec import to_checkpoint
from nodealloc.node._loading import ROW
from nodealloc.node._ports import Keeper
from nodealloc.node._record import WorkloadRecord
from nodealloc.topology import Snapshot

__all__ = ["Ledger"]


@attrs.frozen(kw_only=True)
class Ledger:
    """In whose words grants are written, and which files of a kubelet are kept beside.

    Attributes:
        keepers: By name of the allocator.
        kubelet_files: Names of allocators.
    """

    keepers: Mapping[str, Keeper]
    kubelet_files: frozenset[str]

    def granted(self, record: WorkloadRecord, snapshot: Snapshot) -> WorkloadRecord:
        """The record with what the snapshot's allocators grant its workload."""
        grants = {
            one.name: self.keepers[one.name].grants(one, record.workload.key) for one in snapshot.allocators
        }
        return attrs.evolve(record, grants={name: one for name, one in grants.items() if one is not None})

    def rows(self, records: Iterable[WorkloadRecord]) -> dict[str, Checkpoint]:
        """A row for each record."""
        return {row_key(ROW, one.workload.key): to_checkpoint(one) for one in records}

    def files(self, after: Snapshot, before: Snapshot | None = None) -> dict[str, Checkpoint]:
        """The kubelet's files of a snapshot, or those that differ from another one's."""
        earlier = {one.name: one for one in before.allocators} if before else {}
        files: dict[str, Checkpoint] = {}
        for one in after.allocators:
            if one.name in self.kubelet_files and one is not earlier.get(one.name):
                files |= self.keepers[one.name].files(one, earlier.get(one.name))
        return files
