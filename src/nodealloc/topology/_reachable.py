"""All intersections that one hint of each list can have, without trying every combination.

What counts for the merge is the *set* of nodes that can come out, not how it
came out. Two ways to that set, both exact:

- fold: intersect the set so far with one more list, and forget duplicates.
  Cheap while either is small.
- count: for every set of nodes the number of combinations whose intersection
  is exactly that. Counting supersets turns intersections into products
  (the AND-convolution), so k lists over n nodes cost about k · n · 2ⁿ⁻¹
  additions, however many combinations there are.

Nodes on which not every list has a hint cannot be in any intersection; they
are left out first, so that n counts nodes that hold what is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import add, mul, sub

from nodealloc.idset import bits
from nodealloc.topology._work import Work

__all__ = ["inside", "reachable"]

_FOLD_FREELY = 2000
"""Pairs that are always folded: below this, counting has not even set up its tables."""

_COUNT_AT_MOST = 16
"""Nodes beyond which tables of 2ⁿ numbers take too much memory; folding goes on there."""


def reachable(lists: Sequence[Iterable[int]], full: int, work: Work, /) -> set[int]:
    """Every non-empty intersection of one mask from each list.

    Args:
        lists: Masks inside `full`; none of the lists is empty.
        full: All nodes.
        work: What is spent.

    Returns:
        The set of masks; `{full}` without lists, empty when no combination
        has a node in common.

    Raises:
        WorkLimitError: `work` is used up.
    """
    common, sets = inside(lists, full)
    if not common:
        return set()
    nodes = common.bit_count()
    found = {common}
    for done, masks in enumerate(sets):
        pairs = len(found) * len(masks)
        if (
            pairs > _FOLD_FREELY
            and nodes <= _COUNT_AT_MOST
            and pairs > _counting_cost(nodes, len(sets) - done)
        ):
            work.spend(_counting_cost(nodes, len(sets) - done) >> 5)
            return _count([found, *sets[done:]], common)
        work.spend(pairs // 4)
        found = {one & other for one in found for other in masks}
        found.discard(0)
    return found


def inside(lists: Sequence[Iterable[int]], full: int) -> tuple[int, list[set[int]]]:
    """The nodes that every list has in some mask, and the lists inside them, short ones first."""
    common = full
    for masks in lists:
        common &= _union(masks)
    # Equally long ones in an order of their own, so that work does not depend on who was asked first.
    return common, sorted(({mask & common for mask in masks} - {0} for masks in lists), key=_by_length)


def _by_length(masks: set[int]) -> tuple[int, int]:
    return len(masks), sum(masks)


def _union(masks: Iterable[int], /) -> int:
    """All nodes of all masks."""
    found = 0
    for mask in masks:
        found |= mask
    return found


def _counting_cost(nodes: int, lists: int) -> int:
    return (lists + 2) * (nodes + 2) << (nodes - 1)


def _count(sets: Sequence[set[int]], common: int) -> set[int]:
    """`reachable` by counting; the sets hold non-empty subsets of `common`."""
    nodes = tuple(bits(common))
    places = _places(nodes)
    size = 1 << len(nodes)
    product: list[int] = [1] * size
    for masks in sets:
        table = [0] * size
        for mask in masks:
            table[places[mask]] = 1
        product = list(map(mul, product, _over_supersets(table, len(nodes), add)))
    exact = _over_supersets(product, len(nodes), sub)
    masks_of = _subsets(nodes)
    return {mask for mask, combinations in zip(masks_of, exact, strict=True) if combinations and mask}


def _over_supersets(table: list[int], nodes: int, combine: Callable[[int, int], int]) -> list[int]:
    """For every place the sum over its supersets (`add`), or what such sums were made of (`sub`).

    Each round combines along the lowest bit of the place and moves that bit to
    the top, so that whole halves are added at once; after as many rounds as
    there are bits every bit is back where it was.
    """
    for _ in range(nodes):
        upper = table[1::2]
        table = list(map(combine, table[::2], upper))
        table += upper
    return table


def _places(nodes: tuple[int, ...]) -> dict[int, int]:
    return {mask: place for place, mask in enumerate(_subsets(nodes))}


def _subsets(nodes: tuple[int, ...]) -> list[int]:
    """All subsets of the nodes as masks; the subset at place p has the nodes at p's bits."""
    masks = [0]
    for node in nodes:
        bit = 1 << node
        masks += [mask | bit for mask in masks]
    return masks
