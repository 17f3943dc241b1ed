"""To and from the record of the kubelet's memory manager; the names in its file stop here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nodealloc.checkpoint import MemoryBlock, MemoryManagerState, MemoryNode
from nodealloc.checkpoint import MemoryTable as StoredTable
from nodealloc.errors import DecodeError, Fault
from nodealloc.idset import MAX_ID, bits
from nodealloc.memblocks._blocks import Block, MemoryTable, NodeMemory
from nodealloc.memblocks._options import MemoryPolicy
from nodealloc.memblocks._recorded import RecordedMemory
from nodealloc.topology import NumaMask

__all__ = ["from_kubelet", "recorded", "to_kubelet"]

_STATE = "memory manager state"


def to_kubelet(said: RecordedMemory, /) -> MemoryManagerState:
    """See `MemoryAllocator.to_kubelet`."""
    return MemoryManagerState(
        policy_name=said.policy.value,
        machine_state={node.node: _stored_node(node) for node in said.nodes},
        entries={
            workload: {member: tuple(map(_stored_block, held)) for member, held in members.items()}
            for workload, members in said.grants.items()
        },
    )


def _stored_node(node: NodeMemory) -> MemoryNode:
    tables = {
        resource: StoredTable(
            total=table.total,
            system_reserved=table.system_reserved,
            allocatable=table.allocatable,
            reserved=table.reserved,
            free=table.free,
        )
        for resource, table in node.tables.items()
    }
    return MemoryNode(
        number_of_assignments=node.assignments, memory_map=tables, cells=tuple(bits(node.group))
    )


def _stored_block(block: Block) -> MemoryBlock:
    return MemoryBlock(numa_affinity=tuple(bits(block.nodes)), type=block.resource, size=block.size_bytes)


def recorded(stored: MemoryManagerState | RecordedMemory, /) -> RecordedMemory:
    """What was remembered, from the file that says so."""
    return from_kubelet(stored) if isinstance(stored, MemoryManagerState) else stored


def from_kubelet(record: MemoryManagerState, /) -> RecordedMemory:
    """What a record says, blocks of one owner in the order of their resources.

    Raises:
        DecodeError: An unknown policy, a negative or enormous node id, a block
            without nodes, or memory that belongs to a whole pod (`pod_entries`),
            which has no owner here. Lists every fault.
    """
    faults: list[Fault] = []
    policy = MemoryPolicy.NONE
    try:
        policy = MemoryPolicy(record.policy_name)
    except ValueError:
        known = ", ".join(one.value for one in MemoryPolicy)
        faults.append(Fault("$.policyName", f"{record.policy_name!r} is not one of {known}"))
    faults += [
        Fault(f"$.podEntries[{pod!r}]", "memory of a whole pod; only members of a workload hold memory here")
        for pod in record.pod_entries
    ]
    nodes = [
        node
        for key, stored in sorted((record.machine_state or {}).items())
        for node in _node(key, stored, faults)
    ]
    grants = {
        workload: {
            member: _blocks(held or (), f"$.entries[{workload!r}][{member!r}]", faults)
            for member, held in members.items()
        }
        for workload, members in record.entries.items()
    }
    if faults:
        raise DecodeError(_STATE, faults)
    return RecordedMemory(policy=policy, nodes=tuple(nodes), grants=grants)


def _node(key: int, stored: MemoryNode, faults: list[Fault]) -> Iterator[NodeMemory]:
    path = f"$.machineState[{key}]"
    own = _mask((key,), path, faults)
    group = _mask(stored.cells or (key,), f"{path}.cells", faults)
    if own and group:
        tables = {
            resource: MemoryTable(
                total=table.total,
                system_reserved=table.system_reserved,
                allocatable=table.allocatable,
                reserved=table.reserved,
                free=table.free,
            )
            for resource, table in (stored.memory_map or {}).items()
        }
        yield NodeMemory(node=key, assignments=stored.number_of_assignments, group=group, tables=tables)


def _blocks(held: Sequence[MemoryBlock], path: str, faults: list[Fault]) -> tuple[Block, ...]:
    found: list[Block] = []
    for index, block in enumerate(held):
        nodes = _mask(block.numa_affinity or (), f"{path}[{index}].numaAffinity", faults)
        if nodes:
            found.append(Block(nodes, block.type, block.size))
    return tuple(sorted(found, key=lambda block: block.resource))


def _mask(ids: Sequence[int], path: str, faults: list[Fault]) -> NumaMask:
    """The ids as a mask; 0 after adding a fault."""
    if not ids:
        faults.append(Fault(path, "no NUMA node is named; name at least one"))
    elif not all(0 <= node <= MAX_ID for node in ids):
        faults.append(Fault(path, f"NUMA nodes {list(ids)} are not all from 0 to {MAX_ID}"))
    else:
        return sum({1 << node for node in ids})
    return 0
