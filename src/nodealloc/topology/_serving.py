"""Whether somebody on the node answers for a resource at all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import attrs

from nodealloc._reading import alike
from nodealloc.topology._claims import Claim, Owner
from nodealloc.topology._hints import TopologyHint
from nodealloc.topology._ports import Allocator, Serves, Shortfall
from nodealloc.verdicts import NotYet

__all__ = ["NATIVE", "unserved"]

NATIVE: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
"""What every node has; where no allocator pins it, the check of what fits answers for it."""

_PAGES = "hugepages-"
_WHATEVER = "*"
_ANYWHERE = TopologyHint(affinity=None, preferred=False)


def unserved(
    allocators: Sequence[Allocator], elsewhere: frozenset[str], claims: Iterable[Claim]
) -> tuple[Claim, Shortfall] | None:
    """The first claim that asks for something which nobody answers for, and why it is refused.

    Source: ours; the kubelet lets in what no device plugin of the node has ever
    told of (``lifecycle/predicate.go``, `removeMissingExtendedResources`).
    """
    if _WHATEVER in elsewhere:
        return None
    for claim in claims:
        if elsewhere.issuperset(claim.amounts):
            continue
        for resource, amount in claim.amounts.items():
            if resource in elsewhere or resource.startswith(_PAGES) or not amount:
                continue
            if not any(_serves(one, claim, resource) for one in allocators):
                return claim, _refused(allocators, elsewhere, resource, amount.value)
    return None


def _serves(allocator: Allocator, claim: Claim, resource: str) -> bool:
    if isinstance(allocator, Serves):
        return allocator.serves(resource)
    if allocator.name == resource:
        return True
    # Whoever does not say is asked: what is not its business has no hints and changes nothing.
    alone = attrs.evolve(
        claim,
        owner=Owner(f"{claim.owner.workload}?", claim.owner.member),
        amounts={resource: claim.amounts[resource]},
        reuse=(),
    )
    try:
        hints = allocator.hints((alone,))
        hinted = isinstance(hints, NotYet) or resource in hints
        return hinted or allocator.allocate(alone, _ANYWHERE) != allocator
    except Exception:  # noqa: BLE001 - admission asks the same, and names whoever raises
        return True


def _refused(
    allocators: Sequence[Allocator], elsewhere: frozenset[str], resource: str, wanted: int
) -> Shortfall:
    names = ", ".join(allocator.name for allocator in allocators) or "none"
    meant = alike(resource, elsewhere)
    remedy = f"did you mean {meant}?" if meant else "ask for it where it is."
    detail = (
        f"nobody on this node serves {resource} (its allocators: {names}); {remedy} "
        "Where another check answers for it, name it in Snapshot.elsewhere"
    )
    return Shortfall(resource=resource, wanted=wanted, free=0, reason=f"OutOf{resource}", detail=detail)
