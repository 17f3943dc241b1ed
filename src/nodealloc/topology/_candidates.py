"""Every merged hint that can come out, in order of preference.

`merge` needs the first one only; the search over a whole workload goes on to
the next, and a comparison of one's own looks at all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from nodealloc.topology._comparison import (
    Closest,
    Comparison,
    ComparisonContext,
    LeastAllocated,
    MostAllocated,
    Narrowest,
)
from nodealloc.topology._hints import NumaMask, NumaTopology, TopologyHint
from nodealloc.topology._non_preferred import NonPreferred
from nodealloc.topology._policy import Policy, PolicyName
from nodealloc.topology._preferred import Preferred
from nodealloc.topology._reading import Reading
from nodealloc.topology._work import Work

__all__ = ["best", "candidates"]

_Masks: TypeAlias = Iterable[NumaMask]

_WIDTH_FIRST = (Narrowest, Closest, MostAllocated, LeastAllocated)
"""Comparisons that never put a mask before one of a better width."""


def candidates(
    policy: Policy, reading: Reading, numa: NumaTopology, allocated: Mapping[int, float], work: Work
) -> Iterator[TopologyHint]:
    """All merged hints that the policy lets in, best first; preferred ones come first.

    A mask that can be had as preferred is not listed a second time. Work is
    done as the answers are taken.

    Raises:
        WorkLimitError: `work` is used up.
    """
    good = Preferred(reading, numa.mask, work)
    tolerant = policy.name is PolicyName.BEST_EFFORT
    rest = NonPreferred(reading, numa.mask, work) if tolerant or policy.comparison is not None else None
    ranked = _Ranked(policy, numa, rest, allocated, work)
    anywhere = numa.mask if policy.name is PolicyName.SINGLE_NUMA_NODE else -1
    for mask in ranked.ordered(_widths(policy, reading, numa.mask, good), good.ascending, preferred=True):
        yield TopologyHint(None if mask == anywhere else mask, preferred=True)
    if tolerant and rest is not None:
        for mask in ranked.ordered(rest.widths(), rest.ascending, preferred=False):
            if mask not in good:
                yield TopologyHint(mask, preferred=False)


def best(
    policy: Policy, reading: Reading, numa: NumaTopology, allocated: Mapping[int, float], work: Work
) -> tuple[NumaMask, bool] | None:
    """The best mask, let in or not, and whether it is preferred; None without any.

    Raises:
        WorkLimitError: `work` is used up.
    """
    good = Preferred(reading, numa.mask, work)
    single = policy.name is PolicyName.SINGLE_NUMA_NODE
    near = policy.comparison is None and policy.prefer_closest and not single
    if policy.comparison is not None:
        rest = NonPreferred(reading, numa.mask, work)
        ranked = _Ranked(policy, numa, rest, allocated, work)
        for mask in ranked.ordered(_widths(policy, reading, numa.mask, good), good.ascending, preferred=True):
            return mask, True
        for mask in () if single else ranked.ordered(rest.widths(), rest.ascending, preferred=False):
            return mask, False
        return None
    for width in _widths(policy, reading, numa.mask, good):
        found = good.nearest(width, numa) if near else good.lowest(width)
        if found is not None:
            return found, True
    return None if single else (NonPreferred(reading, numa.mask, work).best(numa, near=near), False)


def _widths(policy: Policy, reading: Reading, full: NumaMask, good: Preferred) -> Iterator[int]:
    """Widths that the policy looks at: single-numa-node one node, or all where nobody cares."""
    anywhere = reading.common is None and not reading.counted
    for width in good.widths():
        if (
            policy.name is not PolicyName.SINGLE_NUMA_NODE
            or width == 1
            or (anywhere and width == full.bit_count())
        ):
            yield width


class _Ranked:
    """Masks in the order of the policy's comparison."""

    def __init__(
        self,
        policy: Policy,
        numa: NumaTopology,
        rest: NonPreferred | None,
        allocated: Mapping[int, float],
        work: Work,
    ) -> None:
        self._comparison = _comparison_of(policy)
        single = policy.name is PolicyName.SINGLE_NUMA_NODE
        target = 0 if rest is None else rest.target
        self._context = ComparisonContext(
            numa=numa, narrowest=min(target, 1) if single else target, allocated=allocated
        )
        self._work = work

    def ordered(
        self, widths: Iterable[int], ascending: Callable[[int], _Masks], *, preferred: bool
    ) -> Iterator[NumaMask]:
        """The masks of all widths, these in order of preference, each width ascending."""
        comparison = self._comparison
        if isinstance(comparison, Narrowest):
            for width in widths:
                yield from ascending(width)
        elif isinstance(comparison, _WIDTH_FIRST):
            for width in widths:
                yield from self._sorted(ascending(width), preferred=preferred)
        else:
            yield from self._sorted(
                (mask for width in widths for mask in ascending(width)), preferred=preferred
            )

    def _sorted(self, masks: _Masks, *, preferred: bool) -> list[NumaMask]:
        ranks: dict[NumaMask, tuple[float, ...]] = {}
        for mask in masks:
            self._work.spend(4 + mask.bit_count())
            ranks[mask] = self._comparison.rank(TopologyHint(mask, preferred), self._context)
        return sorted(ranks, key=lambda mask: (ranks[mask], mask))


def _comparison_of(policy: Policy) -> Comparison:
    """The policy's own comparison, or the kubelet's."""
    if policy.comparison is not None:
        return policy.comparison
    closest = policy.prefer_closest and policy.name is not PolicyName.SINGLE_NUMA_NODE
    return Closest() if closest else Narrowest()
