"""The merge as its definition reads: everything that can come out, and the best of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from nodealloc.topology import (
    ComparisonContext,
    CountedHints,
    Hints,
    Merged,
    NumaTopology,
    Policy,
    PolicyName,
    TopologyHint,
)

Outcome = tuple[int, bool]
"""Nodes that all have in common, and whether each prefers them."""


def listed(counted: CountedHints, numa: NumaTopology) -> list[TopologyHint]:
    """The hints that an answer stands for, by its definition: every set of the machine's nodes is tried."""
    found = list(counted.others)
    for size in range(1, len(numa.nodes) + 1):
        for chosen in combinations(numa.nodes, size):
            mask = sum(1 << node for node in chosen)
            inside = not mask & ~counted.nodes
            held = [sum(size for place, size in need.amounts if place & mask) for need in counted.needs]
            if inside and all(have >= need.wanted for have, need in zip(held, counted.needs, strict=True)):
                parts = sum(1 for part in counted.parts if part & mask)
                good = len(chosen) == counted.preferred_width or 0 < counted.preferred_parts == parts
                found.append(TopologyHint(mask, good))
    return found


def as_lists(providers: Iterable[Hints], numa: NumaTopology) -> list[list[TopologyHint]]:
    """One list of hints a resource; "no preference" and "impossible" become hints for any node."""
    lists: list[list[TopologyHint]] = []
    for answer in providers:
        for options in answer.values():
            if options is None:
                lists.append([TopologyHint(None, preferred=True)])
            else:
                hints = listed(options, numa) if isinstance(options, CountedHints) else list(options)
                lists.append(hints or [TopologyHint(None, preferred=False)])
    return lists


def outcomes(policy: Policy, lists: Sequence[Sequence[TopologyHint]], numa: NumaTopology) -> set[Outcome]:
    """What comes out of all combinations; single-numa-node looks at preferred single nodes alone."""
    found: set[tuple[int, int, bool]] = {(numa.mask, -1, True)}
    for one in _looked_at(policy, lists):
        found = {
            (
                reached & (numa.mask if mask is None else mask),
                same if mask is None or same == mask else mask if same == -1 else -2,
                good and preferred and (mask is None or same in {-1, mask}),
            )
            for reached, same, good in found
            for mask, preferred in one
        }
    return {(mask, good) for mask, _, good in found if mask}


def tried(
    policy: Policy,
    lists: Sequence[Sequence[TopologyHint]],
    numa: NumaTopology,
    allocated: Mapping[int, float],
) -> Merged:
    """The merge: the first of all that comes out."""
    single = policy.name is PolicyName.SINGLE_NUMA_NODE
    masks = [
        [hint.affinity for hint in one if hint.affinity is not None] for one in _looked_at(policy, lists)
    ]
    target = max((min(map(int.bit_count, some)) for some in masks if some), default=0)
    context = ComparisonContext(numa=numa, narrowest=target, allocated=allocated)

    def order(outcome: Outcome) -> tuple[object, ...]:
        mask, good = outcome
        width = mask.bit_count()
        rank: tuple[float, ...] = (1, width) if good or width > target else (0, -width)
        if policy.comparison is not None:
            rank = policy.comparison.rank(TopologyHint(mask, good), context)
        elif policy.prefer_closest and not single:
            rank = (*rank, numa.spread(mask))
        return (not good, rank, mask)

    found = min(outcomes(policy, lists, numa), key=order, default=(numa.mask, False))
    affinity = None if single and found[0] == numa.mask else found[0]
    return Merged(TopologyHint(affinity, found[1]), found[1] or policy.name is PolicyName.BEST_EFFORT)


def _looked_at(policy: Policy, lists: Sequence[Sequence[TopologyHint]]) -> list[list[TopologyHint]]:
    if policy.name is not PolicyName.SINGLE_NUMA_NODE:
        return [list(one) for one in lists]
    return [
        [hint for hint in one if hint.preferred and (hint.affinity or 1).bit_count() == 1] for one in lists
    ]
