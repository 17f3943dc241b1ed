"""The merge: from every provider's hints to the one that the node goes by.

What a kubelet sees every day takes the short way: bare integers, one pass over
the hints. Anything unusual (a comparison of one's own, "any node" among other
hints, an answer that is no answer) takes the long way in `_candidates`, which
answers alike and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from nodealloc.topology._candidates import best, options_of
from nodealloc.topology._hints import Hints, NumaMask, NumaTopology, TopologyHint
from nodealloc.topology._policy import Policy, PolicyName
from nodealloc.topology._reachable import reachable

__all__ = ["Merged", "merge"]


class Merged(NamedTuple):
    """Outcome of a merge.

    Attributes:
        hint: The best hint that the providers' hints intersect to; an affinity
            of None allows any node.
        admit: Whether the policy lets it in.
    """

    hint: TopologyHint
    admit: bool


# Members of an enumeration are slow to look up; these are asked for on every call.
_NONE = PolicyName.NONE
_BEST_EFFORT = PolicyName.BEST_EFFORT
_SINGLE = PolicyName.SINGLE_NUMA_NODE
_WIDTH = int.bit_count

_FOLD_HERE = 512
"""Combinations that are tried as they come; above, looking for something better pays."""

_TRIED_FIRST = 32
"""Masks that are tried before all intersections are; where none of them is right, few are."""


_NO_POLICY = Merged(TopologyHint(affinity=None, preferred=False), admit=True)
_NOWHERE = Merged(TopologyHint(affinity=None, preferred=False), admit=False)


# There are few different outcomes on a machine, so each is made once.
@lru_cache(maxsize=4096)
def _preferred(affinity: NumaMask | None) -> Merged:
    return Merged(TopologyHint(affinity, preferred=True), admit=True)


@lru_cache(maxsize=4096)
def _tolerated(affinity: NumaMask) -> Merged:
    return Merged(TopologyHint(affinity, preferred=False), admit=True)


@lru_cache(maxsize=4096)
def _rejected(affinity: NumaMask) -> Merged:
    return Merged(TopologyHint(affinity, preferred=False), admit=False)


def merge(
    policy: Policy,
    providers: Sequence[Hints],
    numa: NumaTopology,
    /,
    *,
    names: Sequence[str] = (),
    allocated: Mapping[int, float] | None = None,
) -> Merged:
    """The best combination of one hint per resource, exactly as trying all would find it.

    Args:
        policy: Which combinations count, and which result is let in.
        providers: Each provider's answer. Empty mapping: no preference at all.
        numa: The machine.
        names: Names of the providers for messages, in the same order.
        allocated: Node id to taken share, for a `Policy.comparison` that asks.

    Returns:
        The hint and the verdict. Without any usable combination the hint is
        all nodes (None under single-numa-node), not preferred.

    Raises:
        HintError: A provider's answer is no mapping of resources to hints.
        MaskOutsideError: A hint names nodes that the machine does not have.
        DistanceError: `prefer_closest` without distances.

    Source: kubelet v1.32 ``cm/topologymanager/policy*.go``.
    """
    name = policy.name
    if name is _NONE:
        return _NO_POLICY
    if policy.comparison is None:
        try:
            found = _one_node(providers, numa.mask) if name is _SINGLE else _one_pass(providers, numa, policy)
        except (TypeError, ValueError, AttributeError, LookupError):
            found = None  # the long way says what is wrong, if anything is
        if found is not None:
            return found
    return _at_length(policy, providers, numa, names, allocated or {})


def _one_node(providers: Sequence[Hints], full: NumaMask) -> Merged | None:
    """The merge under single-numa-node: nodes that every resource prefers alone, as one mask."""
    outside = ~full
    common = -1  # all bits: nobody has restricted the choice yet
    offered = 0
    for hints in providers:
        if not hints:
            continue
        for options in hints.values():
            if options is None:
                continue
            nodes = 0
            anywhere = False
            for mask, preferred in options:
                if not mask:
                    if mask is not None:
                        return None
                    anywhere |= preferred
                elif mask & outside:
                    return None
                elif preferred and not mask & (mask - 1):
                    nodes |= mask
            if anywhere:
                offered |= nodes
            else:
                common &= nodes
    if common == -1:
        if not offered:
            return _preferred(None)
        common = offered
    if not common:
        return _NOWHERE
    node = common & -common
    return _preferred(None if node == full else node)


def _one_pass(providers: Sequence[Hints], numa: NumaTopology, policy: Policy) -> Merged | None:
    """The merge under best-effort and restricted.

    One long loop, because each call inside it would cost as much as the row
    that it works on. Lists of one hint, which leave no choice, are settled as
    two integers; only the others are gathered.
    """
    full = fixed = numa.mask  # fixed: what lists of one hint leave
    outside = ~full
    only = 0  # the mask that those lists prefer; all have to name the same
    target = 0  # the widest of those hints
    lists: list[list[NumaMask]] = []
    common: list[NumaMask] | None = None  # what longer lists prefer, all of them
    offered: list[NumaMask] | None = None  # what lists prefer that would go anywhere as well
    possible = True
    for hints in providers:
        if not hints:
            continue
        for options in hints.values():
            if not options:
                if options is not None:
                    possible = False
                continue
            if len(options) == 1:
                mask, preferred = options[0]
                if mask:
                    if mask & outside:
                        return None
                    fixed &= mask
                    width = mask.bit_count()
                    if width > target:  # noqa: PLR1730 - a call of max costs more than the rest
                        target = width
                    if not preferred or (only and only != mask):
                        possible = False
                    only = mask
                elif mask is not None:
                    return None
                elif not preferred:
                    possible = False
                continue
            masks: list[NumaMask] = []
            good: list[NumaMask] = []
            anywhere: bool | None = None
            for mask, preferred in options:
                if not mask:
                    if mask is not None:
                        return None
                    anywhere = anywhere or preferred
                elif mask & outside:
                    return None
                else:
                    masks.append(mask)
                    if preferred:
                        good.append(mask)
            if not masks:  # nothing but "any node"
                possible = possible and bool(anywhere)
                continue
            if anywhere is not None:
                masks.append(full)
            lists.append(masks)
            if anywhere:
                offered = good if offered is None else offered + good
            elif common is None:
                common = good
            elif common:
                common = [mask for mask in common if mask in good]
    if possible:
        choice: Sequence[NumaMask]
        if only:
            choice = (only,) if common is None or only in common else ()
        elif common is None:
            choice = (full,) if offered is None else (full, *offered)
        else:
            choice = common
        if choice:
            return _preferred(choice[0] if len(choice) == 1 else _narrowest(choice, numa, policy))
    best = _compromise(lists, fixed, target, numa, policy) if lists and fixed else fixed
    return _tolerated(best or full) if policy.name is _BEST_EFFORT else _rejected(best or full)


def _narrowest(masks: Sequence[NumaMask], numa: NumaTopology, policy: Policy) -> NumaMask:
    """The narrowest mask; of equals the closest if the policy asks for it, then the lowest."""
    best = masks[0]
    narrowest = best.bit_count()
    for mask in masks:
        width = mask.bit_count()
        if width < narrowest or (width == narrowest and mask < best):
            narrowest = width
            best = mask
    if policy.prefer_closest and narrowest > 1:
        return _closest([mask for mask in masks if mask.bit_count() == narrowest], numa)
    return best


def _closest(ties: Collection[NumaMask], numa: NumaTopology) -> NumaMask:
    return min(ties) if len(ties) == 1 else min((numa.spread(mask), mask) for mask in ties)[1]


def _compromise(
    lists: Sequence[list[NumaMask]], fixed: NumaMask, target: int, numa: NumaTopology, policy: Policy
) -> NumaMask:
    """The best mask when no combination is preferred; 0 when none has a node in common.

    Args:
        lists: Masks to choose from, one of each.
        fixed: The nodes that the other resources leave.
        target: How many nodes the neediest of those needs.
        numa: The machine.
        policy: Whether closeness counts.
    """
    if not target and len(lists) == 1:
        return _narrowest(lists[0], numa, policy)
    pairs = 1
    for masks in lists:
        width = min(map(_WIDTH, masks))
        if width > target:  # noqa: PLR1730 - as above
            target = width
        pairs *= len(masks)
    found = {fixed}
    if pairs > _FOLD_HERE:
        return _compromise_of_many(lists, fixed, target, numa, policy)
    for masks in lists:
        found = {one & other for one in found for other in masks}
    return _nearest(found, target, numa, policy)


def _compromise_of_many(
    lists: Sequence[list[NumaMask]], fixed: NumaMask, target: int, numa: NumaTopology, policy: Policy
) -> NumaMask:
    """`_compromise` where combinations abound: find a good mask first, then look for better ones only.

    A mask that is as wide as it should be can be beaten only by a lower one of
    that width, which has no node above the highest one of the mask that was
    found. Hints with too few nodes below that cannot contain it. Closeness
    orders differently, so nothing is left out there.
    """
    sure = 0 if policy.prefer_closest else _sure(lists, fixed, target)
    if sure:
        below = (1 << sure.bit_length()) - 1
        lists = [[mask for mask in masks if (mask & below).bit_count() >= target] for masks in lists]
        if below.bit_count() == target or not all(lists):
            return sure
    found = reachable([*lists, [fixed]], numa.mask)
    found.add(sure)
    return _nearest(found, target, numa, policy)


def _sure(lists: Sequence[list[NumaMask]], fixed: NumaMask, target: int) -> NumaMask:
    """The lowest of a few masks of the right width that one list has and all others contain; else 0."""
    right = {mask for masks in lists for mask in masks if mask.bit_count() == target and not mask & ~fixed}
    for mask in sorted(right)[:_TRIED_FIRST]:
        if all(any(not mask & ~other for other in masks) for masks in lists):
            return mask
    return 0


def _nearest(masks: Collection[NumaMask], target: int, numa: NumaTopology, policy: Policy) -> NumaMask:
    """The non-empty mask whose width is nearest to `target`, narrower ones first; 0 if there is none."""
    nearest = 1 << 62
    ties: list[NumaMask] = []
    for mask in masks:
        width = mask.bit_count()
        distance = target - width if width <= target else width
        if distance < nearest and width:
            nearest = distance
            ties = [mask]
        elif distance == nearest and width:
            ties.append(mask)
    if not ties:
        return 0
    return _closest(ties, numa) if policy.prefer_closest else min(ties)


def _at_length(
    policy: Policy,
    providers: Sequence[Hints],
    numa: NumaTopology,
    names: Sequence[str],
    allocated: Mapping[int, float],
) -> Merged:
    options = options_of(policy, providers, numa, names)
    found = best(policy, options, numa, allocated) or TopologyHint(numa.mask, preferred=False)
    affinity = None if policy.name is _SINGLE and found.affinity == numa.mask else found.affinity
    return Merged(TopologyHint(affinity, found.preferred), found.preferred or policy.name is _BEST_EFFORT)
