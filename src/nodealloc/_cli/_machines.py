"""What several commands share: how a machine is named, what a store says is held, and pairs of names."""

from __future__ import annotations

from collections.abc import Iterable

from nodealloc.checkpoint import JsonCheckpoint, MemoryStore, inspect
from nodealloc.cpuset import CpuAllocator
from nodealloc.errors import ConfigurationError, DecodeError, Fault
from nodealloc.idset import CPUSet
from nodealloc.machine import Machine
from nodealloc.node import FORMATS, NodeAllocator
from nodealloc.topology import Accounts, Holding, Snapshot

__all__ = ["HELP", "cpus_held", "held_by", "pairs", "restored"]

HELP = "a line such as '2 sockets x 8 cores x 2 threads', a JSON file, or a mounted or captured sysfs"


def restored(empty: Snapshot, folder: str, /, *, whole: bool = False) -> tuple[Snapshot, list[str]]:
    """The node with what a store, or a kubelet's root directory, says is held; and what was wrong there.

    Nothing there is locked, changed or repaired.

    Args:
        empty: The node.
        folder: The store, or the directory.
        whole: Whether a damaged file, or none at all, is an error: who holds what is not known then.

    Raises:
        NodeallocError: Nothing there can be read.
    """
    found = inspect(folder)
    faults = [Fault(one.place, one.reason) for one in found if not one.is_good]
    if whole and (faults or not found):
        raise DecodeError(folder, faults or [Fault("$", "no state file of a kubelet stands there")])
    good = {
        one.key: one.value for one in found if one.is_good and one.value is not None and not one.is_set_aside
    }
    notes = [f"{one.place}: {one.reason}" for one in found if not one.is_good]
    # Rows of an agent's other packages stand there as well; they say nothing of what is held.
    formats = {**FORMATS, "*": JsonCheckpoint.unmarshal}
    node = NodeAllocator(empty, MemoryStore(formats, data={key: one.marshal() for key, one in good.items()}))
    report = node.start()
    notes += [] if report.is_clean else [str(report)]
    return node.snapshot, notes


def held_by(snapshot: Snapshot, /) -> Iterable[Holding]:
    """What everybody holds of everything that is counted."""
    for allocator in snapshot.allocators:
        if isinstance(allocator, Accounts):
            yield from allocator.holdings()


def cpus_held(machine: Machine, store: str, /) -> tuple[dict[str, CPUSet | str], list[str]]:
    """`WORKLOAD/MEMBER` to its CPUs by what a store says, and what was wrong there."""
    empty = Snapshot.of(machine, allocators=[CpuAllocator.of(machine)])
    snapshot, notes = restored(empty, store)
    return {f"{one.owner.workload}/{one.owner.member}": one.cpus for one in held_by(snapshot)}, notes


def pairs(words: str, option: str, /, *more: str) -> dict[str, str]:
    """`K=V,K=V` as a mapping; of an option that was given several times, all of it.

    Raises:
        ConfigurationError: Something is no pair, or a name comes twice.
    """
    found: dict[str, str] = {}
    for one in filter(None, ",".join((words, *more)).split(",")):
        key, equals, value = one.partition("=")
        if not (key and equals and value):
            raise ConfigurationError(f"{option}: {one!r} is no pair; write NAME=VALUE")
        if key in found:
            raise ConfigurationError(f"{option}: {key} comes twice; give each name once")
        found[key] = value
    return found
