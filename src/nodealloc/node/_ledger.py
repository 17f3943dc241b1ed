"""From what a node holds to what its store has to say of it; decides, writes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import attrs

from nodealloc.checkpoint import Checkpoint, row_key
from nodealloc.node._codec import to_checkpoint
from nodealloc.node._errors import NoKubeletFileError, NotRememberedError
from nodealloc.node._loading import ROW, StartReport
from nodealloc.node._ports import KubeletFile, TellsRegranted
from nodealloc.node._record import WorkloadRecord
from nodealloc.podspec import Json
from nodealloc.topology import Allocator, Remembers, Snapshot

__all__ = ["Ledger"]


@attrs.frozen(kw_only=True)
class Ledger:
    """How grants become rows, and which files of a kubelet are kept beside them.

    Attributes:
        kubelet_files: Names of allocators.
    """

    kubelet_files: frozenset[str]

    @classmethod
    def of(cls, empty: Snapshot, kubelet_files: Collection[str]) -> Ledger:
        """For the allocators of a node.

        Raises:
            NotRememberedError: One of them could not be restored.
            NoKubeletFileError: `kubelet_files` is text, or names an allocator
                that is not there or keeps no file of the kubelet's.
        """
        for one in empty.allocators:
            if not isinstance(one, Remembers):
                raise NotRememberedError(one.name, type(one).__name__)
        known = tuple(one.name for one in empty.allocators if isinstance(one, KubeletFile))
        if isinstance(kubelet_files, str):
            raise NoKubeletFileError(f"the text {kubelet_files!r}", known)
        for name in kubelet_files:
            if name not in known:
                raise NoKubeletFileError(repr(name), known)
        return cls(kubelet_files=frozenset(kubelet_files))

    def granted(self, record: WorkloadRecord, snapshot: Snapshot) -> WorkloadRecord:
        """The record with what the snapshot's allocators grant its workload."""
        grants = {one.name: _grants(one, record.workload.key) for one in snapshot.allocators}
        return attrs.evolve(record, grants={name: one for name, one in grants.items() if one is not None})

    def rows(self, records: Iterable[WorkloadRecord]) -> dict[str, Checkpoint]:
        """A row for each record."""
        return {row_key(ROW, one.workload.key): to_checkpoint(one) for one in records}

    def regranted(
        self, before: Allocator, after: Allocator, records: Mapping[str, WorkloadRecord]
    ) -> list[WorkloadRecord]:
        """Records of those whom an allocator grants something else now."""
        suspects = after.regranted(before) if isinstance(after, TellsRegranted) else records
        return [
            records[key]
            for key in suspects
            if key in records and _grants(after, key) != records[key].grants.get(after.name)
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
        if not self.kubelet_files:
            return {}
        earlier = {one.name: one for one in before.allocators} if before else {}
        files: dict[str, Checkpoint] = {}
        for one in after.allocators:
            was = earlier.get(one.name)
            if one.name in self.kubelet_files and one is not was and isinstance(one, KubeletFile):
                file = one.to_kubelet(was)
                if file is not None:
                    files[one.kubelet_key()] = file
        return files


def _grants(allocator: Allocator, workload: str) -> Json:
    return allocator.remembered(workload) if isinstance(allocator, Remembers) else None
