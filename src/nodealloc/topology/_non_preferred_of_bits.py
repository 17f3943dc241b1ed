"""What hints that are listed as bits leave in common when none is preferred, without listing them.

Sets are looked at in the order in which they would win. Most are settled by a few
operations of whole integers; one that is not leaves the question to whoever tries
combinations.
"""

from __future__ import annotations

from collections.abc import Sequence

from nodealloc.idset import bits
from nodealloc.topology._hints import NumaMask, NumaTopology
from nodealloc.topology._node_sets import NodeSets

__all__ = ["best_non_preferred"]


def best_non_preferred(
    every: NodeSets, lists: Sequence[int], target: int, numa: NumaTopology, *, near: bool
) -> NumaMask | None:
    """The best set that one of each list leave in common; 0 without any, None where that is left open.

    Args:
        every: The sets that the bits stand for.
        lists: Bits of the hints of each resource; none of the lists is empty.
        target: How many nodes the neediest resource needs; sets of that width are best,
            then narrower ones, then wider ones.
        numa: The machine.
        near: Whether the closest of equally wide sets wins, in place of the lowest.
    """
    inside = every.within[numa.mask]
    for width in (*range(target, 0, -1), *range(target + 1, len(numa.nodes) + 1)):
        found: list[NumaMask] = []
        left = every.widths[width] & inside
        while left:
            mask = every.lowest(left)
            left ^= every.bit[mask]
            comes_out = _comes_out(every, lists, mask, numa.mask)
            if comes_out is None:
                return None
            if comes_out and not near:
                return mask
            if comes_out:
                found.append(mask)
        if found:
            return numa.closest(tuple(found))
    return 0


def _comes_out(every: NodeSets, lists: Sequence[int], mask: NumaMask, full: NumaMask) -> bool | None:
    """Whether one set of each list can be chosen such that these have exactly this one in common.

    List by list, nodes are left out that it lets go together; which ones is not weighed up.
    """
    around = [one & every.containing[mask] for one in lists]
    if not all(around):
        return False
    if any(one & every.bit[mask] for one in around):
        return True
    beyond = full & ~mask
    for one in around:
        chosen = one
        for node in [1 << node for node in bits(beyond)]:
            without = chosen & ~every.containing[node]
            if without:
                chosen = without
                beyond ^= node
    if not beyond:
        return True
    # A node that all hints around the set have cannot be left out by anybody.
    has_shared = any(all(not one & ~every.containing[1 << node] for one in around) for node in bits(beyond))
    return False if has_shared else None
