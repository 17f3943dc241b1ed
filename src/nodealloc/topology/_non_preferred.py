"""Masks that come out when no combination is preferred: what all resources leave in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge as merged
from itertools import groupby, product
from typing import TypeAlias

from nodealloc.idset import bits, lowest
from nodealloc.topology._closeness import closest
from nodealloc.topology._counted import CountedHints
from nodealloc.topology._covering import Covering
from nodealloc.topology._hints import NumaMask, NumaTopology
from nodealloc.topology._narrowing import Narrowing
from nodealloc.topology._reachable import reachable
from nodealloc.topology._reading import Reading
from nodealloc.topology._walk import Keep
from nodealloc.topology._work import Work

__all__ = ["NonPreferred"]

_Copies: TypeAlias = tuple[CountedHints, int, int]
"""An answer, how many resources take a set of its `others`, and how many one that is counted."""


class NonPreferred:
    """The masks of all combinations that have a node in common.

    Each resource takes one of its listed masks or a set that its figures allow.
    What lists leave in common is one of a few *intersections*; inside one, counted
    resources may leave nodes out as far as they can spare them (`Narrowing`).

    Attributes:
        target: How many nodes the neediest resource needs at least: masks of
            that width are best, else a little narrower, else wider ones.

    Args:
        reading: What the hints come to.
        full: All nodes.
        work: What is spent.
    """

    def __init__(self, reading: Reading, full: NumaMask, work: Work) -> None:
        self._work = work
        self._full = full
        self._lists = reading.masks(full)
        groups = [(one, len([*same])) for one, same in groupby(reading.counted, key=lambda one: one)]
        fewest = {id(one): Covering(one.needs, one.nodes, work).fewest() for one, _ in groups}
        self.target: int = max(
            *[one.least for one in reading.lists],
            *[_narrowest(one, fewest[id(one)]) for one, _ in groups],
            0,
            0,
        )
        self._ways = [_ways(one, count, fewest[id(one)]) for one, count in groups]
        self._found: list[_Intersection] | None = None

    @property
    def _intersections(self) -> list[_Intersection]:
        """Wide ones first; worked out when they are first asked for."""
        if self._found is None:
            found = [one for copies in product(*self._ways) for one in self._intersections_of(copies)]
            self._found = sorted(found, key=lambda one: -one.width)
        return self._found

    def _intersections_of(self, copies: Sequence[_Copies]) -> list[_Intersection]:
        """The intersections in which these resources take a listed mask, and the others count."""
        lists: list[Sequence[NumaMask]] = [*self._lists]
        counted: list[CountedHints] = []
        within = self._full
        for one, listed, rest in copies:
            lists += [[mask or 0 for mask, _ in one.others]] * listed
            counted += [one] * rest
            if rest:
                within &= one.nodes
        masks = {mask & within for mask in reachable(lists, self._full, self._work)} - {0}
        self._work.spend(len(masks))
        return [_Intersection(mask, counted, self._work) for mask in masks]

    def widths(self) -> Iterator[int]:
        """Numbers of nodes, the best one first."""
        widest = max([one.width for one in self._intersections], default=0)
        yield from range(min(self.target, widest), 0, -1)
        yield from range(self.target + 1, widest + 1)

    def best(self, numa: NumaTopology, *, near: bool) -> NumaMask:
        """The first of all in order: of the best width, closest if asked for, lowest; 0 without any."""
        for width in self.widths():
            intersections = [one for one in self._intersections if one.width == width or width >= self.target]
            found = closest(intersections, width, numa, self._work) if near else _lowest(intersections, width)
            if found:
                return found
        return 0

    def ascending(self, width: int) -> Iterator[NumaMask]:
        """All masks of a width."""
        last = 0
        for mask in merged(*[one.ascending(width) for one in self._intersections]):
            if mask != last:
                yield mask
            last = mask


class _Intersection:
    """What lists leave in common, and the sets that come out inside it."""

    def __init__(self, mask: NumaMask, counted: Sequence[CountedHints], work: Work) -> None:
        self.mask: NumaMask = mask
        self.width: int = mask.bit_count()
        self._counted = counted
        self._work = work
        self._space: Narrowing | None = None

    @property
    def nodes(self) -> tuple[int, ...]:
        """See `Sets`."""
        return tuple(bits(self.mask))

    def lowest(self, width: int) -> NumaMask:
        """The lowest set of so many nodes; 0 without any."""
        if width >= self.width or not self._counted:
            return self.mask if width == self.width else 0
        return self._narrowing().lowest(width)

    def ascending(self, width: int, keep: Keep | None = None) -> Iterator[NumaMask]:
        """See `Sets`."""
        if width >= self.width or not self._counted:
            return iter((self.mask,) if width == self.width else ())
        return self._narrowing().ascending(width, keep)

    def surely(self, mask: NumaMask) -> bool:
        """See `Sets`."""
        if mask == self.mask:
            return True
        return bool(self._counted) and self._narrowing().surely(mask)

    def _narrowing(self) -> Narrowing:
        if self._space is None:
            self._space = Narrowing(self._counted, self.mask, self._work)
        return self._space


def _lowest(intersections: Sequence[_Intersection], width: int) -> NumaMask:
    best = 0
    for one in intersections:
        if not best or lowest(one.mask, width) < best:
            found = one.lowest(width)
            if found and (not best or found < best):
                best = found
    return best


def _narrowest(one: CountedHints, fewest: int) -> int:
    """Number of nodes of an answer's narrowest set."""
    widths = [mask.bit_count() for mask, _ in one.others if mask]
    return min([*widths, fewest] if fewest else widths)


def _ways(one: CountedHints, count: int, fewest: int) -> list[_Copies]:
    """How so many resources with one answer can share out its listed and its counted sets."""
    least = 0 if fewest else count
    most = count if one.others else 0
    return [(one, listed, count - listed) for listed in range(least, most + 1)]
