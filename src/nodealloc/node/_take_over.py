"""A kubelet's state files as rows, so that a node can be taken over as it is."""

from __future__ import annotations

from collections.abc import Mapping

from nodealloc.checkpoint import (
    CPU_STATE,
    DEVICE_STATE,
    MEMORY_STATE,
    Contents,
    CpuManagerState,
    CpuManagerStateV1,
    Damaged,
    DeviceManagerState,
    MemoryManagerState,
)
from nodealloc.cpuset import from_kubelet as cpus_from_kubelet
from nodealloc.cpuset import to_row
from nodealloc.memblocks import from_kubelet as memory_from_kubelet
from nodealloc.node._memory_keeper import memory_row
from nodealloc.node._record import WorkloadRecord
from nodealloc.podspec import Json
from nodealloc.topology import TopologyHint, Workload

__all__ = ["records_of_kubelet", "unreadable"]

_ANY = TopologyHint(affinity=None, preferred=False)


def records_of_kubelet(contents: Contents, /) -> dict[str, WorkloadRecord]:
    """What a kubelet had granted when it was stopped, by pod uid; claims are not in its files.

    Raises:
        DecodeError: A file's lists of CPUs or nodes make no sense.
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


def unreadable(contents: Contents, /) -> list[Damaged]:
    """Kubelet files that are sound and still say nothing without the runtime's help."""
    cpus = contents.values.get(CPU_STATE)
    if isinstance(cpus, CpuManagerStateV1) and cpus.entries:
        reason = "its layout names containers, not pods; commit what `migrate` makes of it, and start again"
        return [Damaged(key=CPU_STATE, reason=reason, kept_as=f"{CPU_STATE} (still in the store)")]
    return []


def _rows(contents: Contents) -> dict[str, dict[str, Json]]:
    rows: dict[str, dict[str, Json]] = {}
    cpus = contents.values.get(CPU_STATE)
    if isinstance(cpus, CpuManagerState):
        state = cpus_from_kubelet(cpus).state
        rows["cpu"] = {workload: to_row(state, workload) for workload in state.assignments}
    memory = contents.values.get(MEMORY_STATE)
    if isinstance(memory, MemoryManagerState):
        recorded = memory_from_kubelet(memory)
        rows["memory"] = {workload: memory_row(held) for workload, held in recorded.grants.items()}
    devices = contents.values.get(DEVICE_STATE)
    if isinstance(devices, DeviceManagerState):
        rows["devices"] = _devices(devices)
    return rows


def _devices(state: DeviceManagerState) -> dict[str, Json]:
    from nodealloc.devices import DeviceAllocator, restored, to_row  # noqa: PLC0415 - loads gRPC

    allocator = restored(DeviceAllocator(), state, now_s=0.0)
    return {workload: to_row(allocator, workload) for workload in allocator.grants}


def _members(row: Json) -> list[str]:
    if isinstance(row, Mapping):
        return list(row)
    return (
        [str(one["member"]) for one in row or () if isinstance(one, Mapping)] if isinstance(row, list) else []
    )
