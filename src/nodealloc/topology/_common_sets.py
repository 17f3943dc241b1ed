"""Sets of nodes that lists of masks can have in common, looked for one by one in the order that counts.

Where combinations abound, most sets of the right width come out of some, and
the lowest such set is among the first that are tried. So the sets are walked
through, and for each it is asked whether one mask of every list can be chosen
that contains it, such that these leave nothing else in common.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from nodealloc.idset import bits
from nodealloc.topology._bitmap_index import BitmapIndex
from nodealloc.topology._hints import NumaMask
from nodealloc.topology._walk import Keep, walk
from nodealloc.topology._work import Work

__all__ = ["CommonSets"]

_Left: TypeAlias = tuple[NumaMask, tuple[int, ...]]
"""The nodes that are taken, and of each list, as bits, the masks that contain them."""


class CommonSets:
    """Sets that come out when each list chooses one mask, as a `Space` and by questions, as `Sets`.

    Args:
        lists: Masks inside `common`; none of them is 0, and no list is empty.
        common: The nodes.
        work: What is spent.
    """

    def __init__(self, lists: Sequence[set[NumaMask]], common: NumaMask, work: Work) -> None:
        self.nodes: tuple[int, ...] = tuple(bits(common))
        self._common = common
        self._work = work
        self._lists = [BitmapIndex(masks, self.nodes) for masks in lists]
        self._having = [[one.having[node] for one in self._lists] for node in self.nodes]
        work.spend(sum(map(len, lists)) * len(self.nodes) // 8)

    def lowest(self, width: int) -> NumaMask:
        """The lowest set of so many nodes; 0 without any."""
        return next(self.ascending(width), 0)

    def ascending(self, width: int, keep: Keep | None = None) -> Iterator[NumaMask]:
        """Every set of so many nodes, ascending."""
        return walk(self, width, self._work, keep)

    def surely(self, mask: NumaMask) -> bool:
        """Whether a set comes out."""
        left = self._left(mask)
        return all(left) and self._comes_out(mask, left)

    def contains(self, mask: NumaMask) -> bool:
        """Whether each list has a mask that contains a set."""
        self._work.spend(1 + mask.bit_count() * len(self._lists) // 16)
        return all(self._left(mask))

    def _left(self, mask: NumaMask) -> list[int]:
        """Of each list, as bits, the masks that contain a set."""
        left = [one.every for one in self._lists]
        for place, node in enumerate(self.nodes):
            if mask >> node & 1:
                left = [have & held for have, held in zip(left, self._having[place], strict=True)]
        return left

    def start(self, take: int, /) -> _Left:
        """See `Space`."""
        del take
        return 0, tuple([one.every for one in self._lists])

    def without(self, state: _Left, place: int, take: int, /) -> _Left | None:
        """See `Space`."""
        del take
        for have, held in zip(state[1], self._having[place], strict=True):
            if have & ~held:
                return state
        return None

    def taking(self, state: _Left, place: int, /) -> _Left | None:
        """See `Space`."""
        taken, left = state
        left = tuple([have & held for have, held in zip(left, self._having[place], strict=True)])
        return (taken | 1 << self.nodes[place], left) if all(left) else None

    def may(self, state: _Left, undecided: int, take: int, /) -> bool:
        """See `Space`."""
        taken, left = state
        if take == 0:
            return self._comes_out(taken, left)
        self._work.spend(2 + undecided * len(left) // 16)
        able = 0
        for place in range(undecided):
            for have, held in zip(left, self._having[place], strict=True):
                if not have & held:
                    break
            else:
                able += 1
        return able >= take

    def _comes_out(self, mask: NumaMask, left: Sequence[int]) -> bool:
        """Whether masks that contain a set, these of each list, can leave nothing else in common."""
        rest = self._common & ~mask
        beyond = [
            {mask & rest for mask in one.chosen(some)} for one, some in zip(self._lists, left, strict=True)
        ]
        self._work.spend(1 + sum(map(len, beyond)) // 4)
        kept = rest
        for others in sorted(beyond, key=len):
            kept &= min(others, key=lambda other: (other & kept).bit_count())
        return not kept or self._empties(beyond, rest)

    def _empties(self, beyond: Sequence[set[NumaMask]], rest: NumaMask) -> bool:
        """Whether one mask of each list can be chosen such that they have no node in common."""
        always = rest
        for others in beyond:
            for other in others:
                always &= other
        if always:
            return False
        found = {rest}
        for others in sorted(beyond, key=len):
            self._work.spend(1 + len(found) * len(others) // 4)
            found = _least({one & other for one in found for other in others})
            if 0 in found:
                return True
        return False


def _least(masks: set[NumaMask]) -> set[NumaMask]:
    """Those that contain none of the others, as far as the narrowest few tell."""
    if len(masks) < 3 or 0 in masks:
        return masks
    narrow = sorted(masks, key=int.bit_count)[:_COMPARED]
    return {one for one in masks if not any(not few & ~one and few != one for few in narrow)}


_COMPARED = 16
"""So many masks are compared with all others; this only makes them fewer."""
