"""Values only: blocks of memory, and what one NUMA node has of one resource."""

from __future__ import annotations

from collections.abc import Mapping

from nodealloc import _attrs as attrs
from nodealloc._arguments import whole, wrong
from nodealloc._frozen import freeze
from nodealloc._typed import typed, typed_fields
from nodealloc.idset import NodeSet, bits
from nodealloc.podspec import Quantity, QuantityFormat, page_bytes
from nodealloc.topology import NumaMask

__all__ = ["HUGEPAGES", "MEMORY", "Block", "MemoryTable", "NodeMemory", "hugepages", "is_memory"]

MEMORY = "memory"
"""Ordinary memory, as Kubernetes names it."""

HUGEPAGES = "hugepages-"
"""What the name of every huge page resource begins with."""


@typed
def hugepages(page: int, /) -> str:
    """Resource name of huge pages of `page` bytes: 2097152 is ``hugepages-2Mi``.

    Raises:
        ConfigurationError: `page` is no power of two.
    """
    if page < 1 or page & (page - 1):
        raise wrong("hugepages: page", page, "bytes of one page, a power of two such as 2 << 20")
    return HUGEPAGES + str(Quantity(nanos=page * 10**9, format=QuantityFormat.BINARY_SI))


def is_memory(resource: str, /) -> bool:
    """Whether a resource is ordinary memory or huge pages."""
    return resource == MEMORY or page_bytes(resource) is not None


@typed_fields
@attrs.frozen
class Block:
    """Memory of one kind that one owner holds on a group of NUMA nodes.

    Attributes:
        nodes: The group as a mask, above 0. How the bytes spread over it is
            for the kernel to choose.
        resource: `memory` or `hugepages-<size>`.
        size_bytes: 0 when a later member of the same workload uses all of it.
    """

    nodes: NumaMask = attrs.field(validator=whole(1))
    resource: str
    size_bytes: int

    @property
    def node_set(self) -> NodeSet:
        """The group as a set of node ids."""
        return NodeSet.from_mask(self.nodes)

    def __str__(self) -> str:
        """`[0 1] memory 1073741824`."""
        ids = " ".join(map(str, bits(self.nodes)))
        return f"[{ids}] {self.resource} {self.size_bytes}"


@attrs.frozen(kw_only=True)
class MemoryTable:
    """One resource on one NUMA node, in bytes.

    `reserved + free == allocatable`, and for huge pages `allocatable +
    system_reserved == total`; ordinary memory counts the huge pages in `total`
    but not in `allocatable`.

    Attributes:
        total: What the node has.
        system_reserved: Kept for the system, never granted.
        allocatable: What could be granted were nothing held.
        reserved: What is held.
        free: What can be granted now.
    """

    total: int
    system_reserved: int
    allocatable: int
    reserved: int
    free: int


@typed_fields
@attrs.frozen(kw_only=True)
class NodeMemory:
    """One NUMA node as the state has it.

    Attributes:
        node: Its id.
        assignments: Blocks that name this node.
        group: Nodes that serve allocations together with this one, itself
            included, as a mask.
        tables: Resource name to its table, by name.
    """

    node: int
    assignments: int
    group: NumaMask
    tables: Mapping[str, MemoryTable] = attrs.field(validator=freeze)
