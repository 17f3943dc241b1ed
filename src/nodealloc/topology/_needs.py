"""Values only: what a set of nodes has to hold of one thing."""

from __future__ import annotations

from nodealloc import _attrs as attrs
from nodealloc._typed import typed_fields
from nodealloc.topology._masks import NumaMask

__all__ = ["Need"]


@typed_fields
@attrs.frozen(kw_only=True)
class Need:
    """What a set of nodes has to hold of one thing.

    Attributes:
        wanted: How much, in any unit; a set serves with at least that.
        amounts: (nodes, amount) pairs: an amount on one node, or one that is
            near several nodes and counts once for a set with any of them.
    """

    wanted: int
    amounts: tuple[tuple[NumaMask, int], ...]

    @classmethod
    def touching(cls, nodes: NumaMask, /) -> Need:
        """The need of one of these nodes."""
        return cls(wanted=1, amounts=((nodes, 1),))

    def held_by(self, nodes: NumaMask, /) -> int:
        """How much a set of nodes holds."""
        return sum([amount for place, amount in self.amounts if place & nodes])
