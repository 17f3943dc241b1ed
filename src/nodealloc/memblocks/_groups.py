"""Which sets of NUMA nodes are considered together, in which order, as hints.

Pure functions of masks, remembered in bounded caches: machines of one shape
share them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations
from math import comb

from nodealloc.idset import bits
from nodealloc.topology import NumaMask, TopologyHint

__all__ = ["EXACT_NODES", "MAX_MASKS", "family", "hint_pair", "in_order", "wide_hints"]

EXACT_NODES = 8
"""Up to so many nodes every set of them is considered, as in the kubelet."""

MAX_MASKS = 1024
"""Beyond `EXACT_NODES`: all sets of one size while there are no more than so many in all."""


@lru_cache(maxsize=256)
def family(among: NumaMask, /) -> tuple[NumaMask, ...]:
    """Sets of two and more of these nodes, by size, then by ids.

    Up to `EXACT_NODES` nodes all of them. Beyond, all sets of a size as long
    as `MAX_MASKS` holds, and of the larger sizes those of neighbours by id:
    their number grows with the square of the nodes, not as a power of two.
    """
    return tuple(_family(tuple(bits(among))))


def _family(nodes: tuple[int, ...]) -> Iterator[NumaMask]:
    count = len(nodes)
    seen = count
    for size in range(2, count + 1):
        seen += comb(count, size)
        if count <= EXACT_NODES or seen <= MAX_MASKS:
            sets: Iterator[tuple[int, ...]] = combinations(nodes, size)
        else:
            sets = (nodes[start : start + size] for start in range(count - size + 1))
        for chosen in sets:
            yield sum([1 << node for node in chosen])


@lru_cache(maxsize=8192)
def hint_pair(mask: NumaMask, /) -> tuple[TopologyHint, TopologyHint]:
    """The two hints that a set of nodes can be: not preferred, preferred."""
    return TopologyHint(mask, preferred=False), TopologyHint(mask, preferred=True)


@lru_cache(maxsize=256)
def wide_hints(among: NumaMask, narrowest: int, /) -> tuple[TopologyHint, ...]:
    """`family` as hints; those of at most `narrowest` nodes are preferred."""
    return tuple([hint_pair(mask)[mask.bit_count() <= narrowest] for mask in family(among)])


def in_order(hint: TopologyHint, /) -> tuple[int, tuple[int, ...]]:
    """Sort key of the order in which sets of nodes are considered: size, then ids."""
    mask = hint.affinity or 0
    return mask.bit_count(), tuple(bits(mask))
