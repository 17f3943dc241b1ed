"""The check that the books of a memory allocator have to pass at any moment.

>>> from nodealloc.machine import Machine, NumaNode
>>> from nodealloc.memblocks import MemoryAllocator
>>> check_books(MemoryAllocator.of(Machine(cpus=(), numa_nodes=(NumaNode(id=0, memory_bytes=1 << 30),))))
"""

from __future__ import annotations

from nodealloc.memblocks import Block, MemoryAllocator, UnpinnedMemory

__all__ = ["check_books"]


def check_books(allocator: MemoryAllocator | UnpinnedMemory, /) -> None:
    """Hold an allocator's figures to what nodes can be trusted with.

    No figure is below 0; what is reserved and free makes what is allocatable;
    on each node at least those bytes are reserved that can be nowhere else; in
    all as many bytes are reserved as are held; every block is counted on every
    node that it names, and in pages that are whole.

    Raises:
        AssertionError: A byte is granted twice, lost, or counted wrongly; the
            text says where, with the figures.
    """
    recorded = allocator.recorded()
    blocks = [block for members in recorded.grants.values() for held in members.values() for block in held]
    faults = recorded.faults()
    assert not faults, "; ".join(map(str, faults))
    for node in recorded.nodes:
        for resource, table in node.tables.items():
            where = f"NUMA node {node.node}, {resource}"
            assert min(table.free, table.reserved, table.allocatable) >= 0, f"{where}: below 0: {table}"
            pinned = _bytes(blocks, resource, 1 << node.node)
            assert table.reserved >= pinned, (
                f"{where}: {table.reserved} bytes are reserved, {pinned} are held on this node alone"
            )
    for resource in {name for node in recorded.nodes for name in node.tables}:
        reserved = sum(node.tables[resource].reserved for node in recorded.nodes if resource in node.tables)
        held = sum(block.size_bytes for block in blocks if block.resource == resource)
        assert reserved == held, f"{resource}: {reserved} bytes are reserved, {held} are held"
    assert all(members for members in recorded.grants.values()), "a workload without members is remembered"


def _bytes(blocks: list[Block], resource: str, nodes: int) -> int:
    return sum(block.size_bytes for block in blocks if block.resource == resource and block.nodes == nodes)
