"""Masks that every resource prefers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import merge as merged

from nodealloc.topology._closeness import closest
from nodealloc.topology._counted import CountedHints
from nodealloc.topology._covering import Covering
from nodealloc.topology._hints import NumaMask, NumaTopology
from nodealloc.topology._reading import Reading
from nodealloc.topology._walk import Keep
from nodealloc.topology._work import Work

__all__ = ["Preferred"]


class Preferred:
    """The preferred masks of a merge: those that all resources prefer, in order.

    Lists are intersected. A mask that a list, or an answer's own `others`,
    names is looked up in what is counted. Where everything is counted, the
    masks are sets of one width that hold enough for all resources at once.

    Args:
        reading: What the hints come to.
        full: All nodes.
        work: What is spent.
    """

    def __init__(self, reading: Reading, full: NumaMask, work: Work) -> None:
        counted = [
            one
            for place, one in enumerate(reading.counted)
            if not place or one is not reading.counted[place - 1]
        ]
        self._counted = counted
        self._work = work
        self._sets: _Counted | None = None
        among = full
        if reading.common is not None or not counted:
            listed = set(reading.choice(full))
        else:
            listed = {mask for one in counted for mask, good in one.others if good and mask}
            for one in counted:
                among &= one.nodes
            needs = [need for one in counted for need in one.needs]
            self._sets = _Counted(counted, Covering(needs, among, work))
        work.spend(len(listed) * len(counted))
        self._listed = [mask for mask in listed if all(one.prefers(mask) for one in counted)]
        self._listed.sort(key=_by_width)

    def __contains__(self, mask: NumaMask) -> bool:
        """Whether all resources prefer a mask."""
        if self._sets is None:
            return mask in self._listed
        return all(one.prefers(mask) for one in self._counted)

    def widths(self) -> Iterator[int]:
        """Numbers of nodes that such a mask may have, ascending."""
        found = {mask.bit_count() for mask in self._listed}
        if self._sets is not None:
            found.update(self._sets.widths())
        return iter(sorted(found))

    def lowest(self, width: int) -> NumaMask | None:
        """The lowest mask of a width, or None."""
        named = next((mask for mask in self._listed if mask.bit_count() == width), None)
        counted = self._sets.lowest(width) if self._sets is not None else 0
        if not counted:
            return named
        return counted if named is None else min(named, counted)

    def nearest(self, width: int, numa: NumaTopology) -> NumaMask | None:
        """The mask of a width whose nodes are closest to each other, or None."""
        named = [mask for mask in self._listed if mask.bit_count() == width]
        if self._sets is not None:
            counted = closest([self._sets], width, numa, self._work)
            named += [counted] if counted else []
        return min(named, key=lambda mask: (numa.spread(mask), mask), default=None)

    def ascending(self, width: int) -> Iterator[NumaMask]:
        """All masks of a width."""
        named = [mask for mask in self._listed if mask.bit_count() == width]
        return iter(named) if self._sets is None else merged(named, self._sets.ascending(width))


class _Counted:
    """Sets that hold enough for all resources and that each of them prefers, as `Sets`."""

    def __init__(self, counted: Sequence[CountedHints], space: Covering) -> None:
        self._counted = counted
        self._space = space

    @property
    def nodes(self) -> tuple[int, ...]:
        return self._space.nodes

    def widths(self) -> Iterator[int]:
        """Numbers of nodes that such a set may have."""
        for width in range(1, len(self.nodes) + 1):
            if all(width == one.preferred_width or one.preferred_parts for one in self._counted):
                yield width

    def lowest(self, width: int) -> NumaMask:
        """The lowest set of so many nodes; 0 without any."""
        if all(one.preferred_width == width for one in self._counted):
            return self._space.lowest(width)
        return next(self.ascending(width), 0)

    def ascending(self, width: int, keep: Keep | None = None) -> Iterator[NumaMask]:
        limited = [one for one in self._counted if one.preferred_width != width]

        def within(taken: NumaMask, undecided: int, take: int) -> bool:
            if any(one.touched(taken) > one.preferred_parts for one in limited):
                return False
            return keep is None or keep(taken, undecided, take)

        for mask in self._space.ascending(width, within if limited else keep):
            if all(one.suits(mask) for one in limited):
                yield mask

    def surely(self, mask: NumaMask) -> bool:
        return self._space.holds(mask) and all(one.suits(mask) for one in self._counted)


def _by_width(mask: NumaMask) -> tuple[int, NumaMask]:
    return mask.bit_count(), mask
