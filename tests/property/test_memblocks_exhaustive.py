"""Against a plain walk over every set of nodes, written from the rules and from the public figures alone."""

from __future__ import annotations

from itertools import combinations

import attrs
from hypothesis import given
from hypothesis import strategies as st

from nodealloc.memblocks import MemoryAllocator, NodeMemory
from nodealloc.testing.strategies.memblocks import (
    Admission,
    MemoryRemoval,
    memory_allocators,
    memory_histories,
    memory_workloads,
)
from nodealloc.topology import Claim, Owner, Shortfall, TopologyHint, Workload

Figures = dict[str, int]


@attrs.frozen
class Plain:
    """The rules, one after the other, without any short cut."""

    allocator: MemoryAllocator
    claim: Claim

    @property
    def asked(self) -> Figures:
        """Bytes above 0 by resource."""
        return {name: amount.value for name, amount in self.claim.amounts.items() if amount.value}

    def nodes(self, mask: int) -> list[NodeMemory]:
        """The nodes of a set."""
        return [node for node in self.allocator.tables() if mask >> node.node & 1]

    def have(self, mask: int, figure: str) -> Figures:
        """A figure of the tables summed over a set, by resource that is asked."""
        return {
            name: sum(getattr(node.tables[name], figure) for node in self.nodes(mask) if name in node.tables)
            for name in self.asked
        }

    def enough(self, have: Figures) -> bool:
        """Whether that is what is asked."""
        return all(have[name] >= size for name, size in self.asked.items())

    def reusable(self, mask: int) -> Figures:
        """What ended members left on exactly this set."""
        blocks = [
            block
            for member in self.claim.reuse
            for block in self.allocator.blocks_of(Owner(self.claim.owner.workload, member))
            if block.nodes == mask
        ]
        return {name: sum(b.size_bytes for b in blocks if b.resource == name) for name in self.asked}

    def cuts(self, mask: int) -> bool:
        """Whether a set of several nodes reaches into single nodes or other groups in use."""
        return mask.bit_count() > 1 and any(
            node.assignments and node.group != mask for node in self.nodes(mask)
        )

    def hints(self) -> list[TopologyHint]:
        """Every set that can serve."""
        nodes = [node.node for node in self.allocator.tables()]
        every = [
            sum(1 << node for node in chosen)
            for size in range(1, len(nodes) + 1)
            for chosen in combinations(nodes, size)
        ]
        ever = [mask for mask in every if self.enough(self.have(mask, "allocatable"))]
        found = [
            mask
            for mask in ever
            if not self.cuts(mask)
            and not (mask.bit_count() == 1 and self.nodes(mask)[0].group != mask)
            and self.enough(
                {name: size + self.reusable(mask)[name] for name, size in self.have(mask, "free").items()}
            )
        ]
        return [TopologyHint(mask, mask.bit_count() == ever[0].bit_count()) for mask in found]

    def choice(self, affinity: TopologyHint) -> int | None:
        """The set that serves under a merged affinity, or None."""
        best = affinity
        if affinity.affinity is None:
            best = self.best(0)
            if best.affinity is None or (affinity.preferred and not best.preferred):
                return None
        mask = best.affinity or 0
        if not self.enough(self.have(mask, "free")):
            wider = self.best(mask)
            if wider.affinity is None or (best.preferred and not wider.preferred):
                return None
            mask = wider.affinity
        return None if self.cuts(mask) else mask

    def best(self, inside: int) -> TopologyHint:
        """Preferred before not, then fewer nodes, then the smaller number."""
        found = [hint for hint in self.hints() if hint.affinity is not None and not inside & ~hint.affinity]
        ranked = sorted(
            found, key=lambda hint: (not hint.preferred, (hint.affinity or 0).bit_count(), hint.affinity)
        )
        return ranked[0] if ranked else TopologyHint(None, preferred=False)


def step_on(allocator: MemoryAllocator, step: Admission | MemoryRemoval) -> MemoryAllocator:
    """One step of a history, checked against the plain rules on the way."""
    if isinstance(step, MemoryRemoval):
        return allocator.release(step.key)
    tried = allocator
    for place, claim in enumerate(step.workload.claims):
        plain = Plain(tried, claim)
        known = set(plain.asked) <= set(tried.state.layout.resources)
        expected = plain.hints() if known else []
        hints = tried.hints([claim])
        assert all([*(given or ())] == expected for given in hints.values())
        assert bool(hints) == bool(expected)
        affinity = step.affinity(place, expected)
        granted = tried.allocate(claim, affinity)
        choice = plain.choice(affinity) if known else None
        if isinstance(granted, Shortfall):
            assert choice is None, granted
            return allocator
        assert {block.nodes for block in granted.blocks_of(Owner(step.workload.key, claim.owner.member))} == {
            choice
        }
        tried = granted
    return tried


@given(
    allocator=memory_allocators(strict=False),
    steps=memory_histories(),
    workload=memory_workloads("last"),
    choices=st.lists(st.integers(-3, 12), min_size=1, max_size=3),
)
def test_every_step_is_decided_by_the_plain_rules(
    allocator: MemoryAllocator,
    steps: list[Admission | MemoryRemoval],
    workload: Workload,
    choices: list[int],
) -> None:
    """Hints, their order and preference, and the set that is granted, in any state."""
    allocator = attrs.evolve(allocator, options=attrs.evolve(allocator.options, fall_back=False))
    for step in [*steps, Admission(workload, tuple(choices))]:
        allocator = step_on(allocator, step)
