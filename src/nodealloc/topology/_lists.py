"""The merge of hints that are all listed, as bare integers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from nodealloc.topology._hints import NumaMask, NumaTopology
from nodealloc.topology._many import of_many
from nodealloc.topology._nearest import closest_of, nearest
from nodealloc.topology._policy import Policy
from nodealloc.topology._reading import Sorted
from nodealloc.topology._work import Work

__all__ = ["compromise", "narrowest"]

_FOLD_HERE = 512
"""Combinations that are tried as they come; above, looking for something better pays."""

_KEPT = 2048
"""Answers to small questions that are kept; a node, and a fleet even more so, asks the same again."""


def narrowest(masks: frozenset[NumaMask], numa: NumaTopology, near: bool, /) -> NumaMask:
    """The narrowest of some masks; of equals the closest if asked for, then the lowest."""
    found = _narrowest(masks)
    return closest_of(found, numa) if near and len(found) > 1 else found[0]


@lru_cache(maxsize=_KEPT)
def _narrowest(masks: frozenset[NumaMask]) -> list[NumaMask]:
    """The narrowest of some masks, the lowest first."""
    least = min(map(int.bit_count, masks))
    return sorted([mask for mask in masks if mask.bit_count() == least])


def compromise(
    sorted_lists: Sequence[Sorted], numa: NumaTopology, policy: Policy, work: Work | None
) -> NumaMask:
    """The best mask when no combination is preferred; 0 when none has a node in common."""
    near = policy.prefer_closest
    pairs = 1
    for one in sorted_lists:
        pairs *= len(one.masks)
    if pairs > _FOLD_HERE:
        return of_many(sorted_lists, pairs, numa, near=near, work=work or Work(policy.work_units))
    found = _of_few(numa.mask, *sorted_lists)
    return closest_of(found, numa) if near and len(found) > 1 else found[0]


@lru_cache(maxsize=_KEPT)
def _of_few(full: NumaMask, *lists: Sorted) -> list[NumaMask]:
    """The masks nearest to the right width that a few combinations come to, the lowest first; at least 0."""
    found = {full}
    target = 0
    for one in lists:
        target = max(target, one.least)
        found = {mask & (other or full) for mask in found for other in one.masks}
    return nearest(found, target)
