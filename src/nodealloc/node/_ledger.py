"""From what a node holds to what its store has to say of it; decides, writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from nodealloc.checkpoint import Checkpoint, row_key
from nodealloc.node._codec import to_checkpoint
from nodealloc.node._loading import ROW, StartReport
from nodealloc.node._ports import Keeper
from nodealloc.node._record import WorkloadRecord
from nodealloc.topology import Allocator, Snapshot

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

    def regranted(
        self, name: str, after: Allocator, records: Mapping[str, WorkloadRecord], suspects: Iterable[str]
    ) -> list[WorkloadRecord]:
        """Records of those suspects whom an allocator grants something else now."""
        grants = self.keepers[name].grants
        return [
            records[key]
            for key in suspects
            if key in records and grants(after, key) != records[key].grants.get(name)
        ]

    def accepted(
        self, report: StartReport, records: Mapping[str, WorkloadRecord], snapshot: Snapshot
    ) -> tuple[dict[str, WorkloadRecord], dict[str, Checkpoint | None]]:
        """The records once a start is accepted, and what the store has to forget and to learn for it."""
        adopted_since = {row_key(ROW, workload) for workload in records}
        forgotten = [row_key(ROW, workload) for workload in report.evicted]
        forgotten += [one.key for one in report.damaged if one.key != "*"]
        changes: dict[str, Checkpoint | None] = dict.fromkeys(set(forgotten) - adopted_since)
        kept = dict(records)
        if report.moved or report.taken_over:
            kept = {key: self.granted(one, snapshot) for key, one in records.items()}
            changes |= self.rows(kept.values())
        return kept, changes | self.files(snapshot)

    def files(self, after: Snapshot, before: Snapshot | None = None) -> dict[str, Checkpoint]:
        """The kubelet's files of a snapshot, or those that differ from another one's."""
        earlier = {one.name: one for one in before.allocators} if before else {}
        files: dict[str, Checkpoint] = {}
        for one in after.allocators:
            if one.name in self.kubelet_files and one is not earlier.get(one.name):
                files |= self.keepers[one.name].files(one, earlier.get(one.name))
        return files
