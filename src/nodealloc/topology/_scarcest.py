"""The sets of one width that lists of masks can have in common: list by list, the most constrained first.

Where sets of the right width are rare, neither trying them in order nor
intersecting all masks ends soon. Here the list that leaves the fewest choices
is asked next, and a set is given up as soon as one of the lists that are left
has no mask with enough of its nodes. All masks of all lists stand side by side
as the bits of one integer (`BitmapIndex` has them list by list), so that the question
is put to all lists at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from nodealloc.idset import bits, lowest
from nodealloc.topology._hints import NumaMask
from nodealloc.topology._work import Work

__all__ = ["Scarcest"]

_COUNTED_MISSING = 6
"""Beyond so many nodes that may be missing, nearly every mask has enough; they are not counted then."""

_BYTE = 8
_VALUES = 1 << _BYTE


_Branch: TypeAlias = tuple[NumaMask, int, int, Sequence[int]]
"""What some lists leave in common; of the others the masks that may have enough of it, guards, and places."""


class Scarcest:
    """Sets that come out when each list chooses one mask.

    Args:
        lists: Masks inside `common`; none of them is 0, and no list is empty.
        common: The nodes.
        work: What is spent.
    """

    def __init__(self, lists: Sequence[set[NumaMask]], common: NumaMask, work: Work) -> None:
        work.spend(sum(map(len, lists)) * common.bit_count() // 8)
        self._work = work
        self._common = common
        self._flat: list[NumaMask] = []  # each list ends with a mask of no node, whose bit is its guard
        self._parts: list[int] = []
        self._guards: list[int] = []
        for masks in lists:
            first = len(self._flat)
            self._flat += [*sorted(masks), 0]
            self._parts.append((1 << len(masks)) - 1 << first)
            self._guards.append(1 << first + len(masks))
        # What is added to any bit of a list carries into its guard; to none, it does not.
        self._every: int = sum(self._parts)
        self._having = {node: self._with(node) for node in bits(common)}
        self._bytes = [self._table(first) for first in range(0, common.bit_length(), _BYTE)]

    def lowest(self, width: int, below: NumaMask = 0) -> NumaMask:
        """The lowest set of so many nodes, if it is `below` another one; 0 without any."""
        found = 0
        for found in self._found(width, below or 1 << self._common.bit_length()):  # noqa: B007 - the last one
            pass
        return found

    def every(self, width: int) -> set[NumaMask]:
        """All sets of so many nodes."""
        return set(self._found(width, None))

    def _found(self, width: int, below: NumaMask | None) -> Iterator[NumaMask]:
        """Sets of so many nodes: all of them, or such that are below the ones before."""
        branches: list[_Branch] = []
        sets = [self._common]
        lanes, guards = self._every, sum(self._guards)
        others: Sequence[int] = range(len(self._parts))
        while True:
            for nodes in sets:
                if below is not None and lowest(nodes, width) >= below:
                    continue
                if nodes.bit_count() > width + 1:
                    branches.append((nodes, lanes, guards, others))
                    continue
                for found in self._ends(nodes, lanes, guards, width):
                    if below is None or found < below:
                        below = below and found
                        yield found
            if not branches:
                return
            nodes, lanes, guards, others = branches.pop()
            sets = []
            if below is None or lowest(nodes, width) < below:
                lanes &= self._sharing(nodes, width)
                if others and self._hold(lanes, guards):
                    sets, lanes, guards, others = self._narrowed(nodes, lanes, guards, others, width)

    def _narrowed(
        self, nodes: NumaMask, lanes: int, guards: int, others: Sequence[int], width: int
    ) -> tuple[list[NumaMask], int, int, Sequence[int]]:
        """What the masks of the scarcest list leave of some nodes, the lowest last; and the other lists."""
        left = [(lanes & self._parts[place]).bit_count() for place in others]
        scarcest = others[left.index(min(left))]
        flat = self._flat
        sets = {nodes & flat[place] for place in bits(lanes & self._parts[scarcest])}
        self._work.spend(1 + len(sets))
        return (
            sorted([both for both in sets if both.bit_count() >= width], reverse=True),
            lanes & ~self._parts[scarcest],
            guards & ~self._guards[scarcest],
            [place for place in others if place != scarcest],
        )

    def _ends(self, nodes: NumaMask, lanes: int, guards: int, width: int) -> Iterator[NumaMask]:
        """The sets that come of nodes of which at most one is too many."""
        if nodes.bit_count() == width:
            for first, all_of, _ in self._bytes:
                lanes &= all_of[nodes >> first & _VALUES - 1]
            if self._hold(lanes, guards):
                yield nodes
        elif self._hold(self._nearly(nodes) & lanes, guards):
            self._work.spend(width)
            for node in bits(nodes):
                left = nodes & ~(1 << node)
                those = self._containing(left) & lanes
                # Some list has to leave the node out, or the set is one node wider.
                if those & ~self._having[node] and self._hold(those, guards):
                    yield left

    def _hold(self, lanes: int, guards: int) -> bool:
        """Whether each list of these guards has at least one of the masks."""
        return lanes + self._every & guards == guards

    def _with(self, node: int) -> int:
        """Bits of the masks that have a node."""
        return int("".join(["1" if mask >> node & 1 else "0" for mask in reversed(self._flat)]), 2)

    def _table(self, first: int) -> tuple[int, list[int], list[int]]:
        """Of eight nodes, by which of them: the masks that have all, and those that lack at most one."""
        all_of, nearly = [self._every], [self._every]
        for value in range(1, _VALUES):
            low = value & -value
            have = self._having.get(first + low.bit_length() - 1, 0)
            rest = value ^ low
            all_of.append(all_of[rest] & have)
            nearly.append(nearly[rest] & have | all_of[rest])
        return first, all_of, nearly

    def _containing(self, nodes: NumaMask) -> int:
        """The masks that have all of some nodes."""
        found = self._every
        for first, all_of, _ in self._bytes:
            found &= all_of[nodes >> first & _VALUES - 1]
        return found

    def _nearly(self, nodes: NumaMask) -> int:
        """The masks that lack at most one of some nodes."""
        none = one = self._every
        for first, all_of, nearly in self._bytes:
            value = nodes >> first & _VALUES - 1
            one = one & all_of[value] | none & nearly[value]
            none &= all_of[value]
        return one

    def _sharing(self, nodes: NumaMask, width: int) -> int:
        """The masks that have so many of some nodes; all where that is most."""
        spare = nodes.bit_count() - width
        self._work.spend(2 + spare)
        if spare > _COUNTED_MISSING:
            return self._every
        # Place k: the masks that lack at most k of the nodes looked at so far.
        lacking = [self._every] * (spare + 1)
        places = range(spare, 0, -1)
        for node in bits(nodes):
            have = self._having[node]
            for count in places:
                lacking[count] &= have | lacking[count - 1]
            lacking[0] &= have
        return lacking[spare]
