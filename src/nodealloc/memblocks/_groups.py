"""Sets of NUMA nodes as hints.

Pure functions of masks, remembered in bounded caches: machines of one shape
share them.
"""

from __future__ import annotations

from functools import lru_cache

from nodealloc.idset import bits
from nodealloc.topology import NumaMask, TopologyHint, node_masks

__all__ = ["family", "hint_pair", "wide_hints"]


@lru_cache(maxsize=256)
def family(among: NumaMask, /) -> tuple[NumaMask, ...]:
    """Every set of two and more of these nodes, at most `LISTED_NODES`: by size, then by ids."""
    return node_masks(tuple(bits(among)))[among.bit_count() :]


@lru_cache(maxsize=8192)
def hint_pair(mask: NumaMask, /) -> tuple[TopologyHint, TopologyHint]:
    """The two hints that a set of nodes can be: not preferred, preferred."""
    return TopologyHint(mask, preferred=False), TopologyHint(mask, preferred=True)


@lru_cache(maxsize=256)
def wide_hints(among: NumaMask, narrowest: int, /) -> tuple[TopologyHint, ...]:
    """`family` as hints; those of at most `narrowest` nodes are preferred."""
    return tuple([hint_pair(mask)[mask.bit_count() <= narrowest] for mask in family(among)])
