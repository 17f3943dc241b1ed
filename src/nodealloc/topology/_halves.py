"""The sets of one width that lists of masks can have in common, on up to 32 nodes: half the nodes at once.

A set that comes out is contained in a mask of each list, and has at least half
of its nodes in the upper or in the lower half of all nodes. So the parts of at
least that size are gone through, of either half; few masks contain one. The
parts of the other half that complete it are worked out together: all parts of
one size are the bits of one integer (`_Parts`), those that a mask contains are
one more, and what all lists allow is what these have in common.

The lowest set is looked for among the lower nodes alone first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from math import comb, exp
from typing import NamedTuple

from nodealloc.idset import bits
from nodealloc.topology._hints import NumaMask
from nodealloc.topology._work import Work

__all__ = ["HALVED_NODES", "HalvedSets"]

HALVED_NODES = 32
"""Beyond, the parts of one half are too many for one integer."""

_STEP = 6
"""By so many nodes more each time the lowest set is looked for."""

_RARE = 20
"""Fewer sets, were the masks drawn by lot, are looked for among all nodes at once."""

_BYTE = 8
_VALUES = 1 << _BYTE


class HalvedSets:
    """Sets that come out when each list chooses one mask.

    Args:
        lists: Masks inside `common`; none of them is 0, and no list is empty.
        common: The nodes, at most `HALVED_NODES`.
        comes_out: Whether masks can be chosen that leave exactly this set, which
            each list has a mask for.
        work: What is spent.
    """

    def __init__(
        self,
        lists: Sequence[set[NumaMask]],
        common: NumaMask,
        comes_out: Callable[[NumaMask], bool],
        work: Work,
    ) -> None:
        self._nodes = tuple(bits(common))
        place = {node: at for at, node in enumerate(self._nodes)}
        work.spend(sum(map(len, lists)) * 2)
        self._lists = lists
        if common & common + 1:  # not the lowest nodes, each its own place
            self._lists = [
                {sum([1 << place[node] for node in bits(mask)]) for mask in masks} for masks in lists
            ]
        self._comes_out = comes_out
        self._work = work

    def lowest(self, width: int) -> NumaMask:
        """The lowest set of so many nodes; 0 without any."""
        count = len(self._nodes)
        first = count if self.are_rare(width) else count - count // 2 // _STEP * _STEP
        for within in range(first, count + 1, _STEP):
            best = 0
            for side in self._split(within, width):
                for found in self._found(side, width, best or 1 << within):
                    best = found
            if best:
                return self._named(best)
        return 0

    def are_rare(self, width: int) -> bool:
        """Whether few sets of so many nodes are likely, so that the lower nodes alone have none."""
        likely = float(comb(len(self._nodes), width))
        all_sets = likely
        for masks in self._lists:
            contained = sum([comb(mask.bit_count(), width) for mask in masks])
            likely *= 1 - exp(-contained / all_sets)
        return likely < _RARE

    def every(self, width: int) -> set[NumaMask]:
        """All sets of so many nodes."""
        return {mask for mask in self.contained(width) if self._comes_out(mask)}

    def contained(self, width: int) -> set[NumaMask]:
        """All sets of so many nodes that each list has a mask for, whether they come out or not."""
        sides = self._split(len(self._nodes), width)
        return {self._named(found) for side in sides for found in self._found(side, width, None)}

    def _split(self, within: int, width: int) -> Sequence[_Side]:
        """The lists on so many of the nodes, by the lower half and by the upper one; none without any."""
        every, low = (1 << within) - 1, within // 2
        lists = [[*{mask & every for mask in masks}] for masks in self._lists]
        lists = [[mask for mask in masks if mask.bit_count() >= width] for masks in lists]
        self._work.spend(sum(map(len, self._lists)) // 2)
        if not all(lists):
            return ()
        lower = [[mask & (1 << low) - 1 for mask in masks] for masks in lists]
        upper = [[mask >> low for mask in masks] for masks in lists]
        return (
            _Side(lower, upper, going=low, held=within - low, gone_at=0, held_at=low, first=2),
            _Side(upper, lower, going=within - low, held=low, gone_at=low, held_at=0, first=1),
        )

    def _found(self, side: _Side, width: int, below: int | None) -> Iterator[NumaMask]:
        """Sets with half or more of their nodes among those gone through: all, or ever lower ones."""
        limits: dict[int, int] = {}
        for part, left, order in side.parts((width + side.first) // 2, width, self._work):
            if below is not None and part << side.gone_at > below:
                break
            size = width - part.bit_count()
            limit = limits.get(size)
            if limit is None:
                bounded = below is not None and side.held_at
                top = below >> side.held_at if below is not None and bounded else -1
                limit = limits[size] = (1 << _up_to(top, size, side.held)) - 1
            allowed = side.completing(left, order, size, limit)
            for rank in bits(allowed):
                found = part << side.gone_at | _parts(side.held, size).of(rank) << side.held_at
                if below is not None and found >= below:
                    break
                if below is None:
                    yield found
                elif self._comes_out(self._named(found)):
                    yield found
                    below = found
                    limits.clear()
                    break

    def _named(self, mask: NumaMask) -> NumaMask:
        """A set of places as one of nodes."""
        return sum([1 << self._nodes[place] for place in bits(mask)])


class _Side:
    """Lists cut in two: what is gone through, and what is worked out together.

    Args:
        gone: Of each list, each mask's nodes among those that are gone through.
        other: Of each list, each mask's other nodes.
        going: How many nodes are gone through.
        held: How many others there are.
        gone_at: The lowest node that is gone through.
        held_at: The lowest of the others.
        first: 1 when it has the sets of which both halves have as many nodes, else 2.
    """

    def __init__(
        self,
        gone: Sequence[Sequence[int]],
        other: Sequence[Sequence[int]],
        *,
        going: int,
        held: int,
        gone_at: int,
        held_at: int,
        first: int,
    ) -> None:
        self._gone = gone
        self._other = other
        self._going = going
        self.held: int = held
        self.gone_at: int = gone_at
        self.held_at: int = held_at
        self.first: int = first
        self._contained: dict[int, list[list[int]]] = {}
        # The masks of all lists side by side, each list with a guard behind it, as `Scarcest` has them.
        self._lists: list[tuple[int, int]] = []
        place = 0
        for masks in gone:
            self._lists.append((place, (1 << len(masks)) - 1))
            place += len(masks) + 1

    def parts(self, least: int, most: int, work: Work) -> Iterator[tuple[int, int, Sequence[int]]]:
        """Sets of so many nodes, ascending, with the masks of all lists that contain it; an order of lists.

        The lists with the fewest such masks stand first, as far as most of the nodes tell.
        """
        least = max(least, most - self.held)
        work.spend(sum(map(len, self._gone)) * self._going // 16)
        having = [self._having(node) for node in range(self._going)]
        every = sum([masks << first for first, masks in self._lists])
        guards = sum([masks + 1 << first for first, masks in self._lists])
        order: Sequence[int] = range(len(self._gone))
        open_ends: list[tuple[int, int, int, int, Sequence[int]]] = [(0, 0, self._going, every, order)]
        while open_ends:
            part, size, below, left, order = open_ends.pop()
            if size >= least:
                work.spend(12)
                yield part, left, order
            elif size >= least - 2:
                counts = [(left >> first & masks).bit_count() for first, masks in self._lists]
                order = sorted(order, key=counts.__getitem__)
            if size < most:
                work.spend(1 + below)
                for node in range(below - 1, max(least - size - 2, -1), -1):
                    inside = left & having[node]
                    # What is added to any bit of a list carries into its guard; to none, it does not.
                    if inside + every & guards == guards:
                        open_ends.append((part | 1 << node, size + 1, node, inside, order))

    def _having(self, node: int) -> int:
        """The masks that have one of the nodes."""
        digits = [
            "0" + "".join(["1" if mask >> node & 1 else "0" for mask in masks[::-1]]) for masks in self._gone
        ]
        return int("".join(digits[::-1]), 2)

    def completing(self, left: int, order: Sequence[int], size: int, limit: int) -> int:
        """Sets of so many of the other nodes, out of `limit`, that each list has one of these masks for."""
        contained = self._contained.get(size) or self._contains(size)
        found = limit
        for place in order:
            first, masks = self._lists[place]
            sets, lanes = contained[place], left >> first & masks
            allowed = 0
            while lanes:
                one = lanes & -lanes
                lanes ^= one
                allowed |= sets[one.bit_length()]
            found &= allowed
            if not found:
                break
        return found

    def _contains(self, size: int) -> list[list[int]]:
        """Of each list, by the place of each mask counted from 1, its sets of so many of the other nodes."""
        parts = _parts(self.held, size)
        lower, upper = parts.lower, parts.upper
        found = [
            [0, *[lower[mask & _VALUES - 1] & upper[mask >> _BYTE] for mask in masks]]
            for masks in self._other
        ]
        self._contained[size] = found
        return found


def _up_to(top: int, size: int, nodes: int) -> int:
    """How many sets of so many nodes are not above one, as numbers; all for -1."""
    if top >> nodes:
        return comb(nodes, size)
    count = 0
    for place in range(nodes - 1, -1, -1):
        if top >> place & 1:
            count += comb(place, size)
            size -= 1
            if size < 0:
                return count
    return count + (size == 0)


class _Parts(NamedTuple):
    """All sets of so many of some nodes, ascending, as the bits of an integer.

    Attributes:
        nodes: How many nodes.
        size: How many of them each set has.
        lower: By which of the lowest eight nodes a mask has: the sets with no other of these.
        upper: The same for the nodes above.
    """

    nodes: int
    size: int
    lower: tuple[int, ...]
    upper: tuple[int, ...]

    def of(self, rank: int) -> int:
        """The set at a place."""
        found, size = 0, self.size
        for node in range(self.nodes - 1, -1, -1):
            before = comb(node, size)
            if size and rank >= before:
                rank -= before
                size -= 1
                found |= 1 << node
        return found


@lru_cache(maxsize=256)
def _parts(nodes: int, size: int) -> _Parts:
    every = (1 << comb(nodes, size)) - 1
    without = [every & ~_having(node, nodes, size) for node in range(nodes)]
    tables: list[tuple[int, ...]] = []
    for first in (0, _BYTE):
        here = without[first : first + _BYTE]
        table = [every]
        for value in range(1, 1 << len(here)):
            low = value & -value
            table.append(table[value ^ low] & here[low.bit_length() - 1])
        tables.append(tuple(table[::-1]))  # a mask that lacks these nodes has the others
    return _Parts(nodes, size, tables[0], tables[1])


@lru_cache(maxsize=4096)
def _having(node: int, nodes: int, size: int) -> int:
    """Which of the sets have a node: those without the highest node stand first."""
    if not 0 < size <= nodes:
        return 0
    before = comb(nodes - 1, size)
    if node == nodes - 1:
        return (1 << comb(nodes - 1, size - 1)) - 1 << before
    return _having(node, nodes - 1, size) | _having(node, nodes - 1, size - 1) << before
