"""A topology policy of your own: prefer nodes that have fast local storage.

`Policy.comparison` ranks what the merge may choose from; the four policies of the
kubelet still decide what is let in.
"""

from __future__ import annotations

import attrs

from nodealloc.idset import bits
from nodealloc.topology import ComparisonContext, Narrowest, Rank, TopologyHint

__all__ = ["NearStorage"]


@attrs.frozen
class NearStorage:
    """As narrow as the kubelet chooses; of equally narrow hints the one with most drives.

    Attributes:
        drives: NUMA node id to its number of drives.
    """

    drives: tuple[tuple[int, int], ...]

    def rank(self, candidate: TopologyHint, context: ComparisonContext, /) -> Rank:
        """The kubelet's rank first, then the drives, more being better."""
        counts = dict(self.drives)
        near = sum(counts.get(node, 0) for node in bits(candidate.affinity or 0))
        return (*Narrowest().rank(candidate, context), -near)
