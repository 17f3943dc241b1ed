"""How full each node is, for comparisons that score by it."""

from __future__ import annotations

from collections.abc import Sequence

from nodealloc.topology._asking import reports_of
from nodealloc.topology._claims import Claim
from nodealloc.topology._ports import Allocator

__all__ = ["allocated_shares"]


def allocated_shares(allocators: Sequence[Allocator], claims: Sequence[Claim]) -> dict[int, float]:
    """Node id to the share of it that is taken, 0 to 1.

    The mean over the resources that the claims ask for and that the node can
    grant at all; allocators without `Reports` do not count.

    Raises:
        ProviderError: An allocator raised.
    """
    shares: dict[int, list[float]] = {}
    for _, report in reports_of(allocators, claims):
        for node, whole in report.allocatable.items():
            if whole > 0 and node >= 0:
                shares.setdefault(node, []).append(1 - report.free.get(node, 0) / whole)
    return {node: sum(parts) / len(parts) for node, parts in shares.items()}
