"""A kubelet's state files as rows, so that a node can be taken over as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nodealloc.checkpoint import (
    CPU_STATE,
    DEVICE_STATE,
    MEMORY_STATE,
    Checkpoint,
    Contents,
    CpuManagerState,
    CpuManagerStateV1,
    DeviceManagerState,
    MemoryManagerState,
)
from nodealloc.cpuset import from_kubelet as cpus_from_kubelet
from nodealloc.cpuset import to_row
from nodealloc.errors import DecodeError, Fault
from nodealloc.memblocks import from_kubelet as memory_from_kubelet
from nodealloc.node._memory_keeper import memory_row
from nodealloc.node._record import WorkloadRecord
from nodealloc.podspec import Json
from nodealloc.topology import TopologyHint, Workload

__all__ = ["records_of_kubelet", "unreadable"]

_Rows = dict[str, Json]
_ANY = TopologyHint(affinity=None, preferred=False)


def records_of_kubelet(contents: Contents, /) -> dict[str, WorkloadRecord]:
    """What a kubelet had granted when it was stopped, by pod uid; claims are not in its files.

    Raises:
        DecodeError: A file is `unreadable`.
    """
    grants: dict[str, dict[str, Json]] = {}
    members: dict[str, dict[str, TopologyHint]] = {}
    for name, rows in _rows(contents).items():
        for workload, row in rows.items():
            grants.setdefault(workload, {})[name] = row
            members.setdefault(workload, {}).update(dict.fromkeys(_members(row), _ANY))
    return {
        key: WorkloadRecord(
            workload=Workload(key=key, claims=()), order=order, affinity=members[key], grants=grants[key]
        )
        for order, key in enumerate(sorted(grants), 1)
    }


def unreadable(contents: Contents, /) -> dict[str, str]:
    """Kubelet files that are sound and make no sense, or none without the runtime's help; and why."""
    found: dict[str, str] = {}
    for key, (_, rows_of) in _FILES.items():
        try:
            if key in contents.values:
                rows_of(contents.values[key])
        except DecodeError as error:
            found[key] = str(error)
    return found


def _rows(contents: Contents) -> dict[str, _Rows]:
    return {
        name: rows_of(contents.values[key])
        for key, (name, rows_of) in _FILES.items()
        if key in contents.values
    }


def _cpus(state: Checkpoint) -> _Rows:
    if isinstance(state, CpuManagerStateV1) and state.entries:
        reason = "its layout names containers, not pods; commit what `migrate` makes of it, and start again"
        raise DecodeError("CPU state", [Fault("$.entries", reason)])
    if not isinstance(state, CpuManagerState):
        return {}
    assigned = cpus_from_kubelet(state).state
    return {workload: to_row(assigned, workload) for workload in assigned.assignments}


def _memory(state: Checkpoint) -> _Rows:
    if not isinstance(state, MemoryManagerState):
        return {}
    grants = memory_from_kubelet(state).grants
    return {workload: memory_row(held) for workload, held in grants.items()}


def _devices(state: Checkpoint) -> _Rows:
    if not isinstance(state, DeviceManagerState):
        return {}
    from nodealloc.devices import DeviceAllocator, restored, to_row  # noqa: PLC0415 - loads gRPC

    allocator = restored(DeviceAllocator(), state, now_s=0.0)
    return {workload: to_row(allocator, workload) for workload in allocator.grants}


_FILES: Mapping[str, tuple[str, Callable[[Checkpoint], _Rows]]] = {
    CPU_STATE: ("cpu", _cpus),
    MEMORY_STATE: ("memory", _memory),
    DEVICE_STATE: ("devices", _devices),
}
"""Key of a file to the name of the allocator that it is about, and to what reads it."""


def _members(row: Json) -> list[str]:
    if isinstance(row, Mapping):
        return list(row)
    return (
        [str(one["member"]) for one in row or () if isinstance(one, Mapping)] if isinstance(row, list) else []
    )
