"""The merge of hints that are all listed, as bare integers: which masks are the best but for distances."""

from __future__ import annotations

from collections.abc import Sequence

from nodealloc.topology._hints import NumaMask
from nodealloc.topology._nearest import nearest
from nodealloc.topology._reading import Listed

__all__ = ["FEW", "combinations", "of_few"]

FEW = 512
"""Combinations that are tried as they come; above, looking for something better pays."""


def combinations(lists: Sequence[Listed]) -> int:
    """In how many ways one mask of each list can be chosen."""
    ways = 1
    for one in lists:
        ways *= len(one.masks)
    return ways


def of_few(lists: Sequence[Listed], full: NumaMask) -> tuple[NumaMask, ...]:
    """The masks nearest to the right width that a few combinations come to, ascending; at least 0."""
    found = {full}
    target = 0
    for one in lists:
        target = max(target, one.least)
        found = {mask & (other or full) for mask in found for other in one.masks}
    return nearest(found, target)
