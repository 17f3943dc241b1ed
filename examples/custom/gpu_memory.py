"""An allocator for a resource of your own: GPU memory, given out in bytes, one card a claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from nodealloc.topology import Claim, Hints, Owner, Shortfall, TopologyHint, peak

__all__ = ["GpuMemory"]

RESOURCE = "example.com/gpu-memory"


@attrs.frozen(kw_only=True)
class GpuMemory:
    """`cards`: card to (NUMA node, bytes); `held`: owner to (card, bytes)."""

    cards: Mapping[str, tuple[int, int]]
    held: Mapping[Owner, tuple[str, int]] = attrs.field(factory=dict[Owner, tuple[str, int]])
    name: str = "gpu-memory"

    def hints(self, claims: Sequence[Claim], /) -> Hints:
        """The node of every card that has room; for one that is held, its node."""
        wanted = peak(claims, _bytes)
        own = {self.cards[self.held[claim.owner][0]][0] for claim in claims if claim.owner in self.held}
        nodes = own or {self.cards[card][0] for card in self.cards if self._free(card) >= wanted}
        return (
            {RESOURCE: [TopologyHint(1 << node, preferred=True) for node in sorted(nodes)]} if wanted else {}
        )

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> GpuMemory | Shortfall:
        """The fullest card with room on the allowed nodes, so that empty cards stay whole."""
        wanted = _bytes(claim)
        if not wanted or claim.owner in self.held:
            return self
        allowed = [card for card, (node, _) in self.cards.items() if (affinity.affinity or -1) >> node & 1]
        fitting = [card for card in allowed if self._free(card) >= wanted]
        if not fitting:
            most = max((self._free(card) for card in allowed), default=0)
            return Shortfall(resource=RESOURCE, wanted=wanted, free=most, nodes=affinity.affinity)
        card = min(fitting, key=lambda one: (self._free(one), one))
        return attrs.evolve(self, held={**self.held, claim.owner: (card, wanted)})

    def release(self, workload: str, member: str | None = None, /) -> GpuMemory:
        """Without what a member, or all, holds."""
        gone = {one for one in self.held if one.workload == workload and member in (None, one.member)}
        return attrs.evolve(self, held={one: self.held[one] for one in self.held if one not in gone})

    def _free(self, card: str) -> int:
        return self.cards[card][1] - sum(size for on, size in self.held.values() if on == card)


def _bytes(claim: Claim) -> int:
    return claim.amounts[RESOURCE].value if RESOURCE in claim.amounts else 0
