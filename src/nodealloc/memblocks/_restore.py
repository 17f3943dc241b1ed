"""What becomes of remembered grants when the machine or the policy has changed: keep, move or evict.

Per-node memory differs from boot to boot, because the kernel places its own
image at random and frees what it needed to start. The kubelet refuses to start
then; here the grants are booked anew, and only those that no longer fit are
reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from typing_extensions import override

from nodealloc import _attrs as attrs
from nodealloc.errors import ConfigurationError, Fault
from nodealloc.memblocks._blocks import MEMORY, Block, MemoryTable
from nodealloc.memblocks._granting import blocks_of, draw, misnamed, replay
from nodealloc.memblocks._layout import Layout
from nodealloc.memblocks._options import MemoryPolicy
from nodealloc.memblocks._recorded import RecordedMemory
from nodealloc.memblocks._state import Grants, MemoryState
from nodealloc.memblocks._static_policy import PlacementQuery
from nodealloc.memblocks._stock import MemoryStock
from nodealloc.topology import Allocator, Eviction, Move, NumaMask, Owner, RestorePlan

__all__ = ["MAX_DRIFT_BYTES", "Drift", "MemoryRestorePlan", "settled", "unpinned"]

A = TypeVar("A", bound=Allocator)

MAX_DRIFT_BYTES = 128 << 20
"""Change of a node's memory between boots that is no cause for concern: a kernel
image of up to 64 MiB, and as much again for what the kernel frees after start."""


@attrs.frozen(kw_only=True)
class Drift:
    """A figure of the machine that is not what it was.

    Attributes:
        node: NUMA node.
        resource: What is counted there.
        before_bytes: Total as remembered; 0 for a node or resource that is new.
        now_bytes: Total today; 0 for one that is gone.
        allowed_bytes: How far the two may lie apart without concern.
    """

    node: int
    resource: str
    before_bytes: int
    now_bytes: int
    allowed_bytes: int

    @property
    def is_beyond(self) -> bool:
        """Whether the change is larger than what a boot explains."""
        return abs(self.now_bytes - self.before_bytes) > self.allowed_bytes

    def __str__(self) -> str:
        """Node, resource, both figures, and the bound."""
        change = self.now_bytes - self.before_bytes
        return (
            f"NUMA node {self.node}: {self.resource} was {self.before_bytes} bytes and is {self.now_bytes} "
            f"({change:+d}; {self.allowed_bytes} allowed)"
        )


@attrs.frozen(kw_only=True)
class MemoryRestorePlan(RestorePlan[tuple[Block, ...], A]):
    """What a start would do with remembered memory, and how the machine's own has changed.

    Attributes:
        drifts: What the machine has more or less of.
        faults: Where the remembered figures did not add up; the books are made
            anew from the grants.
    """

    drifts: tuple[Drift, ...] = ()
    faults: tuple[Fault, ...] = ()

    @property
    def beyond(self) -> tuple[Drift, ...]:
        """Changes that no boot explains: a bank of memory less, another pool of huge pages."""
        return tuple(drift for drift in self.drifts if drift.is_beyond)

    @override
    def __str__(self) -> str:
        """One line for each change, and one for what stays."""
        return "\n".join([super().__str__(), *map(str, self.drifts), *map(str, self.faults)])


def settled(
    empty: MemoryStock,
    recorded: RecordedMemory,
    made: Callable[[MemoryState], A],
    /,
    *,
    max_drift_bytes: int = MAX_DRIFT_BYTES,
) -> MemoryRestorePlan[A]:
    """What `plan_restore` plans where memory is pinned; `made` gives an allocator its state."""
    if empty.state.grants:
        count = len(empty.state.grants)
        raise ConfigurationError(
            f"the allocator of today holds {count} workloads; give one that holds nothing"
        )
    layout, faults = empty.state.layout, recorded.faults()
    state, reasons = _stay(layout, recorded.grants)
    # Under `strict` the shares depend on the grants alone, however they were spread before.
    if not (empty.options.strict or faults or reasons) and _same_machine(recorded, layout):
        state = _as_stored(recorded, state)
    state = _rehome(state, {key: recorded.grants[key] for key in reasons})
    held = _owners(recorded.grants)
    return MemoryRestorePlan(
        keep=tuple(
            owner
            for owner, blocks in held
            if owner.workload in state.grants and state.blocks(owner) == blocks
        ),
        move=tuple(
            Move(owner=owner, before=blocks, after=state.blocks(owner), reason=reasons[owner.workload])
            for owner, blocks in held
            if owner.workload in state.grants and state.blocks(owner) != blocks
        ),
        evict=tuple(
            Eviction(owner=owner, before=blocks, reason=reasons[owner.workload])
            for owner, blocks in held
            if owner.workload not in state.grants
        ),
        drifts=tuple(_drifts(recorded, layout, max_drift_bytes)),
        faults=faults,
        notes=_notes(empty.policy, recorded),
        allocator=made(state),
    )


def _owners(grants: Grants) -> list[tuple[Owner, tuple[Block, ...]]]:
    """Every owner with what it holds, in the order of admission."""
    return [
        (Owner(workload, member), blocks)
        for workload, members in grants.items()
        for member, blocks in members.items()
    ]


def unpinned(empty: A, recorded: RecordedMemory, /) -> MemoryRestorePlan[A]:
    """What `plan_restore` plans where nothing is pinned."""
    reason = "policy None pins nothing"
    held = _owners(recorded.grants)
    moves = tuple(Move(owner=owner, before=blocks, after=(), reason=reason) for owner, blocks in held)
    return MemoryRestorePlan(move=moves, notes=_notes(MemoryPolicy.NONE, recorded), allocator=empty)


def _notes(now: MemoryPolicy, recorded: RecordedMemory) -> tuple[str, ...]:
    return () if recorded.policy is now else (f"policy was {recorded.policy.value}, is {now.value}",)


def _stay(layout: Layout, grants: Grants) -> tuple[MemoryState, Mapping[str, str]]:
    """The state of the workloads that still fit, and for the others why they do not."""
    reasons: dict[str, str] = {}
    if any(misnamed(layout, grants)):
        for workload, members in grants.items():
            faults = tuple(misnamed(layout, {workload: members}))
            if faults:
                reasons[workload] = "; ".join(fault.reason for fault in faults)
    fitting: Grants = {key: members for key, members in grants.items() if key not in reasons}
    if draw(layout, blocks_of(fitting))[1]:
        fitting = _as_many_as_fit(layout, fitting, reasons)
    return replay(layout, {key: members for key, members in grants.items() if key in fitting}), reasons


def _as_many_as_fit(layout: Layout, grants: Grants, reasons: dict[str, str]) -> Grants:
    staying: dict[str, Mapping[str, tuple[Block, ...]]] = {}
    for workload in sorted(grants, key=lambda key: (_size(grants[key]), key)):
        tried = {**staying, workload: grants[workload]}
        faults = draw(layout, blocks_of(tried))[1]
        if faults:
            reasons[workload] = "; ".join(fault.reason for fault in faults)
        else:
            staying = tried
    return staying


def _size(members: Mapping[str, tuple[Block, ...]]) -> int:
    return sum(block.size_bytes for held in members.values() for block in held)


def _rehome(state: MemoryState, homeless: Grants) -> MemoryState:
    """The state with those workloads in it that find another place, the smaller ones first.

    What a workload holds on one group goes together, and stays where it can.
    """
    for workload in sorted(homeless, key=lambda key: (_size(homeless[key]), key)):
        members = homeless[workload]
        staying, moving = state, list[NumaMask]()
        for nodes in sorted({block.nodes for block in blocks_of({workload: members})}):
            there = _added(staying, workload, members, nodes, nodes)
            if there is None:
                moving.append(nodes)
            else:
                staying = there
        placed: MemoryState | None = staying
        for nodes in moving:
            placed = None if placed is None else _elsewhere(placed, workload, members, nodes)
        state = placed or state
    return state


def _elsewhere(
    state: MemoryState, workload: str, members: Mapping[str, tuple[Block, ...]], nodes: NumaMask
) -> MemoryState | None:
    """The state with all that a workload held on one group put on another, or None."""
    layout = state.layout
    demand: dict[int, int] = {}
    for block in blocks_of({workload: members}):
        if block.nodes == nodes:
            row = layout.row.get(block.resource)
            if row is None:
                return None
            demand[row] = demand.get(row, 0) + block.size_bytes
    hint = PlacementQuery(layout, state, tuple(sorted(demand.items())), {}).best()
    if hint is None or hint.affinity is None:
        return None
    return _added(state, workload, members, nodes, hint.affinity)


def _added(
    state: MemoryState,
    workload: str,
    members: Mapping[str, tuple[Block, ...]],
    nodes: NumaMask,
    there: NumaMask,
) -> MemoryState | None:
    """The state with all that a workload held on `nodes` put on `there`; None where it does not fit."""
    already = state.grants.get(workload, {})
    placed = {
        member: already.get(member, ())
        + tuple(attrs.evolve(block, nodes=there) for block in held if block.nodes == nodes)
        for member, held in members.items()
    }
    grants = {**state.grants, workload: placed}
    if any(misnamed(state.layout, {workload: placed})) or draw(state.layout, blocks_of(grants))[1]:
        return None
    return replay(state.layout, grants)


def _same_machine(recorded: RecordedMemory, layout: Layout) -> bool:
    """Whether the machine has what it had, to the byte."""
    now = MemoryState.empty(layout).tables()
    return {node.node: _fixed(node.tables) for node in recorded.nodes} == {
        node.node: _fixed(node.tables) for node in now
    }


def _as_stored(recorded: RecordedMemory, state: MemoryState) -> MemoryState:
    """The state with bytes spread within groups as they were."""
    layout = state.layout
    stored = {node.node: node.tables for node in recorded.nodes}
    groups = {node.node: node.group for node in recorded.nodes}
    free = tuple(
        tuple(stored[node][name].free if name in stored[node] else 0 for node in layout.nodes)
        for name in layout.resources
    )
    return attrs.evolve(state, free=free, groups=tuple(groups[node] for node in layout.nodes))


def _fixed(tables: Mapping[str, MemoryTable]) -> Mapping[str, tuple[int, int, int]]:
    return {name: (table.total, table.system_reserved, table.allocatable) for name, table in tables.items()}


def _drifts(recorded: RecordedMemory, layout: Layout, max_drift_bytes: int) -> Iterator[Drift]:
    if not recorded.nodes:
        return
    before = {
        (node.node, name): table.total for node in recorded.nodes for name, table in node.tables.items()
    }
    now = {
        (node, name): layout.total[row][column]
        for row, name in enumerate(layout.resources)
        for column, node in enumerate(layout.nodes)
        if layout.holders[row] >> node & 1
    }
    for node, name in sorted({*before, *now}):
        was, is_now = before.get((node, name), 0), now.get((node, name), 0)
        if was != is_now:
            allowed = max_drift_bytes if name == MEMORY and was and is_now else 0
            yield Drift(node=node, resource=name, before_bytes=was, now_bytes=is_now, allowed_bytes=allowed)
