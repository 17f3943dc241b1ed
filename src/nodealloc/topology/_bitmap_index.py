"""A bitmap index over a list of masks: for each node the masks that have it, as the bits of one integer.

What is asked of every mask of the list is then answered for all of them at
once, by a few operations of whole integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nodealloc.idset import bits
from nodealloc.topology._hints import NumaMask

__all__ = ["BitmapIndex"]


class BitmapIndex:
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
        downwards = self.masks[::-1]
        self.having: dict[int, int] = {
            node: int("".join(["1" if mask >> node & 1 else "0" for mask in downwards]) or "0", 2)
            for node in nodes
        }

    def chosen(self, places: int) -> Iterator[NumaMask]:
        """The masks of these bits."""
        masks = self.masks
        return (masks[place] for place in bits(places))
