"""A machine, and what stands in a store, as an argument of a command names them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

from nodealloc.checkpoint import MemoryStore, inspect
from nodealloc.cpuset import CpuAllocator
from nodealloc.errors import ConfigurationError, DecodeError, Fault
from nodealloc.idset import CPUSet
from nodealloc.machine import Machine, discover, machine_from_cadvisor, machine_from_json, machine_from_text
from nodealloc.node import FORMATS, NodeAllocator
from nodealloc.topology import Accounts, Holding, Snapshot

__all__ = ["HELP", "cpus_held", "held_by", "machine_of", "pairs", "restored"]

HELP = "a line such as '2 sockets x 8 cores x 2 threads', a JSON file, or a mounted or captured sysfs"


def machine_of(words: str, /) -> tuple[Machine, list[str]]:
    """The machine that is described, written or captured there; and what could not be known of it.

    Raises:
        NodeallocError: It is none.
    """
    path = Path(words)
    try:  # an empty text is a path as well, to where we are
        is_folder, is_file = bool(words) and path.is_dir(), path.is_file()
    except (OSError, ValueError):  # a line may be longer than any name of a file, and hold what no name does
        is_folder = is_file = False
    if is_folder:
        found = discover(path / "sys" if (path / "sys").is_dir() else path)
        return found.machine, [str(note) for note in found.notes]
    return (_written(path) if is_file else machine_from_text(words)), []


def _written(path: Path) -> Machine:
    """The machine of a JSON file."""
    try:
        document: object = json.loads(path.read_bytes())
    except (OSError, RecursionError, ValueError) as error:
        raise DecodeError(str(path), [Fault("$", f"no JSON: {error}")]) from error
    if not isinstance(document, dict):
        raise DecodeError(str(path), [Fault("$", "expected an object, as machine_to_json writes it")])
    fields = cast("Mapping[str, object]", document)
    # What cAdvisor and a kubelet's `/spec` tell has its topology in one field.
    if "topology" in fields:
        return machine_from_cadvisor(fields)
    return machine_from_json(fields, source=str(path))


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
    found = list(inspect(folder))
    faults = [Fault(one.place, one.reason) for one in found if not one.is_good]
    if whole and (faults or not found):
        raise DecodeError(folder, faults or [Fault("$", "no state file of a kubelet stands there")])
    good = {
        one.key: one.value for one in found if one.is_good and one.value is not None and not one.is_set_aside
    }
    notes = [f"{one.place}: {one.reason}" for one in found if not one.is_good]
    node = NodeAllocator(empty, MemoryStore(FORMATS, data={key: one.marshal() for key, one in good.items()}))
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
