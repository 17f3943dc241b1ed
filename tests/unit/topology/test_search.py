"""What the search over a whole workload may leave out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from nodealloc.testing.topology import check_allocator, workload
from nodealloc.topology import (
    Claim,
    Hints,
    NumaTopology,
    Owner,
    Placed,
    Policy,
    PolicyName,
    Shortfall,
    Snapshot,
    TopologyHint,
    admit,
)

LANES = "lanes"


@attrs.frozen
class Bridges:
    """Lanes of nodes that are bridged in pairs: a claim gets them from one pair, the higher node's first.

    Attributes:
        free: Lanes that are left, by node.
        held: What each owner took, by node.
    """

    free: Mapping[int, int] = attrs.field(factory=lambda: {0: 2, 1: 2, 2: 2})
    held: Mapping[Owner, Mapping[int, int]] = attrs.field(factory=dict[Owner, dict[int, int]])

    name = LANES

    def serves(self, resource: str, /) -> bool:
        """Lanes."""
        return resource == LANES

    def hints(self, claims: Sequence[Claim], /) -> Hints:
        """Pairs of neighbours that have enough; for who holds some, where they are."""
        taken = self.held.get(claims[0].owner) if claims else None
        if taken is not None:
            return {LANES: [TopologyHint(sum([1 << node for node, count in taken.items() if count]), True)]}
        wanted = sum([claim.amounts[LANES].value for claim in claims if LANES in claim.amounts])
        found = [TopologyHint(0b11 << low, True) for low in (0, 1) if self._serves(0b11 << low, wanted)]
        return {LANES: found} if wanted else {}

    def _serves(self, nodes: int, wanted: int) -> bool:
        return sum([count for node, count in self.free.items() if nodes >> node & 1]) >= wanted

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> Bridges | Shortfall:
        """From a pair, its higher node first."""
        wanted = claim.amounts[LANES].value if LANES in claim.amounts else 0
        if not wanted or claim.owner in self.held:
            return self
        nodes = 0b111 if affinity.affinity is None else affinity.affinity
        for pair in (0b011, 0b110):
            if not pair & ~nodes and self._serves(pair, wanted):
                taken: dict[int, int] = {}
                for node in (2, 1, 0):
                    most = self.free[node] if pair >> node & 1 else 0
                    taken[node] = min(most, wanted - sum(taken.values()))
                free = {node: count - taken[node] for node, count in self.free.items()}
                return Bridges(free, {**self.held, claim.owner: taken})
        return Shortfall(resource=LANES, wanted=wanted, free=0, nodes=affinity.affinity)

    def release(self, workload: str, member: str | None = None, /) -> Bridges:
        """Give back."""
        free, left = dict(self.free), dict(self.held)
        for owner, taken in self.held.items():
            if owner.workload == workload and member in {None, owner.member}:
                del left[owner]
                for node, count in taken.items():
                    free[node] += count
        return Bridges(free, left)


def test_equal_members_are_tried_in_both_orders_on_sets_that_overlap() -> None:
    """Who comes first then decides what is left: three lanes of the upper pair leave three of the lower."""
    policy = Policy(name=PolicyName.RESTRICTED, search=True)
    node = Snapshot(numa=NumaTopology(nodes=(0, 1, 2)), policy=policy, allocators=(Bridges(),))
    verdict = admit(node, workload("job", {LANES: 3}, {LANES: 3}))
    assert isinstance(verdict, Placed)
    assert {name: hint.affinity for name, hint in verdict.affinity.items()} == {
        "app-0": 0b110,
        "app-1": 0b011,
    }


def test_bridges_are_an_allocator() -> None:
    """What the search is tried on keeps the promises that allocators give."""
    check_allocator(Bridges(), workload("job", {LANES: 3}), NumaTopology(nodes=(0, 1, 2)))
