"""Nodes near to each other: the nearest of the sets of one size, without looking at each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Protocol

from nodealloc.idset import bits, lowest
from nodealloc.topology._hints import NumaMask, NumaTopology
from nodealloc.topology._walk import Keep
from nodealloc.topology._work import Work

__all__ = ["Sets", "closest"]


class Sets(Protocol):
    """Sets of some nodes."""

    @property
    def nodes(self) -> tuple[int, ...]:
        """The nodes, ascending."""
        ...

    def ascending(self, width: int, keep: Keep | None = None) -> Iterator[NumaMask]:
        """Those of so many nodes."""
        ...

    def surely(self, mask: NumaMask) -> bool:
        """Whether a set of the nodes is one of them; False may be wrong."""
        ...


def closest(sources: Iterable[Sets], width: int, numa: NumaTopology, work: Work) -> NumaMask:
    """Of all sets of so many nodes that with the smallest distances, then the lowest; 0 without any.

    Raises:
        DistanceError: The distances are not known.
        WorkLimitError: `work` is used up.
    """
    best = _Best(numa, work)
    for source in sources:
        near = _Near(numa, source.nodes, work)
        for mask in near.huddles(width):
            if best.would_be(mask) and source.surely(mask):
                best.take(mask)
        for mask in source.ascending(width, near.better_than(best)):
            if best.would_be(mask):
                best.take(mask)
    return best.mask


class _Best:
    """The best set so far."""

    def __init__(self, numa: NumaTopology, work: Work) -> None:
        self._numa = numa
        self._work = work
        self.mask: NumaMask = 0
        self.spread: int = 0

    def would_be(self, mask: NumaMask) -> bool:
        """Whether a set is better."""
        self._work.spend(1 + mask.bit_count() * mask.bit_count() // 8)
        return not self.mask or (self._numa.spread(mask), mask) < (self.spread, self.mask)

    def take(self, mask: NumaMask) -> None:
        """Take a set as the best."""
        self.mask, self.spread = mask, self._numa.spread(mask)


class _Near:
    """Distances between some nodes, both ways added up."""

    def __init__(self, numa: NumaTopology, nodes: tuple[int, ...], work: Work) -> None:
        self._nodes = nodes
        self._work = work
        numa.spread(0)  # says what is wrong when there are no distances
        rows = numa.distances
        work.spend(len(nodes) * len(nodes) // 4)
        self._own = [rows[node][node] for node in nodes]
        self._far = [[rows[one][other] + rows[other][one] for other in nodes] for one in nodes]
        self._place = {node: place for place, node in enumerate(nodes)}
        self._sums: dict[tuple[int, int], list[int]] = {}

    def huddles(self, width: int) -> Iterator[NumaMask]:
        """For each node the set of the nodes nearest to it."""
        for far in self._far:
            self._work.spend(4)
            nearest = sorted(range(len(self._nodes)), key=far.__getitem__)[:width]
            if len(nearest) == width:
                yield sum([1 << self._nodes[place] for place in nearest])

    def better_than(self, best: _Best) -> Keep:
        """Whether a branch can hold a set that is better than the best so far."""
        every = sum([1 << node for node in self._nodes])

        def keep(taken: NumaMask, undecided: int, take: int) -> bool:
            if not best.mask:
                return True
            bound = self._bound(taken, undecided, take)
            if bound != best.spread:
                return bound < best.spread
            below = (1 << self._nodes[undecided]) - 1 if undecided < len(self._nodes) else -1
            return taken | lowest(every & below, take) < best.mask

        return keep

    def _bound(self, taken: NumaMask, undecided: int, take: int) -> int:
        """What the distances in a set come to at least: each node has its nearest ones beside it.

        Counted twice over, each pair once from either end, and halved at the end.
        """
        places = [self._place[node] for node in bits(taken)]
        self._work.spend(4 + (len(places) + 2) * (undecided + 1) // 3)
        own, far = self._own, self._far
        double = sum(
            [2 * own[one] + sum([far[one][other] for other in places if other != one]) for one in places]
        )
        double += sum([self._nearest(one, undecided)[take] for one in places])
        if take:
            each = [
                2 * own[one]
                + sum([far[one][other] for other in places])
                + self._nearest(one, undecided)[take - 1]
                for one in range(undecided)
            ]
            double += sum(sorted(each)[:take])
        return -(-double // 2)

    def _nearest(self, one: int, undecided: int) -> list[int]:
        """Sums of the distances to the nearest of the undecided nodes: of none, of one, of two."""
        found = self._sums.get((one, undecided))
        if found is None:
            self._work.spend(1 + undecided // 8)
            far = self._far[one]
            found = self._sums[one, undecided] = [
                0,
                *accumulate(sorted([far[other] for other in range(undecided) if other != one])),
            ]
        return found
