"""An allocator for a resource of your own: GPU memory, given out in bytes, one card a claim.

The first four methods make it an allocator. Each of the others is an ability that a
node uses where it is there: to remember, to show, to confine, to take over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from nodealloc.errors import DecodeError, Fault
from nodealloc.idset import NodeSet
from nodealloc.podspec import Json
from nodealloc.topology import (
    Claim,
    Confinement,
    Hints,
    Holding,
    Owner,
    ResourceUse,
    Restored,
    Shortfall,
    TopologyHint,
    peak,
)

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
        return self._with(claim.owner, min(fitting, key=lambda one: (self._free(one), one)), wanted)

    def release(self, workload: str, member: str | None = None, /) -> GpuMemory:
        """Without what a member, or all, holds."""
        gone = {one for one in self.held if one.workload == workload and member in (None, one.member)}
        return attrs.evolve(self, held={one: self.held[one] for one in self.held if one not in gone})

    def remembered(self, workload: str, /) -> Json:
        """`Remembers`: member to card and bytes; None where the workload holds nothing."""
        return {one.member: [*self.held[one]] for one in self.held if one.workload == workload} or None

    def restored(self, grants: Mapping[str, Json], /) -> Restored:
        """`Remembers`: everything as it was; whose card is gone has to go."""
        found, evicted = self, dict[str, str]()
        for workload, row in grants.items():
            for owner, card, size in _read(workload, row):
                if card in self.cards:
                    found = found._with(owner, card, size)
                else:
                    evicted[workload] = f"card {card} is not there any more"
        return Restored(allocator=found, evicted=evicted)

    def holdings(self) -> Sequence[Holding]:
        """`Accounts`: who has how much of which card."""
        return [
            Holding(owner=one, resource=RESOURCE, amount=size, nodes=self._node(card), ids=(card,))
            for one, (card, size) in self.held.items()
        ]

    def capacity(self) -> Sequence[ResourceUse]:
        """`Accounts`: what there is and is left, by NUMA node."""
        cards: dict[int, list[str]] = {}
        for card, (node, _) in self.cards.items():
            cards.setdefault(node, []).append(card)
        return [
            ResourceUse(
                resource=RESOURCE,
                node=node,
                allocatable=sum(self.cards[card][1] for card in here),
                available=sum(self._free(card) for card in here),
            )
            for node, here in cards.items()
        ]

    def confinement(self, owner: Owner, /) -> Confinement:
        """`Confines`: the card that a container may use."""
        return Confinement(devices={RESOURCE: (self.held[owner][0],)} if owner in self.held else {})

    def adopted(self, claim: Claim, where: Confinement, /) -> GpuMemory | Shortfall:
        """`Adopts`: what runs holds its part of the card that it uses."""
        wanted, cards = _bytes(claim), where.devices.get(RESOURCE, ())
        if not wanted:
            return self
        free = self._free(cards[0]) if len(cards) == 1 and cards[0] in self.cards else 0
        if free < wanted:
            detail = f"{wanted} bytes on card {', '.join(cards) or 'unknown'}, {free} are free there"
            return Shortfall(resource=RESOURCE, wanted=wanted, free=free, detail=detail)
        return self._with(claim.owner, cards[0], wanted)

    def _with(self, owner: Owner, card: str, size: int) -> GpuMemory:
        return attrs.evolve(self, held={**self.held, owner: (card, size)})

    def _node(self, card: str) -> NodeSet:
        return NodeSet.of(self.cards[card][0])

    def _free(self, card: str) -> int:
        return self.cards[card][1] - sum(size for on, size in self.held.values() if on == card)


def _bytes(claim: Claim) -> int:
    return claim.amounts[RESOURCE].value if RESOURCE in claim.amounts else 0


def _read(workload: str, row: Json) -> Sequence[tuple[Owner, str, int]]:
    found: list[tuple[Owner, str, int]] = []
    for member, grant in row.items() if isinstance(row, Mapping) else ():
        match grant:
            case [str(card), int(size)]:
                found.append((Owner(workload, member), card, size))
            case _:
                fault = Fault(f"$.{member}", f"expected [card, bytes], found {grant!r}")
                raise DecodeError(f"GPU memory of {workload}", [fault])
    return found
