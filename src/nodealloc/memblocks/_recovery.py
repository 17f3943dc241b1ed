"""After a restart: which remembered grants stay, which move, which have to go.

Per-node memory differs from boot to boot, because the kernel places its own
image at random and frees what it needed to start. The kubelet refuses to start
then; here the grants are booked anew, and only those that no longer fit are
reported.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping

import attrs

from nodealloc.errors import Fault
from nodealloc.memblocks._allocator import MemoryAllocator
from nodealloc.memblocks._blocks import MEMORY, Block, MemoryTable
from nodealloc.memblocks._layout import Layout, Row
from nodealloc.memblocks._remembered import Remembered
from nodealloc.memblocks._state import Grants, MemoryState
from nodealloc.memblocks._static_policy import Question
from nodealloc.memblocks._transitions import blocks_of, draw, misnamed, replay
from nodealloc.topology import NumaMask, Owner

__all__ = ["MAX_DRIFT_BYTES", "Drift", "Fate", "MemoryPlan", "Outcome", "plan_recovery"]

MAX_DRIFT_BYTES = 128 << 20
"""Change of a node's memory between boots that is no cause for concern: a kernel
image of up to 64 MiB, and as much again for what the kernel frees after start."""


class Fate(enum.Enum):
    """What becomes of a remembered grant."""

    KEEP = "keep"
    """It stays where it is."""
    MOVE = "move"
    """It no longer fits where it is, but fits elsewhere."""
    EVICT = "evict"
    """It fits nowhere beside what stays."""


@attrs.frozen(kw_only=True)
class Outcome:
    """What becomes of one owner's blocks.

    Attributes:
        owner: Who holds them.
        fate: Keep, move or evict.
        before: The blocks as remembered.
        after: The blocks afterwards; empty after an eviction.
        reason: Why they cannot stay, with figures; "" for those that do.
    """

    owner: Owner
    fate: Fate
    before: tuple[Block, ...]
    after: tuple[Block, ...]
    reason: str = ""


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
        return (
            f"NUMA node {self.node}: {self.resource} was {self.before_bytes} bytes and is {self.now_bytes} "
            f"({self.now_bytes - self.before_bytes:+d}, {self.allowed_bytes} allowed)"
        )


@attrs.frozen(kw_only=True)
class MemoryPlan:
    """What to do with remembered grants on the machine of today.

    Nothing has been done yet. Take `kept` after evicting what moves and what
    goes; take `moved` when what moves can be moved (`cpuset.mems` rewritten).

    Attributes:
        outcomes: One for each owner, by owner.
        drifts: What changed of the machine; empty for the same machine.
        faults: Where the remembered figures did not add up; they are dropped
            and booked anew from the grants.
        kept: The allocator with what stays.
        moved: The allocator with what stays and what moves.
    """

    outcomes: tuple[Outcome, ...]
    drifts: tuple[Drift, ...]
    faults: tuple[Fault, ...]
    kept: MemoryAllocator
    moved: MemoryAllocator

    @property
    def keep(self) -> tuple[Outcome, ...]:
        """Outcomes of those that stay."""
        return self._with(Fate.KEEP)

    @property
    def move(self) -> tuple[Outcome, ...]:
        """Outcomes of those that have to move."""
        return self._with(Fate.MOVE)

    @property
    def evict(self) -> tuple[Outcome, ...]:
        """Outcomes of those that have to go."""
        return self._with(Fate.EVICT)

    @property
    def beyond(self) -> tuple[Drift, ...]:
        """Changes of the machine that no boot explains: a bank of memory less, another pool of huge pages."""
        return tuple(drift for drift in self.drifts if drift.is_beyond)

    @property
    def is_quiet(self) -> bool:
        """Whether everything stays, sound and within the bound."""
        return not (self.move or self.evict or self.beyond or self.faults)

    def _with(self, fate: Fate) -> tuple[Outcome, ...]:
        return tuple(outcome for outcome in self.outcomes if outcome.fate is fate)


def plan_recovery(
    remembered: Remembered, empty: MemoryAllocator, /, *, max_drift_bytes: int = MAX_DRIFT_BYTES
) -> MemoryPlan:
    """Compare what was remembered with the machine of today.

    Whole workloads stay or go, the smaller ones first to stay, so that as few
    as possible are disturbed; of two of a size the one with the lower key stays.

    Args:
        remembered: What was stored.
        empty: An allocator of today's machine, reserved memory and options,
            with nothing held.
        max_drift_bytes: By how much `memory` of a node may differ without
            being `beyond`; huge pages do not drift.

    Raises:
        ValueError: `empty` holds something.
    """
    if empty.state.grants:
        raise ValueError(
            f"the allocator of today holds {len(empty.state.grants)} workloads; give an empty one"
        )
    layout = empty.state.layout
    faults = remembered.faults()
    kept, reasons = _stay(layout, remembered.grants)
    if not faults and not reasons and _shares(remembered, layout) is not None:
        kept = attrs.evolve(kept, free=_shares(remembered, layout) or kept.free)
    moved = _rehome(kept, {key: remembered.grants[key] for key in reasons})
    outcomes = [
        _outcome(Owner(workload, member), held, moved, reasons.get(workload, ""))
        for workload, members in remembered.grants.items()
        for member, held in members.items()
    ]
    return MemoryPlan(
        outcomes=tuple(sorted(outcomes, key=lambda outcome: outcome.owner)),
        drifts=tuple(_drifts(remembered, layout, max_drift_bytes)),
        faults=faults,
        kept=attrs.evolve(empty, state=kept),
        moved=attrs.evolve(empty, state=moved),
    )


def _outcome(owner: Owner, held: tuple[Block, ...], moved: MemoryState, reason: str) -> Outcome:
    after = moved.blocks(owner)
    fate = Fate.KEEP if not reason else Fate.MOVE if after or not held else Fate.EVICT
    return Outcome(owner=owner, fate=fate, before=held, after=after, reason=reason)


def _stay(layout: Layout, grants: Grants) -> tuple[MemoryState, Mapping[str, str]]:
    """The state of the workloads that still fit, and for the others why they do not."""
    fitting: Grants = grants
    reasons: dict[str, str] = {}
    for workload, members in grants.items():
        faults = tuple(misnamed(layout, {workload: members}))
        if faults:
            reasons[workload] = "; ".join(fault.reason for fault in faults)
    fitting = {key: members for key, members in grants.items() if key not in reasons}
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
    """The state with those workloads in it that find another place, the smaller ones first."""
    for workload in sorted(homeless, key=lambda key: (_size(homeless[key]), key)):
        tried = state
        for nodes in sorted({block.nodes for block in blocks_of({workload: homeless[workload]})}):
            found = _elsewhere(tried, workload, homeless[workload], nodes)
            if found is None:
                break
            tried = found
        else:
            state = tried
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
            if row is None or block.size_bytes % layout.pages[row]:
                return None
            demand[row] = demand.get(row, 0) + block.size_bytes
    hint = Question(layout, state, tuple(sorted(demand.items())), {}).best()
    if hint is None or hint.affinity is None:
        return None
    there = hint.affinity
    already = state.grants.get(workload, {})
    placed = {
        member: already.get(member, ())
        + tuple(Block(there, block.resource, block.size_bytes) for block in held if block.nodes == nodes)
        for member, held in members.items()
    }
    return replay(layout, {**state.grants, workload: placed})


def _shares(remembered: Remembered, layout: Layout) -> tuple[Row, ...] | None:
    """Free bytes as they were stored, where the machine is the same to the byte."""
    stored = {node.node: node.tables for node in remembered.nodes}
    now = {node.node: node.tables for node in MemoryState.empty(layout).tables()}
    if {key: _fixed(tables) for key, tables in stored.items()} != {
        key: _fixed(one) for key, one in now.items()
    }:
        return None
    return tuple(
        tuple(stored[node][name].free if name in stored[node] else 0 for node in layout.nodes)
        for name in layout.resources
    )


def _fixed(tables: Mapping[str, MemoryTable]) -> Mapping[str, tuple[int, int, int]]:
    return {name: (table.total, table.system_reserved, table.allocatable) for name, table in tables.items()}


def _drifts(remembered: Remembered, layout: Layout, max_drift_bytes: int) -> Iterator[Drift]:
    before = {
        (node.node, name): table.total for node in remembered.nodes for name, table in node.tables.items()
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
