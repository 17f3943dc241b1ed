"""The remembered value: who holds which blocks, and what that leaves free."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from nodealloc import _attrs as attrs
from nodealloc._frozen import Frozen, freeze
from nodealloc._typed import trusting, typed, typed_fields, typed_methods
from nodealloc.memblocks._blocks import Block, MemoryTable, NodeMemory
from nodealloc.memblocks._layout import Layout, Row
from nodealloc.topology import Claim, NumaMask, Owner, lent

__all__ = ["NOBODY", "Grants", "Left", "MemoryState", "Shape", "state_of"]

Grants: TypeAlias = Mapping[str, Mapping[str, tuple[Block, ...]]]
"""Workload to member to the blocks that it holds, by resource name."""

Left: TypeAlias = Mapping[tuple[NumaMask, str], int]
"""Bytes that ended members left to reuse, by group of nodes and resource."""

NOBODY: Mapping[str, tuple[Block, ...]] = Frozen()
"""The members of a workload that holds nothing."""


class Shape(NamedTuple):
    """Which nodes are in use, and how.

    Attributes:
        unused: Nodes that no block names.
        grouped: Nodes that serve allocations of a group of two and more.
        groups: Those groups, each once, in no order.
    """

    unused: NumaMask
    grouped: NumaMask
    groups: tuple[NumaMask, ...]


@typed_methods
@typed_fields
@attrs.frozen(kw_only=True)
class MemoryState:
    """What is held and what is free. Rows and columns are those of the layout.

    Attributes:
        layout: What the nodes could grant were they empty.
        free: Bytes that can be granted, by resource and node.
        assignments: Blocks that name a node, by node.
        groups: Nodes that serve allocations together with a node, by node;
            a node that nothing names stands alone.
        grants: Who holds what.
        generation: Grows with every change; two states may be equal without it.
    """

    layout: Layout
    free: tuple[Row, ...]
    assignments: Row
    groups: tuple[NumaMask, ...]
    grants: Grants = attrs.field(factory=dict[str, Mapping[str, tuple[Block, ...]]], validator=freeze)
    generation: int = attrs.field(default=0, eq=False)
    _shape: Shape | None = attrs.field(default=None, init=False, eq=False, repr=False)

    @classmethod
    @typed
    def empty(cls, layout: Layout) -> MemoryState:
        """Nothing held."""
        return cls(
            layout=layout,
            free=layout.allocatable,
            assignments=(0,) * len(layout.nodes),
            groups=tuple(1 << node for node in layout.nodes),
        )

    @property
    def shape(self) -> Shape:
        """Which nodes are in use, and how; worked out when first asked for."""
        found = self._shape
        if found is None:
            found = self._worked_out()
            _set(self, "_shape", found)
        return found

    def _worked_out(self) -> Shape:
        singles, groups = self.layout.singles, self.groups
        unused = grouped = 0
        together: tuple[NumaMask, ...] = ()
        for column, count in enumerate(self.assignments):
            if not count:
                unused |= singles[column]
            elif groups[column] != singles[column]:
                grouped |= singles[column]
                if groups[column] not in together:
                    together = (*together, groups[column])
        return Shape(unused, grouped, together)

    def blocks(self, owner: Owner, /) -> tuple[Block, ...]:
        """What an owner holds; empty for an unknown one."""
        return self.grants.get(owner.workload, NOBODY).get(owner.member, ())

    def left_by(self, claim: Claim, /) -> Left:
        """Bytes that members of a claim's workload that have ended left to reuse.

        What others hold of a block has left it already: its bytes are theirs.
        """
        ended, _ = lent(claim, self.grants.get(claim.owner.workload, NOBODY).items())
        left: dict[tuple[NumaMask, str], int] = {}
        for block in [block for held in ended for block in held if block.size_bytes]:
            key = block.nodes, block.resource
            left[key] = left.get(key, 0) + block.size_bytes
        return left

    def tables(self) -> tuple[NodeMemory, ...]:
        """Every node with its tables, ascending by id."""
        return tuple(self._node(column, node) for column, node in enumerate(self.layout.nodes))

    def _node(self, column: int, node: int) -> NodeMemory:
        listed = [row for row, holders in enumerate(self.layout.holders) if holders >> node & 1]
        return NodeMemory(
            node=node,
            assignments=self.assignments[column],
            group=self.groups[column],
            tables={self.layout.resources[row]: self._table(row, column) for row in listed},
        )

    def _table(self, row: int, column: int) -> MemoryTable:
        layout, free = self.layout, self.free[row][column]
        usable = layout.allocatable[row][column]
        return MemoryTable(
            total=layout.total[row][column],
            system_reserved=layout.system_reserved[row][column],
            allocatable=usable,
            reserved=usable - free,
            free=free,
        )


state_of = trusting(MemoryState)
_set = object.__setattr__
