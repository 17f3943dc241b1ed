"""A list of masks on its side: for each node the masks that have it, as the bits of one integer.

What is asked of every mask of the list is then answered for all of them at
once, by a few operations of whole integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nodealloc.idset import bits
from nodealloc.topology._hints import NumaMask

__all__ = ["Lanes"]

_MISSING = 6
"""Up to so many nodes that may be missing, counting them for all masks at once is quicker than one by one."""


class Lanes:
    """Masks, and for each node those that have it.

    Args:
        masks: The masks.
        nodes: Nodes that may be asked about.

    Attributes:
        masks: The masks, ascending; each has the bit of its place.
        every: The bits of all masks.
        having: Node to the bits of the masks that have it.
    """

    __slots__ = ("every", "having", "masks")

    def __init__(self, masks: Iterable[NumaMask], nodes: Iterable[int]) -> None:
        self.masks: list[NumaMask] = sorted(masks)
        self.every: int = (1 << len(self.masks)) - 1
        self.having: dict[int, int] = {
            node: sum([1 << place for place, mask in enumerate(self.masks) if mask >> node & 1])
            for node in nodes
        }

    def chosen(self, lanes: int) -> Iterator[NumaMask]:
        """The masks of these bits."""
        masks = self.masks
        return (masks[place] for place in bits(lanes))

    @staticmethod
    def units(nodes: NumaMask, least: int) -> int:
        """What `sharing` takes of the work."""
        width = nodes.bit_count()
        return 1 + width * (width - least + 1) // 4 if 0 <= width - least <= _MISSING else 1

    def sharing(self, nodes: NumaMask, least: int) -> int:
        """The bits of the masks that have at least so many of these nodes; of all where that is most."""
        spare = nodes.bit_count() - least
        if spare > _MISSING:
            return self.every
        if spare < 0:
            return 0
        # Place k: the masks that lack at most k of the nodes looked at so far.
        lacking = [self.every] * (spare + 1)
        for node in bits(nodes):
            have = self.having[node]
            for count in range(spare, 0, -1):
                lacking[count] &= have | lacking[count - 1]
            lacking[0] &= have
            if not lacking[spare]:
                return 0
        return lacking[spare]
