"""What claims ask of memory, as rows of a layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from nodealloc.memblocks._blocks import HUGEPAGES
from nodealloc.podspec import page_bytes
from nodealloc.topology import ClaimKind, Shortfall, peak

if TYPE_CHECKING:
    from nodealloc.memblocks._layout import Demand, Layout
    from nodealloc.podspec import Quantity
    from nodealloc.topology import Claim

__all__ = ["demand_at_peak", "demand_of"]

_NANO = 10**9

# Members of an enumeration are slow to look up before Python 3.12.
_MAIN = ClaimKind.MAIN


def demand_of(layout: Layout, amounts: Mapping[str, Quantity], /) -> Demand | Shortfall:
    """Bytes by row, ascending; a shortfall for an amount that no machine of this kind can serve.

    Source: kubelet ``cm/memorymanager/policy_static.go``, which refuses
    fractions of a byte; the refusal of unknown page sizes and of parts of a
    page is ours.
    """
    rows, pages = layout.row, layout.pages
    found: list[tuple[int, int]] = []
    for resource, amount in amounts.items():
        row = rows.get(resource)
        if row is not None:
            size, fraction = divmod(amount.nanos, _NANO)
            if fraction or size % pages[row]:
                return _uneven(layout, row, amount)
            if size > 0:
                found.append((row, size))
        elif resource.startswith(HUGEPAGES) and amount.nanos > 0:
            return _unknown(layout, resource, amount)
    if len(found) > 1:
        found.sort()
    return tuple(found)


def demand_at_peak(layout: Layout, claims: Sequence[Claim], /, *, all_members: bool) -> Demand | Shortfall:
    """What the claims of a workload hold at their peak.

    Args:
        layout: Whose rows.
        claims: All claims of one workload, in the order in which they start.
        all_members: Whether a resource counts that only init members or
            sidecars ask for; the kubelet leaves it out.
    """
    asked: list[tuple[Claim, Demand]] = []
    together: dict[int, int] = {}
    at_once = True
    for claim in claims:
        demand = demand_of(layout, claim.amounts)
        if not isinstance(demand, tuple):
            return demand
        asked.append((claim, demand))
        at_once = at_once and claim.kind is _MAIN
        if all_members or claim.kind is _MAIN:
            for row, size in demand:
                together[row] = together.get(row, 0) + size
    if at_once:
        return tuple(sorted(together.items()))
    return tuple([(row, _peak(asked, row)) for row in sorted(together)])


def _peak(asked: Sequence[tuple[Claim, Demand]], row: int) -> int:
    sizes = {claim.owner.member: size for claim, demand in asked for one, size in demand if one == row}
    return peak([claim for claim, _ in asked], lambda claim: sizes.get(claim.owner.member, 0))


def _uneven(layout: Layout, row: int, amount: Quantity) -> Shortfall:
    resource, page = layout.resources[row], layout.pages[row]
    what = f"pages of {page} bytes" if page > 1 else "whole bytes"
    return Shortfall(
        resource=resource,
        wanted=amount.value,
        free=0,
        detail=f"{resource}: {amount} cannot be had in {what}; ask for a multiple of {page}",
    )


def _unknown(layout: Layout, resource: str, amount: Quantity) -> Shortfall:
    known = ", ".join(layout.resources)
    what = "has no pool of that page size" if page_bytes(resource) else "does not know that page size"
    return Shortfall(
        resource=resource,
        wanted=amount.value,
        free=0,
        detail=f"{resource}: the machine {what}; it has {known}",
    )
