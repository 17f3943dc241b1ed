"""From what a store remembers to a snapshot, and what could not be kept; decides, writes nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import attrs

from nodealloc.checkpoint import Checkpoint, Contents, Damaged, JsonCheckpoint, Since, row_key
from nodealloc.errors import DecodeError, PermanentError
from nodealloc.node._codec import from_checkpoint
from nodealloc.node._ports import Keeper, Restored
from nodealloc.node._record import WorkloadRecord
from nodealloc.node._take_over import records_of_kubelet, unreadable
from nodealloc.podspec import Json
from nodealloc.topology import Snapshot, release

__all__ = ["ROW", "SET_ASIDE", "Loaded", "StartReport", "load"]

ROW = "workload"
"""Kind of a record's key in the store: `workload.<key of the workload>`."""
SET_ASIDE = "set-aside"
"""Kind under which what made no sense is kept, once its own key is written anew."""
_LONGEST = 200
"""Characters of a key that every store takes."""


@attrs.frozen(kw_only=True)
class StartReport:
    """What a start found, for people and for whoever has to act on it.

    Attributes:
        since: What happened since the last commit.
        kept: Workloads that hold what they held.
        moved: What is on other CPUs or nodes than before, a line each.
        evicted: Workload to the reason why it has no place any more. End its
            containers, then accept.
        damaged: What the store could not read. Adopt what runs, then accept.
        taken_over: Whether all of this came from a kubelet's state files; the
            claims will come with the pods.
        notes: What else changed, in words.
    """

    since: Since = Since.NEW
    kept: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    evicted: Mapping[str, str] = attrs.field(factory=dict[str, str])
    damaged: tuple[Damaged, ...] = ()
    taken_over: bool = False
    notes: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether everything is as it was, so that nobody has to look."""
        return not (self.moved or self.evicted or self.damaged)

    def __str__(self) -> str:
        """A line for each thing that changed, and one for what stays."""
        source = ", taken over from a kubelet" if self.taken_over else ""
        lines = [f"start after {self.since.value}: {len(self.kept)} workloads kept{source}"]
        lines += [f"moved {line}" for line in self.moved]
        lines += [f"evict {workload}: {reason}" for workload, reason in self.evicted.items()]
        lines += [f"damaged {one.key}: {one.reason}; kept as {one.kept_as}" for one in self.damaged]
        return "\n".join([*lines, *self.notes])


@attrs.frozen(kw_only=True)
class Loaded:
    """What a start would go on with.

    Attributes:
        snapshot: Everything that was kept and moved is in it.
        records: By workload, evicted ones left out.
        report: What changed.
        set_aside: What is sound and makes no sense, as it is to be kept.
    """

    snapshot: Snapshot
    records: Mapping[str, WorkloadRecord]
    report: StartReport
    set_aside: Mapping[str, Checkpoint]


def load(empty: Snapshot, contents: Contents, keepers: Mapping[str, Keeper], /) -> Loaded:
    """Put what was remembered into an empty snapshot.

    A workload that one allocator has to evict is released by all of them. A
    store without records of ours, but with a kubelet's state files, is taken over.

    Raises:
        PermanentError: An allocator has no keeper.
    """
    records, damaged = _records(contents)
    damaged += [_in_store(key, reason) for key, reason in unreadable(contents).items()] if not records else []
    taken_over = not records and not damaged and not contents.damaged
    records = records or (records_of_kubelet(contents) if taken_over else {})
    try:
        restored = _restored(empty, keepers, records)
    except DecodeError:
        damaged += _senseless(empty, keepers, records)
        lost = {one.key for one in damaged}
        records = {key: one for key, one in records.items() if row_key(ROW, key) not in lost}
        restored = _restored(empty, keepers, records)
    evicted = {workload: why for one in restored for workload, why in one.evicted.items()}
    kept = {key: record for key, record in records.items() if key not in evicted}
    snapshot = attrs.evolve(
        empty,
        allocators=tuple(one.allocator for one in restored),
        admitted={key: record.affinity for key, record in kept.items()},
        generation=max((record.order for record in records.values()), default=empty.generation),
    )
    for workload in evicted:
        snapshot = release(snapshot, workload)
    report = StartReport(
        since=contents.since,
        kept=tuple(kept),
        moved=tuple(line for one in restored for line in one.moved),
        evicted=evicted,
        damaged=(*contents.damaged, *damaged),
        taken_over=taken_over and bool(records),
        notes=tuple(line for one in restored for line in one.notes),
    )
    set_aside = {_aside(one.key): _to_keep(one.key, contents.values[one.key]) for one in damaged}
    return Loaded(snapshot=snapshot, records=kept, report=report, set_aside=set_aside)


def _records(contents: Contents) -> tuple[dict[str, WorkloadRecord], list[Damaged]]:
    """Records in the order of admission, and keys whose record makes no sense."""
    found: list[WorkloadRecord] = []
    damaged: list[Damaged] = []
    for key, checkpoint in contents.rows(f"{ROW}.", JsonCheckpoint).items():
        try:
            record = from_checkpoint(checkpoint)
        except DecodeError as error:
            damaged.append(_in_store(key, str(error)))
            continue
        if key == row_key(ROW, record.workload.key):
            found.append(record)
        else:
            damaged.append(
                _in_store(key, f"it is the record of {record.workload.key}, put under another key")
            )
    found.sort(key=lambda record: (record.order, record.workload.key))
    return {record.workload.key: record for record in found}, damaged


def _in_store(key: str, reason: str) -> Damaged:
    return Damaged(key=key, reason=reason, kept_as=f"{key}, and as {_aside(key)} once that is written anew")


def _aside(key: str) -> str:
    name = f"{SET_ASIDE}.{key}"
    if len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return f"{name[: _LONGEST - 17]}~{digest}"


def _to_keep(key: str, checkpoint: Checkpoint) -> JsonCheckpoint:
    text = checkpoint.marshal().decode(errors="backslashreplace")
    return JsonCheckpoint(kind=SET_ASIDE, version=1, value={"key": key, "text": text})


def _restored(
    empty: Snapshot, keepers: Mapping[str, Keeper], records: Mapping[str, WorkloadRecord]
) -> list[Restored]:
    return [_restore(allocator.name, empty, keepers, records) for allocator in empty.allocators]


def _senseless(
    empty: Snapshot, keepers: Mapping[str, Keeper], records: Mapping[str, WorkloadRecord]
) -> list[Damaged]:
    """The records whose grants a keeper cannot read, each tried alone."""
    found: list[Damaged] = []
    for key, record in records.items():
        try:
            _restored(empty, keepers, {key: record})
        except DecodeError as error:
            found.append(_in_store(row_key(ROW, key), str(error)))
    return found


def _restore(
    name: str, empty: Snapshot, keepers: Mapping[str, Keeper], records: Mapping[str, WorkloadRecord]
) -> Restored:
    allocator = next(one for one in empty.allocators if one.name == name)
    keeper = keepers.get(name)
    if keeper is None:
        known = ", ".join(sorted(keepers)) or "none"
        raise PermanentError(
            f"allocator {name} has no keeper, so its grants would be lost; keepers are: {known}"
        )
    grants: dict[str, Json] = {
        key: record.grants[name] for key, record in records.items() if name in record.grants
    }
    return keeper.restore(allocator, grants)
