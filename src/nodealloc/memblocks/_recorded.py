"""Values only: what was decided before a restart, and whether its own books add up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from nodealloc import _attrs as attrs
from nodealloc.errors import Fault
from nodealloc.idset import format_list
from nodealloc.memblocks._blocks import Block, NodeMemory
from nodealloc.memblocks._granting import blocks_of
from nodealloc.memblocks._options import MemoryPolicy
from nodealloc.memblocks._state import Grants
from nodealloc.topology import NumaMask

__all__ = ["RecordedMemory"]


@attrs.frozen(kw_only=True)
class RecordedMemory:
    """A state as it was stored, not yet compared with any machine.

    Attributes:
        policy: Which policy made it.
        nodes: The figures of every NUMA node, ascending by id; empty where only
            the grants were stored.
        grants: Who held what.
    """

    policy: MemoryPolicy
    nodes: tuple[NodeMemory, ...] = ()
    grants: Grants = attrs.field(factory=dict[str, dict[str, tuple[Block, ...]]])

    def faults(self) -> tuple[Fault, ...]:
        """Where the figures contradict each other or the grants; empty for sound books, or for none."""
        if not self.nodes:
            return ()
        held = _Held(blocks_of(self.grants))
        return (
            *self._grant_faults(),
            *self._table_faults(held),
            *self._node_faults(held),
            *self._group_faults(held),
        )

    def _grant_faults(self) -> Iterator[Fault]:
        known = {node.node: node for node in self.nodes}
        sound: set[tuple[NumaMask, str]] = set()
        for workload, members in self.grants.items():
            for member, held in members.items():
                for index, block in enumerate(held):
                    if (block.nodes, block.resource) in sound:
                        continue
                    path = f"$.entries.{workload}.{member}[{index}]"
                    faults = [*_block_faults(block, known, path)]
                    yield from faults
                    if not faults:
                        sound.add((block.nodes, block.resource))

    def _table_faults(self, held: _Held) -> Iterator[Fault]:
        for node in self.nodes:
            for resource, table in node.tables.items():
                path = f"$.machineState[{node.node}].{resource}"
                usable, least = table.allocatable, held.sizes.get((1 << node.node, resource), 0)
                if table.reserved + table.free != usable:
                    parts = f"{table.reserved} reserved and {table.free} free bytes"
                    yield Fault(path, f"{parts} are not the {usable} allocatable")
                elif not least <= table.reserved <= usable:
                    alone = f"blocks on this node alone hold {least} of the {usable} allocatable"
                    yield Fault(path, f"{table.reserved} bytes are reserved, {alone}")

    def _node_faults(self, held: _Held) -> Iterator[Fault]:
        for node in self.nodes:
            path, own = f"$.machineState[{node.node}]", 1 << node.node
            groups = {group: count for group, count in held.counts.items() if group & own}
            named = sum(groups.values())
            if named != node.assignments:
                what = f"{node.assignments} assignments are counted, {named} blocks name the node"
                yield Fault(path, what)
            if node.group != own and node.group not in groups:
                known = ", ".join(sorted({format_list(group) for group in groups})) or "none"
                what = f"the node is in the group {format_list(node.group)}, its blocks are on {known}"
                yield Fault(path, what)

    def _group_faults(self, held: _Held) -> Iterator[Fault]:
        """Held bytes, group by group of nodes that blocks tie together."""
        for mask in _ties(held.counts, self.nodes):
            tied = [node for node in self.nodes if mask >> node.node & 1]
            for resource in sorted({name for node in tied for name in node.tables}):
                reserved = sum(node.tables[resource].reserved for node in tied if resource in node.tables)
                size = sum(
                    size for (nodes, name), size in held.sizes.items() if name == resource and nodes & mask
                )
                if reserved != size:
                    what = f"{reserved} bytes are reserved on NUMA nodes {format_list(mask)}, {size} are held"
                    yield Fault(f"$.machineState[{format_list(mask)}].{resource}", what)


class _Held:
    """What blocks hold together.

    Attributes:
        sizes: Bytes by group of nodes and resource.
        counts: Blocks by group of nodes.
    """

    def __init__(self, blocks: Iterable[Block]) -> None:
        self.sizes: dict[tuple[NumaMask, str], int] = {}
        self.counts: dict[NumaMask, int] = {}
        for block in blocks:
            key = block.nodes, block.resource
            self.sizes[key] = self.sizes.get(key, 0) + block.size_bytes
            self.counts[block.nodes] = self.counts.get(block.nodes, 0) + 1


def _block_faults(block: Block, known: Mapping[int, NodeMemory], path: str) -> Iterator[Fault]:
    for node in block.node_set:
        if node not in known:
            yield Fault(path, f"{block}: the state does not list NUMA node {node}")
        elif block.resource not in known[node].tables:
            yield Fault(path, f"{block}: NUMA node {node} lists no {block.resource}")


def _ties(groups: Iterable[NumaMask], nodes: tuple[NodeMemory, ...]) -> list[NumaMask]:
    """Nodes in sets that no group reaches across."""
    ties = [1 << node.node for node in nodes]
    for group in groups:
        reached = [mask for mask in ties if mask & group]
        joined = group
        for mask in reached:
            joined |= mask
        ties = [mask for mask in ties if mask not in reached] + [joined]
    return sorted(ties)
