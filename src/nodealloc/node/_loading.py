"""From what a store remembers to a snapshot, and what could not be kept; decides, writes nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from nodealloc import _attrs as attrs
from nodealloc._frozen import freeze
from nodealloc.checkpoint import Checkpoint, Contents, Damaged, JsonCheckpoint, Since, row_key
from nodealloc.errors import DecodeError
from nodealloc.node._codec import from_checkpoint
from nodealloc.node._record import ROW, WorkloadRecord
from nodealloc.node._take_over import read_kubelet
from nodealloc.podspec import Json
from nodealloc.topology import Remembers, Restored, Snapshot, release

__all__ = ["SET_ASIDE", "Loaded", "StartReport", "load"]

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
    evicted: Mapping[str, str] = attrs.field(factory=dict[str, str], validator=freeze)
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


def load(empty: Snapshot, contents: Contents, /) -> Loaded:
    """Put what was remembered into an empty snapshot, whose allocators all `Remembers`.

    A workload that one allocator has to evict is released by all of them. A
    store without records of ours, but with a kubelet's state files, is taken over.
    """
    records, damaged = _records(contents)
    kubelet = None if records else read_kubelet(contents, empty.allocators)
    damaged += [_in_store(key, reason) for key, reason in kubelet.unreadable.items()] if kubelet else []
    taken_over = not records and not damaged and not contents.damaged
    unread: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    if kubelet is not None and taken_over:
        records, unread, doubts = kubelet.records(), kubelet.unread, kubelet.doubts
    try:
        restored = _restored(empty, records)
    except DecodeError:
        damaged += _senseless(empty, records)
        lost = {one.key for one in damaged}
        records = {key: one for key, one in records.items() if row_key(ROW, key) not in lost}
        restored = _restored(empty, records)
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
        notes=(
            *doubts,
            *(line for one in restored for line in one.notes),
            *(f"{key} is there, and no allocator of this node reads it" for key in unread),
        ),
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


def _restored(empty: Snapshot, records: Mapping[str, WorkloadRecord]) -> list[Restored]:
    return [
        one.restored(_grants(one.name, records)) if isinstance(one, Remembers) else Restored(allocator=one)
        for one in empty.allocators
    ]


def _senseless(empty: Snapshot, records: Mapping[str, WorkloadRecord]) -> list[Damaged]:
    """The records whose grants an allocator cannot read, each tried alone."""
    found: list[Damaged] = []
    for key, record in records.items():
        try:
            _restored(empty, {key: record})
        except DecodeError as error:
            found.append(_in_store(row_key(ROW, key), str(error)))
    return found


def _grants(name: str, records: Mapping[str, WorkloadRecord]) -> dict[str, Json]:
    return {key: record.grants[name] for key, record in records.items() if name in record.grants}
