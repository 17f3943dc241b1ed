"""To and from what is stored: the kubelet's state file, and a record of our own."""

from __future__ import annotations

from collections.abc import Mapping

from nodealloc._reading import Reader, short
from nodealloc.checkpoint import CpuManagerState, JsonCheckpoint
from nodealloc.cpuset._recorded import RecordedCpus
from nodealloc.cpuset._state import Assignment, CpuState
from nodealloc.cpuset._stock import CpuStock
from nodealloc.errors import DecodeError, Fault
from nodealloc.idset import CPUSet
from nodealloc.podspec import Json

__all__ = ["from_kubelet", "from_record", "from_rows", "recorded", "to_kubelet", "to_record", "to_row"]

_RECORD_KIND = "cpuset"
"""Kind of our own record."""

_VERSION = 1
_SOURCE = "CPU state"
_MOST = 1 << 63
"""Counts beyond this are slips."""


def to_kubelet(stock: CpuStock, /) -> CpuManagerState:
    """See `CpuAllocator.to_kubelet`."""
    static = stock.policy.name == "static"
    return CpuManagerState(
        policy_name=stock.policy.name,
        default_cpuset=str(stock.shared) if static else "",
        entries={
            workload: {member: str(held.cpus) for member, held in members.items()}
            for workload, members in stock.state.assignments.items()
        },
    )


def recorded(stored: CpuManagerState | JsonCheckpoint | RecordedCpus, /) -> RecordedCpus:
    """What was remembered, from the file that says so."""
    if isinstance(stored, RecordedCpus):
        return stored
    return from_kubelet(stored) if isinstance(stored, CpuManagerState) else from_record(stored)


def from_kubelet(stored: CpuManagerState, /) -> RecordedCpus:
    """What a kubelet remembered, unchecked.

    CPUs that belong to a pod as a whole are held by its member "".

    Raises:
        DecodeError: A list of CPUs is none; names every one.
    """
    reading = _Reading()
    shared = reading.cpus(stored.default_cpuset, "$.defaultCpuSet", may_be_empty=True)
    assignments: dict[str, dict[str, Assignment]] = {}
    for workload, members in stored.entries.items():
        for member, text in members.items():
            cpus = reading.cpus(text, f"$.entries[{short(workload)}][{short(member)}]", may_be_empty=False)
            if cpus:
                assignments.setdefault(workload, {})[member] = Assignment(cpus=cpus)
    for workload, text in stored.pod_entries.items():
        cpus = reading.cpus(text, f"$.podEntries[{short(workload)}]", may_be_empty=False)
        if cpus:
            assignments.setdefault(workload, {})[""] = Assignment(cpus=cpus)
    reading.check()
    return RecordedCpus(
        policy_name=stored.policy_name, shared=shared, state=CpuState(assignments=assignments)
    )


def to_record(stock: CpuStock, /) -> JsonCheckpoint:
    """See `CpuAllocator.to_record`."""
    value: dict[str, Json] = {
        "policy": stock.policy.name,
        "shared": str(stock.shared),
        "generation": stock.state.generation,
        "assignments": {workload: to_row(stock.state, workload) for workload in stock.state.assignments},
    }
    return JsonCheckpoint(kind=_RECORD_KIND, version=_VERSION, value=value)


def from_record(record: JsonCheckpoint, /) -> RecordedCpus:
    """What `to_record` wrote, unchecked.

    Raises:
        DecodeError: Another kind or version, or fields of another shape.
    """
    if (record.kind, record.version) != (_RECORD_KIND, _VERSION):
        found = f"kind {record.kind!r} version {record.version}"
        reason = f"expected kind {_RECORD_KIND!r} version {_VERSION}, found {found}"
        raise DecodeError(_SOURCE, [Fault("$", reason)])
    reading = _Reading()
    value = reading.mapping(record.value, "$")
    assignments = reading.assignments(value.get("assignments"), "$.assignments")
    policy = reading.text(value.get("policy"), "$.policy")
    shared = reading.cpus(value.get("shared"), "$.shared", may_be_empty=True)
    generation = reading.whole(value.get("generation", 0), "$.generation", most=_MOST)
    reading.check()
    state = CpuState(assignments=assignments, generation=generation)
    return RecordedCpus(policy_name=policy, shared=shared, state=state)


def to_row(state: CpuState, workload: str, /) -> Mapping[str, Json]:
    """What one workload holds, for a store that keeps a row a workload; empty where that is nothing."""
    return {member: _written(held) for member, held in state.assignments.get(workload, {}).items()}


def from_rows(rows: Mapping[str, Json], /) -> CpuState:
    """The state that such rows make, unchecked; for a `RecordedCpus`.

    Args:
        rows: Workload to what `to_row` wrote of it, in the order of admission.

    Raises:
        DecodeError: Fields of another shape; names every one.
    """
    reading = _Reading()
    assignments = reading.assignments(rows, "$")
    reading.check()
    return CpuState(assignments=assignments)


def _written(held: Assignment) -> Json:
    written: dict[str, Json] = {"cpus": str(held.cpus)}
    if held.baseline is not None:
        written["baseline"] = str(held.baseline)
    if held.shared_milli_cpu:
        written["sharedMilliCpu"] = held.shared_milli_cpu
    return written


class _Reading(Reader):
    """Reads sets of CPUs, and who holds them."""

    def __init__(self) -> None:
        super().__init__(_SOURCE)

    def cpus(self, value: object, path: str, *, may_be_empty: bool) -> CPUSet:
        text = self.text(value, path)
        try:
            cpus = CPUSet.parse(text)
        except DecodeError as error:
            self.faults += [Fault(path, f"{fault.reason} at {fault.path}") for fault in error.faults]
            return CPUSet()
        if not cpus and not may_be_empty and isinstance(value, str):
            self.fault(path, "no CPUs; leave the entry out")
        return cpus

    def assignments(self, value: object, path: str) -> dict[str, dict[str, Assignment]]:
        found: dict[str, dict[str, Assignment]] = {}
        for workload, members in self.mapping(value, path).items():
            at = f"{path}[{short(workload)}]"
            for member, written in self.mapping(members, at).items():
                held = self.assignment(written, f"{at}[{short(member)}]")
                if held is not None:
                    found.setdefault(workload, {})[member] = held
        return found

    def assignment(self, value: object, path: str) -> Assignment | None:
        fields = self.mapping(value, path)
        cpus = self.cpus(fields.get("cpus"), f"{path}.cpus", may_be_empty=False)
        baseline = None
        if "baseline" in fields:
            baseline = self.cpus(fields["baseline"], f"{path}.baseline", may_be_empty=False)
        shared = self.whole(fields.get("sharedMilliCpu", 0), f"{path}.sharedMilliCpu", most=_MOST)
        return Assignment(cpus=cpus, baseline=baseline, shared_milli_cpu=shared) if cpus else None
