"""What the nodes could grant were they empty: bytes per resource and NUMA node.

Everything here is fixed while an agent runs. Rows go by resource, columns by
the node's position among all nodes in ascending order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from nodealloc import _attrs as attrs
from nodealloc._derived import Derives
from nodealloc.errors import DecodeError, Fault
from nodealloc.idset import bits
from nodealloc.machine import Machine, NumaNode
from nodealloc.memblocks._blocks import MEMORY, hugepages, is_memory
from nodealloc.podspec import page_bytes
from nodealloc.topology import (
    LISTED_NODES,
    CountedHints,
    Need,
    NodeSets,
    NumaMask,
    TopologyHint,
)

__all__ = ["Demand", "Layout", "Reserved", "Row"]

Row: TypeAlias = tuple[int, ...]
"""Bytes of one resource, one figure a node."""

Demand: TypeAlias = tuple[tuple[int, int], ...]
"""What is asked: (row of the resource, bytes above 0), ascending by row."""

Reserved: TypeAlias = Mapping[int, Mapping[str, int]]
"""NUMA node id to resource name to bytes that the system keeps."""

_MAX_KNOWN = 8192


class _Columns(dict[NumaMask, tuple[int, ...]]):
    """Positions by set of nodes, worked out when first asked for."""

    def __init__(self, nodes: tuple[int, ...]) -> None:
        super().__init__()
        self._nodes = nodes

    def __missing__(self, mask: NumaMask) -> tuple[int, ...]:
        if len(self) > _MAX_KNOWN:
            self.clear()
        found = self[mask] = tuple([self._nodes.index(node) for node in bits(mask)])
        return found


@attrs.frozen(kw_only=True)
class Layout(Derives):
    """Memory of a machine, less what the system keeps.

    Attributes:
        nodes: NUMA node ids, ascending.
        resources: Resource names, ascending: `hugepages-*` before `memory`.
        holders: Per resource the nodes that list it, as a mask.
        total: Bytes that there are; ordinary memory includes the huge pages.
        system_reserved: Bytes that the system keeps.
        allocatable: Bytes that may be granted.
        mask: All nodes.
        singles: Every node as a mask of its own, ascending.
        sets: Every set of nodes, where the machine has so few nodes that they are listed.
        row: Row of a resource by its name.
        pages: Bytes of a page, one figure a resource; 1 for ordinary memory.
        most: The largest allocatable amount of any node, one figure a resource.
        columns: Positions of a set of nodes, ascending; every bit must be one of `nodes`.
    """

    nodes: tuple[int, ...]
    resources: tuple[str, ...]
    holders: tuple[NumaMask, ...]
    total: tuple[Row, ...]
    system_reserved: tuple[Row, ...]
    allocatable: tuple[Row, ...]
    mask: NumaMask = attrs.field(init=False, eq=False, repr=False)
    singles: tuple[NumaMask, ...] = attrs.field(init=False, eq=False, repr=False)
    sets: NodeSets | None = attrs.field(init=False, eq=False, repr=False)
    row: Mapping[str, int] = attrs.field(init=False, eq=False, repr=False)
    pages: Row = attrs.field(init=False, eq=False, repr=False)
    most: Row = attrs.field(init=False, eq=False, repr=False)
    columns: Mapping[NumaMask, tuple[int, ...]] = attrs.field(init=False, eq=False, repr=False)
    _holders: tuple[Callable[[int], int], ...] = attrs.field(init=False, eq=False, repr=False)
    _narrowest: dict[Demand, int] = attrs.field(init=False, eq=False, repr=False)
    _known_amounts: dict[tuple[int, NumaMask], tuple[tuple[NumaMask, int], ...]] = attrs.field(
        init=False, eq=False, repr=False
    )
    _sums: tuple[dict[NumaMask, int], ...] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        nodes, allocatable = self.nodes, self.allocatable
        sets = NodeSets.of(nodes) if len(nodes) <= LISTED_NODES else None
        for name, found in (
            ("mask", sum(1 << node for node in nodes)),
            ("singles", tuple(1 << node for node in nodes)),
            ("sets", sets),
            ("row", {resource: row for row, resource in enumerate(self.resources)}),
            ("pages", tuple(page_bytes(resource) or 1 for resource in self.resources)),
            ("most", tuple(max(row) for row in allocatable)),
            ("columns", _Columns(nodes)),
            ("_holders", tuple(sets.holders(row) for row in allocatable) if sets else ()),
            ("_narrowest", {}),
            ("_known_amounts", {}),
            ("_sums", tuple(dict[NumaMask, int]() for _ in self.resources)),
        ):
            object.__setattr__(self, name, found)

    @classmethod
    def of(cls, machine: Machine, reserved: Reserved) -> Layout:
        """Lay out a machine.

        Raises:
            DecodeError: Reserved bytes on a node or of a kind that the machine
                lacks, below 0, beyond what there is, or no multiple of the
                page; or huge pages beyond a node's memory. Lists every fault.

        Source: kubelet ``cm/memorymanager/policy_static.go``, whose unsigned
        arithmetic wraps around where this refuses.
        """
        faults = [*_faults(machine, reserved)]
        if faults:
            raise DecodeError("reserved memory", faults)
        nodes = machine.numa_nodes
        resources = (*sorted({hugepages(page) for node in nodes for page in node.hugepages}), MEMORY)
        total = [[_total(node, name) for node in nodes] for name in resources]
        kept = [[reserved.get(node.id, {}).get(name, 0) for node in nodes] for name in resources]
        usable = [
            [have - keep for have, keep in zip(*rows, strict=True)] for rows in zip(total, kept, strict=True)
        ]
        for row in total[:-1]:
            usable[-1] = [have - huge for have, huge in zip(usable[-1], row, strict=True)]
        return cls(
            nodes=tuple(node.id for node in nodes),
            resources=resources,
            holders=tuple(sum(1 << node.id for node in nodes if _lists(node, name)) for name in resources),
            total=_rows(total),
            system_reserved=_rows(kept),
            allocatable=_rows(usable),
        )

    def sum(self, row: int, mask: NumaMask, /) -> int:
        """Allocatable bytes of a resource on a set of nodes."""
        known = self._sums[row]
        found = known.get(mask)
        if found is None:
            if len(known) > _MAX_KNOWN:
                known.clear()
            figures = self.allocatable[row]
            found = known[mask] = sum([figures[column] for column in self.columns[mask]])
        return found

    def suffices(self, mask: NumaMask, demand: Demand, /) -> bool:
        """Whether a set of nodes could serve a demand were it empty."""
        return all(self.sum(row, mask) >= size for row, size in demand)

    def serving(self, demand: Demand, /) -> int:
        """Bits of the `sets` of nodes that could serve a demand were they empty."""
        found = -1
        for row, size in demand:
            found &= self._holders[row](size)
        return found

    def counted(
        self, demand: Demand, among: NumaMask, others: tuple[TopologyHint, ...], narrowest: int
    ) -> CountedHints:
        """Every set of these nodes that could serve a demand were they empty, and other sets beside them."""
        return CountedHints(
            nodes=among,
            needs=tuple([Need(wanted=size, amounts=self._amounts(row, among)) for row, size in demand]),
            preferred_width=narrowest,
            others=others,
        )

    def _amounts(self, row: int, among: NumaMask) -> tuple[tuple[NumaMask, int], ...]:
        """Allocatable bytes of a resource, node by node."""
        key = row, among
        found = self._known_amounts.get(key)
        if found is None:
            if len(self._known_amounts) > _MAX_KNOWN >> 5:
                self._known_amounts.clear()
            pairs = zip(self.singles, self.allocatable[row], strict=True)
            found = self._known_amounts[key] = tuple(
                [(single, size) for single, size in pairs if size and single & among]
            )
        return found

    def nodes_with(self, figures: Sequence[Row], demand: Demand, /) -> NumaMask:
        """Nodes that by themselves have what is asked, by these figures (rows and columns as here)."""
        able, singles = self.mask, self.singles
        for row, size in demand:
            for column, have in enumerate(figures[row]):
                if have < size:
                    able &= ~singles[column]
        return able

    def narrowest(self, demand: Demand, /) -> int:
        """Fewest nodes that could serve a demand were they empty; more than there are when none could.

        Raises:
            WorkLimitError: Several resources and uneven nodes made too much work.
        """
        if self.sets is not None:
            return self.sets.lowest(self.serving(demand)).bit_count() or len(self.nodes) + 1
        row, size = demand[0]
        if size <= self.most[row] if len(demand) == 1 else self.nodes_with(self.allocatable, demand):
            return 1
        found = self._narrowest.get(demand)
        if found is None:
            if len(self._narrowest) > _MAX_KNOWN:
                self._narrowest.clear()
            hint = self.counted(demand, self.mask, (), 0).narrowest()
            fewest = hint.affinity.bit_count() if hint and hint.affinity else len(self.nodes) + 1
            found = self._narrowest[demand] = fewest
        return found


def _rows(rows: Sequence[Sequence[int]]) -> tuple[Row, ...]:
    return tuple(tuple(row) for row in rows)


def _lists(node: NumaNode, resource: str) -> bool:
    return resource == MEMORY or any(hugepages(page) == resource for page in node.hugepages)


def _total(node: NumaNode, resource: str) -> int:
    if resource == MEMORY:
        return node.memory_bytes
    return sum(page * count for page, count in node.hugepages.items() if hugepages(page) == resource)


def _faults(machine: Machine, reserved: Reserved) -> Iterator[Fault]:
    if not machine.numa_nodes:
        yield Fault(
            "$", "the machine has no NUMA node, so there is no memory to grant; describe at least one"
        )
    for node_id, amounts in reserved.items():
        node = machine.node.get(node_id)
        if node is None:
            yield Fault(f"$[{node_id}]", f"there is no NUMA node {node_id}; the machine has {machine.nodes}")
            continue
        for name, size in amounts.items():
            reason = _reserved_fault(node, name, size)
            if reason:
                yield Fault(f"$[{node_id}].{name}", reason)
    for node in machine.numa_nodes:
        huge = sum(page * count for page, count in node.hugepages.items())
        kept = max(reserved.get(node.id, {}).get(MEMORY, 0), 0)
        if huge + kept > node.memory_bytes:
            yield Fault(
                f"$[{node.id}].{MEMORY}",
                f"{kept} bytes reserved and {huge} bytes of huge pages exceed the node's "
                f"{node.memory_bytes} bytes; reserve at most {max(node.memory_bytes - huge, 0)}",
            )


def _reserved_fault(node: NumaNode, resource: str, size: int) -> str:
    page = page_bytes(resource) or 1
    if not is_memory(resource):
        return f"{resource!r} is not a memory resource; use {MEMORY} or hugepages-<size>"
    if not _lists(node, resource):
        return f"NUMA node {node.id} has no {resource}; leave it out"
    if size < 0:
        return f"{size} bytes are below 0"
    if size % page:
        return f"{size} bytes are not a multiple of the page of {page} bytes; use {size - size % page}"
    if resource != MEMORY and size > _total(node, resource):
        return f"{size} bytes exceed the node's {_total(node, resource)} bytes"
    return ""
