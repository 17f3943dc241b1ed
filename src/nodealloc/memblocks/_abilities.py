"""What memory can do for a node besides being granted: be remembered, shown, confined to, adopted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import attrs
import cattrs

from nodealloc._stored import faults_of, row_converter
from nodealloc.checkpoint import Checkpoint, MemoryManagerState
from nodealloc.errors import DecodeError
from nodealloc.idset import NodeSet
from nodealloc.memblocks._blocks import Block, NodeMemory
from nodealloc.memblocks._codec import from_kubelet
from nodealloc.memblocks._state import MemoryState
from nodealloc.podspec import Json
from nodealloc.topology import Holding, Owner, Recalled, ResourceUse, Shortfall

__all__ = [
    "capacity",
    "elsewhere",
    "from_kubelet_file",
    "from_rows",
    "holdings",
    "nodes_of",
    "row",
]

_Rows = dict[str, dict[str, tuple[Block, ...]]]
_CONVERTER: Final = row_converter()


def row(grants: Mapping[str, Sequence[Block]], /) -> dict[str, Json]:
    """Member to its blocks: nodes as a mask, resource, bytes."""
    return {member: [attrs.asdict(block) for block in blocks] for member, blocks in grants.items()}


def from_rows(rows: Mapping[str, Json], /) -> _Rows:
    """Workload to member to blocks, from what `row` wrote of each workload.

    Raises:
        DecodeError: Something that `row` never says.
    """
    try:
        return _CONVERTER.structure(dict(rows), _Rows)
    except cattrs.BaseValidationError as error:
        raise DecodeError("memory grants", faults_of(error)) from error


def from_kubelet_file(file: Checkpoint, /) -> dict[str, Recalled]:
    """See `KubeletFile.from_kubelet`."""
    if not isinstance(file, MemoryManagerState):
        return {}
    grants = from_kubelet(file).grants
    return {
        workload: Recalled(members=tuple(members), grants=row(members))
        for workload, members in grants.items()
    }


def holdings(state: MemoryState, /) -> Iterator[Holding]:
    """See `Accounts.holdings`: an entry for each block."""
    for workload, members in state.grants.items():
        for member, blocks in members.items():
            for block in blocks:
                yield Holding(
                    owner=Owner(workload, member),
                    resource=block.resource,
                    amount=block.size_bytes,
                    nodes=block.node_set,
                )


def capacity(nodes: Iterable[NodeMemory], /) -> Iterator[ResourceUse]:
    """See `Accounts.capacity`."""
    for memory in nodes:
        for resource, table in memory.tables.items():
            there, free = table.allocatable, table.free
            yield ResourceUse(resource=resource, node=memory.node, allocatable=there, available=free)


def nodes_of(blocks: Iterable[Block], /) -> NodeSet | None:
    """The nodes of all these blocks, to which `cpuset.mems` confines their holder; None for no blocks.

    Source: ``cpuset(7)``; kubelet ``cm/memorymanager/memory_manager.go`` hands the
    same nodes to the runtime.
    """
    mask = 0
    for block in blocks:
        mask |= block.nodes
    return NodeSet.from_mask(mask) if mask else None


def elsewhere(blocks: Sequence[Block], where: NodeSet, /) -> Shortfall | None:
    """Why these blocks are not where a container stands; None where they are."""
    nodes = nodes_of(blocks)
    if nodes is None or nodes <= where:
        return None
    return Shortfall(
        resource=blocks[0].resource,
        wanted=sum(block.size_bytes for block in blocks if block.resource == blocks[0].resource),
        free=0,
        nodes=where.mask,
        detail=f"nodes {where} have too little memory left, {nodes} would",
    )
