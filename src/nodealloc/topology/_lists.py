"""The merge of hints that are all listed, as bare integers."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from nodealloc.topology._hints import NumaMask, NumaTopology
from nodealloc.topology._policy import Policy
from nodealloc.topology._reachable import best_reachable, reachable
from nodealloc.topology._reading import Sorted
from nodealloc.topology._work import Work

__all__ = ["compromise", "narrowest"]

_FOLD_HERE = 512
"""Combinations that are tried as they come; above, looking for something better pays."""

_LOOK_AHEAD = 100_000
"""Combinations above which it pays to leave out what comes to nothing."""

_TRIED_FIRST = 32
"""Masks that are tried before all intersections are; where none of them is right, few are."""


def narrowest(masks: Collection[NumaMask], numa: NumaTopology, *, near: bool) -> NumaMask:
    """The narrowest of some masks; of equals the closest if asked for, then the lowest."""
    if len(masks) == 1:
        return next(iter(masks))
    best = 0
    least = 1 << 62
    for mask in masks:
        width = mask.bit_count()
        if width < least or (width == least and mask < best):
            least = width
            best = mask
    if near and least > 1:
        return _closest([mask for mask in masks if mask.bit_count() == least], numa)
    return best


def compromise(
    sorted_lists: Sequence[Sorted], numa: NumaTopology, policy: Policy, work: Work | None
) -> NumaMask:
    """The best mask when no combination is preferred; 0 when none has a node in common."""
    fixed = full = numa.mask
    near = policy.prefer_closest
    lists: list[Sequence[NumaMask]] = []
    target = 0
    pairs = 1
    for _, _, _, masks, least in sorted_lists:
        if least > target:  # noqa: PLR1730 - a call of max costs more than the rest
            target = least
        if len(masks) == 1:
            fixed &= masks[0]
        else:
            lists.append(masks if masks[0] else [full, *masks[1:]])
            pairs *= len(masks)
    if not lists or not fixed:
        return fixed
    if len(sorted_lists) == 1:
        return narrowest(lists[0], numa, near=near)
    if pairs > _FOLD_HERE:
        lists = [[inside for mask in masks if (inside := mask & fixed)] for masks in lists]
        if not all(lists):
            return 0
        return _of_many(lists, pairs, target, numa, near=near, work=work or Work(policy.work_units))
    found = {fixed}
    for some in lists:
        found = {mask & other for mask in found for other in some}
    return _nearest(found, target, numa, near=near)


def _closest(ties: Collection[NumaMask], numa: NumaTopology) -> NumaMask:
    return min(ties) if len(ties) == 1 else min((numa.spread(mask), mask) for mask in ties)[1]


def _of_many(
    lists: Sequence[Sequence[NumaMask]],
    pairs: int,
    target: int,
    numa: NumaTopology,
    *,
    near: bool,
    work: Work,
) -> NumaMask:
    """`compromise` where combinations abound: find a good mask first, then look for better ones only.

    A mask that is as wide as it should be can be beaten only by a lower one of
    that width, which has no node above the highest one of the mask that was
    found. Hints with too few nodes below that cannot contain it. Closeness
    orders differently, so nothing is left out there.
    """
    work.spend(sum(map(len, lists)))
    sure = 0 if near else _sure(lists, target)
    if sure:
        below = (1 << sure.bit_length()) - 1
        lists = [[mask for mask in masks if (mask & below).bit_count() >= target] for masks in lists]
        if below.bit_count() == target or not all(lists):
            return sure
    if pairs > _LOOK_AHEAD:
        found = best_reachable(lists, numa.mask, target, work, ties=near)
    else:
        found = reachable(lists, numa.mask, work)
    found.add(sure)
    if near:
        work.spend(len(found) * target)
    return _nearest(found, target, numa, near=near)


def _sure(lists: Sequence[Sequence[NumaMask]], target: int) -> NumaMask:
    """The lowest of a few masks of the right width that one list has and all others contain; else 0."""
    right = {mask for masks in lists for mask in masks if mask.bit_count() == target}
    for mask in sorted(right)[:_TRIED_FIRST]:
        if all(any(not mask & ~other for other in masks) for masks in lists):
            return mask
    return 0


def _nearest(masks: Collection[NumaMask], target: int, numa: NumaTopology, *, near: bool) -> NumaMask:
    """The non-empty mask whose width is nearest to `target`, narrower ones first; 0 if there is none."""
    nearest = 1 << 62
    ties: list[NumaMask] = []
    for mask in masks:
        width = mask.bit_count()
        distance = target - width if width <= target else width
        if distance < nearest and width:
            nearest = distance
            ties = [mask]
        elif distance == nearest and width:
            ties.append(mask)
    if not ties:
        return 0
    return _closest(ties, numa) if near else min(ties)
