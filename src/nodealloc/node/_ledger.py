"""From what a node holds to what its store has to say of it; decides, writes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import TypeGuard

from nodealloc import _attrs as attrs
from nodealloc.checkpoint import Checkpoint, Store, require_formats, row_key
from nodealloc.errors import ConfigurationError
from nodealloc.node._codec import to_checkpoint
from nodealloc.node._errors import NoKubeletFileError, NotRememberedError
from nodealloc.node._holdings import Change, Held
from nodealloc.node._loading import SET_ASIDE, StartReport
from nodealloc.node._ports import KubeletFile, TellsRegranted
from nodealloc.node._record import ROW, WorkloadRecord
from nodealloc.podfacts import NodeView
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
    def of(cls, empty: Snapshot, kubelet_files: Collection[str], store: Store) -> Ledger:
        """For the allocators of a node.

        Raises:
            ConfigurationError: The node holds something, or the store has no format for what is kept.
            NotRememberedError: One of them could not be restored.
            NoKubeletFileError: `kubelet_files` is text, or names an allocator
                that is not there or keeps no file of the kubelet's, or two
                that keep the same one.
        """
        if empty.admitted:
            raise ConfigurationError(
                f"NodeAllocator, empty: {next(iter(empty.admitted))} is admitted there; give a snapshot "
                "with nothing held: what runs is known from the store, or told by `adopt`"
            )
        for one in empty.allocators:
            if not isinstance(one, Remembers):
                raise NotRememberedError(one.name, type(one).__name__)
        keys = {one.name: one.kubelet_key() for one in empty.allocators if isinstance(one, KubeletFile)}
        known = tuple(keys)
        if isinstance(kubelet_files, str):
            raise NoKubeletFileError(f"the text {kubelet_files!r}", known)
        kept: dict[str, str] = {}
        for name in kubelet_files:
            if name not in keys:
                raise NoKubeletFileError(repr(name), known)
            other = kept.setdefault(keys[name], name)
            if other != name:
                raise NoKubeletFileError(f"{name!r} beside {other!r}, which keeps the same file", known)
        rows = (f"{ROW}.*", f"{SET_ASIDE}.*", *kept)
        require_formats(store, rows, "NodeAllocator, store (nodealloc.node.FORMATS has them)")
        return cls(kubelet_files=frozenset(kubelet_files))

    def change(
        self,
        before: Snapshot,
        after: Snapshot,
        records: Iterable[WorkloadRecord] = (),
        *,
        forgotten: tuple[str, ...] = (),
        view: NodeView | None = None,
    ) -> Change:
        """From one snapshot to another, with these records as the later one grants them."""
        granted = tuple(self._granted(record, after) for record in records)
        rows = _rows(granted)
        rows.update((row_key(ROW, workload), None) for workload in forgotten)
        if self.kubelet_files:
            rows.update(self._files(after, before))
        return Change(snapshot=after, records=granted, forgotten=forgotten, rows=rows, view=view)

    def regranted(self, before: Allocator, after: Allocator, held: Held) -> list[WorkloadRecord]:
        """Records of those whom an allocator grants something else now."""
        records = held.records
        return [
            records[key]
            for key in _suspects(before, after, records)
            if key in records and _grants(after, key) != records[key].grants.get(after.name)
        ]

    def accepted(self, report: StartReport, held: Held) -> Change:
        """What becomes of a start that is accepted; writes to the store, whatever there is to say."""
        since = {row_key(ROW, workload) for workload in held.records}
        gone = [row_key(ROW, workload) for workload in report.evicted]
        gone += [one.key for one in report.damaged if one.key != "*"]
        rows: dict[str, Checkpoint | None] = dict.fromkeys(key for key in gone if key not in since)
        records: tuple[WorkloadRecord, ...] = ()
        if report.moved or report.taken_over:
            records = tuple(self._granted(one, held.snapshot) for one in held.records.values())
        rows |= _rows(records) | self._files(held.snapshot, None)
        return Change(snapshot=held.snapshot, records=records, rows=rows, proves=True)

    def _granted(self, record: WorkloadRecord, snapshot: Snapshot) -> WorkloadRecord:
        key, grants = record.workload.key, dict[str, Json]()
        for one in snapshot.allocators:
            granted = _grants(one, key)
            if granted is not None:
                grants[one.name] = granted
        # In full: `attrs.evolve` takes longer than all of the above.
        return WorkloadRecord(
            workload=record.workload,
            order=record.order,
            affinity=record.affinity,
            grants=grants,
            bound=record.bound,
            manifest=record.manifest,
        )

    def _files(self, after: Snapshot, before: Snapshot | None) -> dict[str, Checkpoint]:
        """The kubelet's files of a snapshot, or those that differ from another one's."""
        earlier = {one.name: one for one in before.allocators} if before else {}
        files: dict[str, Checkpoint] = {}
        for one in after.allocators:
            was = earlier.get(one.name)
            if one.name in self.kubelet_files and one is not was and _keeps_file(one):
                file = one.to_kubelet(was)
                if file is not None:
                    files[one.kubelet_key()] = file
        return files


def _suspects(before: Allocator, after: Allocator, records: Mapping[str, WorkloadRecord]) -> Iterable[str]:
    return after.regranted(before) if _tells_regranted(after) else records


def _rows(records: Iterable[WorkloadRecord]) -> dict[str, Checkpoint | None]:
    return {row_key(ROW, one.workload.key): to_checkpoint(one) for one in records}


def _grants(allocator: Allocator, workload: str) -> Json:
    return allocator.remembered(workload) if _remembers(allocator) else None


# A class is looked at once: looking for methods takes longer than most of them.


@cache
def _remembering(kind: type) -> bool:
    return issubclass(kind, Remembers)


@cache
def _telling(kind: type) -> bool:
    return issubclass(kind, TellsRegranted)


@cache
def _filing(kind: type) -> bool:
    return issubclass(kind, KubeletFile)


def _remembers(allocator: Allocator) -> TypeGuard[Remembers]:
    return _remembering(type(allocator))


def _tells_regranted(allocator: Allocator) -> TypeGuard[TellsRegranted]:
    return _telling(type(allocator))


def _keeps_file(allocator: Allocator) -> TypeGuard[KubeletFile]:
    return _filing(type(allocator))
