"""Values only: hints that are counted instead of listed, and the one order in which sets are listed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from heapq import merge as merged
from itertools import combinations, islice
from typing import final

from nodealloc import _attrs as attrs
from nodealloc._arguments import check, wrong
from nodealloc._typed import typed_fields, typed_on_error
from nodealloc.errors import ConfigurationError
from nodealloc.idset import bits
from nodealloc.topology._covering import Covering
from nodealloc.topology._errors import WorkLimitError
from nodealloc.topology._masks import NumaMask, TopologyHint
from nodealloc.topology._needs import Need
from nodealloc.topology._work import Work

__all__ = ["LISTED_NODES", "CountedHints", "Need", "in_order", "node_masks"]

LISTED_NODES = 8
"""Up to so many NUMA nodes the allocators here list their hints, as the kubelet does; beyond they count."""


_LISTING_UNITS = 50_000
"""Work that may be spent on what is only shown."""


@final
@typed_fields
@attrs.frozen(kw_only=True)
class CountedHints:
    """Hints of one resource by what the nodes could give, for any number of nodes.

    They stand for every set of `nodes` that meets all `needs`, as a `range`
    stands for its numbers, and for the sets in `others`. Iterating lists them
    in the kubelet's order, which on many nodes never ends in practice: the
    merge works on the figures.

    Attributes:
        nodes: The sets are made of these, as a mask.
        needs: What each set has to hold; a wider set never holds less.
        preferred_width: Sets of exactly so many nodes are preferred: the fewest
            that could serve the request on the emptied machine.
        parts: Groups of nodes that belong together, such as sockets.
        preferred_parts: Sets with nodes in exactly so many parts are preferred
            as well; 0 for none.
        others: Sets that are hints for themselves; none of them is one that the
            figures allow. Nodes that serve as a group stand here.

    Source: ours; the rule for what is a hint, and what is preferred, is that of
    kubelet v1.32 ``cm/cpumanager``, ``cm/memorymanager`` and ``cm/devicemanager``.
    """

    nodes: NumaMask
    needs: tuple[Need, ...]
    preferred_width: int
    parts: tuple[NumaMask, ...] = ()
    preferred_parts: int = 0
    others: tuple[TopologyHint, ...] = ()

    @property
    def named(self) -> NumaMask:
        """All nodes that it names; negative when one of `others` is no set of nodes."""
        found = self.nodes
        for mask, _ in self.others:
            found |= mask if mask and mask > 0 else -1
        return found

    def counts(self, mask: NumaMask, /) -> bool:
        """Whether the figures allow a set, `others` left out of account."""
        if not mask or mask & ~self.nodes:
            return False
        return all(need.held_by(mask) >= need.wanted for need in self.needs)

    def suits(self, mask: NumaMask, /) -> bool:
        """Whether a set that the figures allow is preferred."""
        if mask.bit_count() == self.preferred_width:
            return True
        return self.preferred_parts > 0 and self.touched(mask) == self.preferred_parts

    def touched(self, mask: NumaMask, /) -> int:
        """In how many parts a set has nodes."""
        return sum([1 for part in self.parts if part & mask])

    def prefers(self, mask: NumaMask, /) -> bool:
        """Whether a set is a preferred hint."""
        if any(preferred for affinity, preferred in self.others if affinity == mask):
            return True
        return self.suits(mask) and self.counts(mask)

    def narrowest(self, *, containing: NumaMask = 0, work_units: int = 250_000) -> TopologyHint | None:
        """The hint with the fewest nodes that contains these, of several the lowest; None without any.

        Raises:
            WorkLimitError: It took more work than that.
        """
        space = self._space(work_units)
        width = space.fewest(containing)
        found = [hint for hint in self.others if hint.affinity and not containing & ~hint.affinity]
        if width:
            mask = space.lowest(width, containing)
            found.append(TopologyHint(mask, self.suits(mask)))
        return min(found, key=_by_width) if found else None

    def some(self, count: int, *, work_units: int = _LISTING_UNITS) -> list[TopologyHint]:
        """Some of its narrowest hints, to be shown: at most so many, fewer when the work is used up."""
        found = list(self.others)
        space = self._space(work_units)
        try:
            for mask in islice(space.ascending(space.fewest()), count):
                found.append(TopologyHint(mask, self.suits(mask)))  # noqa: PERF401 - kept when it stops
        except WorkLimitError:
            pass
        return sorted(found, key=in_order)[:count]

    def __contains__(self, hint: object) -> bool:
        """Whether a hint is one of these, without listing them."""
        if not isinstance(hint, TopologyHint) or hint.affinity is None:
            return False
        mask = hint.affinity
        return hint in self.others or (hint.preferred == self.suits(mask) and self.counts(mask))

    def __iter__(self) -> Iterator[TopologyHint]:
        """Every hint: small sets first, then by node ids."""
        listed = (TopologyHint(mask, self.suits(mask)) for mask in self._masks() if self.counts(mask))
        return merged(sorted(self.others, key=in_order), listed, key=in_order)

    def _space(self, work_units: int) -> Covering:
        return Covering(self.needs, self.nodes, Work(work_units))

    def _masks(self) -> Iterator[NumaMask]:
        nodes = tuple(bits(self.nodes))
        least = self._space(_LISTING_UNITS).least() if nodes else 1
        for size in range(least, len(nodes) + 1):
            for chosen in combinations(nodes, size):
                yield sum([1 << node for node in chosen])


@lru_cache(maxsize=256)
def node_masks(nodes: tuple[int, ...], /) -> tuple[NumaMask, ...]:
    """Every set of at most `LISTED_NODES` nodes: small ones first, then by node ids.

    The one order of all allocators that list their hints, which is the kubelet's.

    Raises:
        ConfigurationError: More nodes, whose sets are too many to list; answer `CountedHints`.
    """
    for node in nodes:
        whole_number = check("node_masks", node, int, "ids of nodes, as (0, 1)")
        if whole_number < 0:
            raise wrong("node_masks", nodes, "ids of nodes, 0 or more")
    if len(nodes) > LISTED_NODES:
        raise ConfigurationError(f"{len(nodes)} nodes have too many sets to list; answer with CountedHints")
    return tuple(
        sum([1 << node for node in chosen])
        for size in range(1, len(nodes) + 1)
        for chosen in combinations(nodes, size)
    )


def _by_width(hint: TopologyHint) -> tuple[int, NumaMask]:
    mask = hint.affinity or 0
    return mask.bit_count(), mask


@typed_on_error
def in_order(hint: TopologyHint, /) -> tuple[int, tuple[int, ...]]:
    """Sort key of the order in which sets of nodes are listed: size, then ids."""
    mask = hint.affinity or 0
    return mask.bit_count(), tuple(bits(mask))
