"""From one state to the next: grant, release, replay. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from nodealloc._entries import with_entry, without_entry
from nodealloc._frozen import extended
from nodealloc._typed import trusting
from nodealloc.errors import DecodeError, Fault
from nodealloc.idset import format_list
from nodealloc.memblocks._blocks import Block
from nodealloc.memblocks._layout import Demand, Layout, Row
from nodealloc.memblocks._shares import give, settle, take
from nodealloc.memblocks._state import NOBODY, Grants, Left, MemoryState, state_of
from nodealloc.topology import NumaMask, Owner

__all__ = ["blocks_of", "draw", "grant", "misnamed", "release", "replay"]


def grant(
    state: MemoryState,
    owner: Owner,
    nodes: NumaMask,
    demand: Demand,
    *,
    ended: Sequence[str],
    left: Left,
    strict: bool,
) -> MemoryState:
    """Grant a demand on a group of nodes, out of what ended members left there first.

    The blocks of those members shrink by what is reused, so that the blocks of
    a workload always add up to what it holds.

    Args:
        state: Where the group has the bytes free.
        owner: Who asks; holds nothing yet.
        nodes: The group.
        demand: What is asked.
        ended: Members whose memory may be reused, in the order in which they ran.
        left: What they left; `MemoryState.left_by`.
        strict: Whether shares within a group depend on what is held alone.

    Source: kubelet ``cm/memorymanager/policy_static.go``. It keeps what may be
    reused beside the state and loses it at a restart; here the blocks tell.
    """
    layout, columns = state.layout, state.layout.columns[nodes]
    blocks: list[Block] = []
    free = list(state.free)
    for row, size in demand:
        resource = layout.resources[row]
        blocks.append(_block(nodes, resource, size))
        fresh = size - left.get((nodes, resource), 0) if left else size
        if fresh > 0:
            free[row] = (
                settle(free[row], layout.allocatable[row], columns, fresh)
                if strict
                else take(free[row], columns, fresh)
            )
    assignments, groups = list(state.assignments), list(state.groups)
    for column in columns:
        assignments[column] += len(blocks)
        groups[column] = nodes
    members = state.grants.get(owner.workload, NOBODY)
    if left:
        members = _shrunk(members, ended, blocks)
    return state_of(
        layout=layout,
        free=tuple(free),
        assignments=tuple(assignments),
        groups=tuple(groups),
        grants=with_entry(state.grants, owner.workload, extended(members, owner.member, tuple(blocks))),
        generation=state.generation + 1,
    )


def _shrunk(
    members: Mapping[str, tuple[Block, ...]], ended: Iterable[str], blocks: Iterable[Block]
) -> Mapping[str, tuple[Block, ...]]:
    """The members without what these blocks take of those that have ended."""
    left = dict(members)
    for block in blocks:
        wanted = block.size_bytes
        for member in ended:
            shrunk: list[Block] = []
            for old in left.get(member, ()):
                same = old.nodes == block.nodes and old.resource == block.resource
                used = min(old.size_bytes, wanted) if same else 0
                wanted -= used
                shrunk.append(Block(old.nodes, old.resource, old.size_bytes - used) if used else old)
            if shrunk:
                left[member] = tuple(shrunk)
    return left


_block = trusting(Block)


def release(state: MemoryState, workload: str, member: str | None, *, strict: bool) -> MemoryState:
    """Give back what a member, or a whole workload, holds; the same state if that is nothing.

    Source: kubelet ``cm/memorymanager/policy_static.go``. It loses or doubles
    bytes where a single node was granted inside a group; here the nodes
    concerned are settled anew.
    """
    members = state.grants.get(workload)
    if members is None or (member is not None and member not in members):
        return state
    kept = {} if member is None else {name: held for name, held in members.items() if name != member}
    gone = [block for name, held in members.items() if name not in kept for block in held]
    grants = without_entry(state.grants, workload)
    if kept:
        grants = with_entry(grants, workload, kept)
    shared = any(_overlaps(state, block.nodes) for block in gone)
    if shared and strict:
        # Granted before the option was on; shares of one set say nothing about another's.
        return attrs.evolve(replay(state.layout, grants), generation=state.generation + 1)
    layout, free = state.layout, list(state.free)
    for block in gone:
        if block.size_bytes:
            row, columns = layout.row[block.resource], layout.columns[block.nodes]
            usable, size = layout.allocatable[row], block.size_bytes
            free[row] = (
                settle(free[row], usable, columns, -size)
                if strict
                else give(free[row], usable, columns, size)
            )
    left = tuple(free)
    if shared and not _truthful(layout, left, grants):
        left, _ = draw(layout, blocks_of(grants))
    assignments, groups = _without(state, gone)
    return state_of(
        layout=layout,
        free=left,
        assignments=assignments,
        groups=groups,
        grants=grants,
        generation=state.generation + 1,
    )


def _overlaps(state: MemoryState, nodes: NumaMask) -> bool:
    """Whether one of the nodes serves allocations of another set as well."""
    return any(group != nodes and group & nodes for group in state.groups)


def _without(state: MemoryState, gone: Iterable[Block]) -> tuple[Row, tuple[NumaMask, ...]]:
    """Assignments and groups after these blocks have gone."""
    assignments, groups = list(state.assignments), list(state.groups)
    for block in gone:
        for column in state.layout.columns[block.nodes]:
            assignments[column] -= 1
            if not assignments[column]:
                groups[column] = 1 << state.layout.nodes[column]
    return tuple(assignments), tuple(groups)


def _truthful(layout: Layout, free: Sequence[Row], grants: Grants) -> bool:
    """Whether the books have all held bytes, on each node those that must be there and none that cannot."""
    held = [0] * len(layout.resources)
    least = [[0] * len(layout.nodes) for _ in layout.resources]
    most = [[0] * len(layout.nodes) for _ in layout.resources]
    for block in blocks_of(grants):
        row, columns = layout.row[block.resource], layout.columns[block.nodes]
        held[row] += block.size_bytes
        for column in columns:
            most[row][column] += block.size_bytes
            least[row][column] += block.size_bytes if len(columns) == 1 else 0
    for row, usable in enumerate(layout.allocatable):
        reserved = [could - can for could, can in zip(usable, free[row], strict=True)]
        within = zip(least[row], reserved, most[row], strict=True)
        if sum(reserved) != held[row] or not all(low <= taken <= high for low, taken, high in within):
            return False
    return True


def blocks_of(grants: Grants, /) -> Iterator[Block]:
    """All blocks that are held."""
    for members in grants.values():
        for held in members.values():
            yield from held


def draw(layout: Layout, blocks: Iterable[Block], /) -> tuple[tuple[Row, ...], tuple[Fault, ...]]:
    """What is free beside these blocks, in whichever order they come, and what does not fit.

    Single nodes are served first, because only a group can give way.
    """
    wanted: dict[tuple[int, NumaMask, int], int] = {}
    for block in blocks:
        key = block.nodes.bit_count(), block.nodes, layout.row[block.resource]
        wanted[key] = wanted.get(key, 0) + block.size_bytes
    free = list(layout.allocatable)
    faults: list[Fault] = []
    for (_, nodes, row), size in sorted(wanted.items()):
        columns = layout.columns[nodes]
        have = sum([free[row][column] for column in columns])
        if size > have:
            where, name = format_list(nodes), layout.resources[row]
            what = f"{size} bytes of {name} are held on NUMA nodes {where}, which have {have} left for them"
            faults.append(Fault(f"$.nodes[{where}].{name}", what))
        free[row] = take(free[row], columns, min(size, have))
    return tuple(free), tuple(faults)


def replay(layout: Layout, grants: Grants) -> MemoryState:
    """The state that grants make, whatever the order in which they came.

    Raises:
        DecodeError: A block names a node or resource that the layout lacks, has
            a size that is no whole number of pages, or does not fit beside the
            others. Lists every fault.
    """
    faults = tuple(misnamed(layout, grants))
    if faults:
        raise DecodeError("memory grants", faults)
    free, faults = draw(layout, blocks_of(grants))
    if faults:
        raise DecodeError("memory grants", faults)
    assignments = [0] * len(layout.nodes)
    groups = [1 << node for node in layout.nodes]
    for block in sorted(blocks_of(grants), key=lambda block: (-block.nodes.bit_count(), block.nodes)):
        for column in layout.columns[block.nodes]:
            assignments[column] += 1
            groups[column] = block.nodes
    return MemoryState(
        layout=layout, free=free, assignments=tuple(assignments), groups=tuple(groups), grants=grants
    )


def misnamed(layout: Layout, grants: Grants, /) -> Iterator[Fault]:
    """Blocks that no machine of this layout could have granted."""
    for workload, members in grants.items():
        for member, held in members.items():
            for index, block in enumerate(held):
                reason = _block_fault(layout, block)
                if reason:
                    yield Fault(f"$.entries.{workload}.{member}[{index}]", reason)


def _block_fault(layout: Layout, block: Block) -> str:
    if block.nodes & ~layout.mask:
        return f"{block} is not on NUMA nodes of the machine, which has {format_list(layout.mask)}"
    row = layout.row.get(block.resource)
    if row is None:
        return f"{block} is of a resource that the machine lacks; it has {', '.join(layout.resources)}"
    if block.size_bytes < 0 or block.size_bytes % layout.pages[row]:
        return f"{block} is not a whole number of pages of {layout.pages[row]} bytes"
    return ""
