"""Kind `admission`: a whole node, step by step, with CPUs, memory and topology.

A trace admits and removes pods. Compared after each step: the verdict, its
reason, each container's affinity, CPUs and memory blocks, the shared pool, the
free bytes of each node and resource, and how many blocks name each node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from nodealloc import _attrs as attrs
from nodealloc.cpuset import CpuAllocator, CPUSet, NonePolicy, StaticOptions, StaticPolicy
from nodealloc.memblocks import (
    MemoryAllocator,
    MemoryPolicy,
    UnpinnedMemory,
)
from nodealloc.podspec import Container, Pod, Quantity
from nodealloc.testing.conformance._recorded_machine import recorded_machine
from nodealloc.topology import (
    Admitted,
    Claim,
    Hints,
    NumaTopology,
    Owner,
    Placed,
    Policy,
    Refusal,
    Scope,
    Shortfall,
    Snapshot,
    TopologyHint,
    admit,
    release,
)

if TYPE_CHECKING:
    from nodealloc.machine import Machine
    from nodealloc.podspec import Json
    from nodealloc.testing.conformance._kinds import Row

__all__ = ["admission", "recorded_pod", "snapshot_of"]

_Amounts = Mapping[str, str]
_Texts = Mapping[str, str]

_machines: dict[int, tuple[Row, Machine]] = {}


def admission(row: Row, machines: Mapping[str, Row]) -> tuple[Json, Json]:
    """Expected and got for the steps of one trace, up to the first that differs."""
    node = snapshot_of(row, machines)
    for index, step in enumerate(cast("Sequence[Row]", row["steps"])):
        node, got = _step(node, step)
        expected = {name: value for name, value in step.items() if name not in {"op", "pod", "uid"}}
        if got != expected:
            return {"step": index, **expected}, {"step": index, **got}
    return len(cast("Sequence[Row]", row["steps"])), len(cast("Sequence[Row]", row["steps"]))


def snapshot_of(row: Row, machines: Mapping[str, Row], /) -> Snapshot:
    """The empty node that a recorded trace starts with."""
    machine = _machine(machines[str(row["machine"])])
    policy = str(row["topology_policy"])
    return Snapshot(
        numa=NumaTopology(nodes=tuple(machine.nodes), distances=machine.distances or {}),
        policy=Policy.parse(policy, cast("_Texts", row["topology_policy_options"])),
        scope=Scope.parse(str(row["topology_scope"])),
        allocators=(_cpus(row, machine, policy), _memory(row, machine)),
    )


def _cpus(row: Row, machine: Machine, topology_policy: str) -> CpuAllocator:
    if row["cpu_policy"] == "none":
        return CpuAllocator(policy=NonePolicy.of(machine))
    return CpuAllocator(
        policy=StaticPolicy.of(
            machine,
            reserved=CPUSet.parse(str(row["reserved_cpus"])),
            options=StaticOptions.from_kubelet(cast("_Texts", row["cpu_policy_options"])),
            topology_policy=topology_policy,
        )
    )


def _memory(row: Row, machine: Machine) -> MemoryAllocator | UnpinnedMemory:
    reserved = cast("Mapping[str, Mapping[str, int]]", row["reserved_memory"])
    if row["memory_policy"] == MemoryPolicy.NONE.value:
        return UnpinnedMemory()
    return MemoryAllocator.of(
        machine,
        policy=MemoryPolicy(row["memory_policy"]),
        reserved={int(node): amounts for node, amounts in reserved.items()},
    )


def _machine(row: Row) -> Machine:
    # The row is kept beside its machine, so that its identity is not given to another.
    known = _machines.get(id(row))
    if known is None:
        known = _machines[id(row)] = (row, recorded_machine(row))
    return known[1]


def recorded_pod(row: Row, /) -> Pod:
    """The pod of one recorded step."""
    return Pod(
        uid=str(row["uid"]),
        init_containers=tuple(map(_container, cast("Sequence[Row]", row["init_containers"]))),
        containers=tuple(map(_container, cast("Sequence[Row]", row["containers"]))),
    )


def _container(row: Row) -> Container:
    limits = _amounts(row.get("limits"))
    return Container(
        name=str(row["name"]),
        requests={**limits, **_amounts(row.get("requests"))},
        limits=limits,
        restartable=bool(row.get("restartable")),
    )


def _amounts(recorded: Json) -> dict[str, Quantity]:
    return {name: Quantity.parse(text) for name, text in cast("_Amounts", recorded or {}).items()}


def _step(node: Snapshot, step: Row) -> tuple[Snapshot, dict[str, Json]]:
    if step["op"] == "remove":
        node = release(node, str(step["uid"]))
        return node, {"admit": False, **_figures(node)}
    pod = recorded_pod(cast("Row", step["pod"]))
    verdict = admit(node, pod)
    if isinstance(verdict, Admitted):
        node = verdict.snapshot
        return node, {"admit": True, **_held(verdict), **_figures(node)}
    if not isinstance(verdict, Refusal):
        return node, {"admit": False, "reason": str(verdict), **_figures(node)}
    node = _after_refusal(node, pod)
    return node, {"admit": False, "reason": verdict.reason, **_figures(node)}


def _held(verdict: Placed) -> dict[str, Json]:
    cpus, memory = _allocators(verdict.snapshot)
    members = sorted(verdict.affinity)
    owners = {member: Owner(verdict.workload, member) for member in members}
    exclusive = {member: cpus.exclusive_of(owner) for member, owner in owners.items()}
    blocks = {
        member: sorted(map(str, memory.state.blocks(owner)))
        for member, owner in owners.items()
        if isinstance(memory, MemoryAllocator)
    }
    held: dict[str, Json] = {
        "affinity": {member: [*verdict.affinity[member]] for member in members},
        "cpus": {member: str(found) for member, found in exclusive.items() if found},
        "memory": {member: found for member, found in blocks.items() if found},
    }
    return {name: value for name, value in held.items() if value}


def _figures(node: Snapshot) -> dict[str, Json]:
    cpus, memory = _allocators(node)
    figures: dict[str, Json] = {"default_cpuset": str(cpus.shared)}
    if isinstance(memory, MemoryAllocator):
        tables = memory.tables()
        figures["memory_free"] = {
            f"{one.node}/{resource}": table.free for one in tables for resource, table in one.tables.items()
        }
        figures["memory_assignments"] = {str(one.node): one.assignments for one in tables}
    return figures


def _allocators(node: Snapshot) -> tuple[CpuAllocator, MemoryAllocator | UnpinnedMemory]:
    cpus, memory = node.allocators
    return cast("CpuAllocator", cpus), cast("MemoryAllocator | UnpinnedMemory", memory)


def _after_refusal(node: Snapshot, pod: Pod) -> Snapshot:
    """The books of a kubelet that granted some of a pod's containers and took that back.

    Nothing is held afterwards, but inside a group of nodes the kubelet gives
    bytes back to the first node that lacks some, not to the one that they came
    from. Here a refusal changes nothing; the kubelet's books are got by going
    the same way: every value that admission came by is noted, the last one is
    emptied of the pod.
    """
    cpus, memory = _allocators(node)
    if not isinstance(memory, MemoryAllocator):
        return node
    passed: list[MemoryAllocator] = []
    admit(attrs.evolve(node, allocators=(cpus, _Noting(memory, passed))), pod)
    if not passed:
        return node
    return attrs.evolve(node, allocators=(cpus, passed[-1].release(pod.uid)))


@attrs.frozen
class _Noting:
    """A memory allocator that notes what becomes of it."""

    inner: MemoryAllocator
    passed: list[MemoryAllocator]

    @property
    def name(self) -> str:
        return self.inner.name

    def hints(self, claims: Sequence[Claim], /) -> Hints:
        return self.inner.hints(claims)

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> _Noting | Shortfall:
        granted = self.inner.allocate(claim, affinity)
        if isinstance(granted, Shortfall):
            return granted
        self.passed.append(granted)
        return _Noting(granted, self.passed)

    def release(self, workload: str, member: str | None = None, /) -> _Noting:
        return _Noting(self.inner.release(workload, member), self.passed)
