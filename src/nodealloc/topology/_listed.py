"""The merge of listed hints on machines of at most eight nodes, which is all that a kubelet takes.

Nothing that was asked is remembered. What makes it quick are tables of such a
machine's 255 masks, made once for each set of nodes (`prepared`). A hint that stands in no
table, or is no hint, raises `LookupError`, `TypeError` or `ValueError`, or ends
in None; `_merge` then reads all hints at length and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache, partial
from itertools import compress
from typing import Final, TypeAlias

from nodealloc.topology._compromise_of_bits import compromise
from nodealloc.topology._counted import CountedHints
from nodealloc.topology._hints import Hints, NumaMask, NumaTopology, TopologyHint
from nodealloc.topology._many import of_many
from nodealloc.topology._node_sets import ListedHints, NodeSets
from nodealloc.topology._outcome import Merged
from nodealloc.topology._policy import Policy
from nodealloc.topology._work import Work

__all__ = ["SINGLE", "of_lists", "on_one_node", "prepared"]

SINGLE: Final = 6
"""A `Policy.kind` from here up is single-numa-node; an odd kind prefers close nodes."""

_RESTRICTED: Final = 4

_MASK: Final = 255
_ANY: Final = 1 << 12
"""Added to the rank of "any node"; ranks are a mask, and above it its number of nodes."""
_ANYWHERE: Final = 1 << 8
"""What "any node" offers; any other hint offers its only node, or nothing."""
_UNRANKED: Final = 1 << 13
_TWO_NODES: Final = 2 << 8

_FEW: Final = 512
"""Combinations that are tried as they come; above, looking for something better pays."""

_GATHERS: Final = sum(1 << 56 - 7 * node for node in range(8))

_Ranks: TypeAlias = dict[NumaMask | None, int]
_Offers: TypeAlias = dict[tuple[NumaMask | None, bool], int]

_preferred: list[Merged] = []
_tolerated: list[Merged] = []
_refused: list[Merged] = []
"""Each mask's outcomes: preferred, and not preferred but let in, or not."""

_FREE = Merged(TopologyHint(affinity=None, preferred=True), admit=True)
_NOWHERE = Merged(TopologyHint(affinity=None, preferred=False), admit=False)

_nodes: list[tuple[int, ...]] = []
"""The nodes of each mask."""

_nearness: list[list[int]] = []
"""For each width that is best, the rank of each mask: how far from that width, then its value."""


_small = lru_cache(maxsize=1)(partial(NodeSets.of, tuple(range(8))))
"""All sets of the nodes that a kubelet takes."""

_tables: dict[NumaMask, tuple[_Ranks, _Offers]] = {}
"""By all nodes of a machine: ranks of its masks; what each hint offers under single-numa-node."""


def prepared(full: object) -> bool:
    """Whether the tables of a machine with these nodes had to be made, and could be."""
    if type(full) is not int or full in _tables or not 0 < full <= _MASK:
        return False
    if not _preferred:
        _make_outcomes()
    masks = [mask for mask in range(1, full + 1) if not mask & ~full]
    ranks: _Ranks = {mask: mask.bit_count() << 8 | mask for mask in masks}
    ranks[None] = _ANY | full
    offers: _Offers = {(mask, good): 0 for mask in (None, *masks) for good in (False, True)}
    offers |= {(mask, True): mask for mask in masks if not mask & (mask - 1)}
    offers[None, True] = _ANYWHERE
    _tables[full] = ranks, offers
    return True


def _make_outcomes() -> None:
    """Each table whole in one step, so that threads that make them at once make the same twice."""
    masks = range(_MASK + 1)
    poor = [TopologyHint(mask or None, preferred=False) for mask in masks]
    _tolerated[:] = [Merged(one, admit=True) for one in poor]
    _refused[:] = [Merged(one, admit=False) for one in poor]
    _nodes[:] = [tuple([node for node in range(8) if mask >> node & 1]) for mask in masks]
    _nearness[:] = [_near(target) for target in range(9)]
    # The last one: where it is there, all are.
    _preferred[:] = [Merged(TopologyHint(mask or None, preferred=True), admit=True) for mask in masks]


def _near(target: int) -> list[int]:
    widths = [mask.bit_count() for mask in range(_MASK + 1)]
    apart = [target - width if width <= target else width for width in widths]
    return [_ANY, *[apart[mask] << 8 | mask for mask in range(1, _MASK + 1)]]


def on_one_node(providers: Sequence[Hints], full: NumaMask) -> Merged | None:
    """The merge under single-numa-node: the lowest node that all prefer.

    None where an answer is counted. Once nothing can come of the hints any more,
    the others are not looked at.
    """
    offers = _tables[full][1]
    common, offered = -1, 0
    for hints in providers:
        if hints:
            for options in hints.values():
                if type(options) is ListedHints:
                    nodes = _single_nodes(options, full)
                elif type(options) is CountedHints:
                    return None
                elif options:
                    nodes = 0
                    for hint in options:
                        nodes |= offers[hint]
                elif options is None:
                    continue
                else:
                    return _NOWHERE
                if nodes >= _ANYWHERE:
                    offered |= nodes
                else:
                    common &= nodes
                    if not common:
                        return _NOWHERE
    if common < 0:
        common = offered & _MASK
        if not common:
            return _FREE
    node = common & -common
    return _FREE if node == full else _preferred[node]


def of_lists(
    policy: Policy, kind: int, providers: Sequence[Hints], numa: NumaTopology, work: Work | None
) -> Merged | None:
    """The merge under best-effort and restricted; None where an answer is counted.

    Args:
        policy: What may be spent, unless `work` says it.
        kind: The policy's.
        providers: Each provider's answer.
        numa: The machine.
        work: What may be spent.
    """
    ranks = _tables[numa.mask][0]
    lists: list[Sequence[TopologyHint]] = []
    sets: list[ListedHints] = []
    possible = True
    for hints in providers:
        if hints:
            for options in hints.values():
                if type(options) is ListedHints:
                    if options.sets:
                        sets.append(options)
                    else:
                        possible = False
                elif options:
                    if type(options) is CountedHints:
                        return None
                    lists.append(options)
                elif options is not None:
                    possible = False
    poor = _tolerated if kind < _RESTRICTED else _refused
    if sets:
        if lists:
            return _mixed(policy, kind, providers, numa, work)
        return _of_sets(kind, sets, numa, poor, work or Work(policy.work_units), possible=possible)
    if not lists:
        return (_preferred if possible else poor)[numa.mask]
    if len(lists) > 1:
        good, offered, target = _read(lists, ranks, possible=possible)
        if good:
            rank = min(good)
            near = kind & 1 and (_TWO_NODES if numa.even else 0) < rank < _ANY
            return _preferred[
                _closest([one for one in good if one ^ rank <= _MASK], numa) if near else rank & _MASK
            ]
        return poor[_compromise(kind, offered, target, numa, work or Work(policy.work_units)) or numa.mask]
    outcomes, rank = poor, _UNRANKED
    least = _UNRANKED
    for mask, preferred in lists[0]:
        one = ranks[mask]
        if one < least:  # noqa: PLR1730 - a call of min costs more than the rest
            least = one
        if preferred and one < rank:
            rank = one
    if possible and rank < _UNRANKED:
        outcomes = _preferred
    else:
        rank = least
    if kind & 1 and (_TWO_NODES if numa.even else 0) < rank < _ANY:
        ties = [ranks[mask] for mask, preferred in lists[0] if preferred or outcomes is poor]
        rank = _closest([one for one in ties if one ^ rank <= _MASK], numa)
    return outcomes[rank & _MASK]


def _mixed(
    policy: Policy, kind: int, providers: Sequence[Hints], numa: NumaTopology, work: Work | None
) -> Merged | None:
    """The same where some answers are listed as bits and others are not: bits become lists."""
    lists = [{name: _as_list(one) for name, one in (hints or {}).items()} for hints in providers]
    return of_lists(policy, kind, lists, numa, work)


def _as_list(
    options: Sequence[TopologyHint] | CountedHints | None,
) -> Sequence[TopologyHint] | CountedHints | None:
    return [*options] if type(options) is ListedHints else options


def _of_sets(
    kind: int,
    lists: Sequence[ListedHints],
    numa: NumaTopology,
    outcomes: Sequence[Merged],
    work: Work,
    *,
    possible: bool,
) -> Merged:
    """Hints that are all listed as bits: what all prefer, else the best of what comes out."""
    every = _small()
    common, named = -1, 0
    for one in lists:
        common &= one.preferred
        named |= one.sets
        if one.of.masks is not every.masks:
            named = -1
    if named & ~every.within[numa.mask]:
        raise KeyError(numa.mask)  # it names other nodes; which ones is said by who reads at length
    if possible and common:
        outcomes = _preferred
    elif len(lists) == 1:
        common = lists[0].sets
    else:
        target = max([every.lowest(one.sets).bit_count() for one in lists])
        found = compromise(every, [one.sets for one in lists], target, numa, near=kind & 1 == 1)
        if found is None:
            found = _compromise(kind, [_ranks(one.sets) for one in lists], target, numa, work)
        return outcomes[found or numa.mask]
    best = every.lowest(common)
    if kind & 1 and (best & best - 1 or not numa.even):
        best = _closest(_ranks(common & every.widths[best.bit_count()]), numa)
    return outcomes[best]


def _single_nodes(hints: ListedHints, full: NumaMask) -> NumaMask:
    """Nodes that are preferred by themselves."""
    every = _small()
    if hints.of.masks is not every.masks or hints.sets & ~every.within[full]:
        raise KeyError(full)
    # Eight bits that are eight apart come to stand beside each other.
    return (hints.preferred & every.widths[1]) * _GATHERS >> 56 & _MASK


def _ranks(sets: int) -> list[int]:
    """The ranks of some sets, ascending."""
    return [mask.bit_count() << 8 | mask for mask in compress(_small().masks, sets.to_bytes(_MASK, "little"))]


def _read(
    lists: Sequence[Sequence[TopologyHint]], ranks: _Ranks, *, possible: bool
) -> tuple[Sequence[int], list[list[int]], int]:
    """Several lists: ranks that all prefer, each list's ranks, and the width that the neediest wants."""
    target = 0
    common: list[int] | None = None
    offered: list[int] = []
    sets: list[list[int]] = []
    for options in lists:
        least = _UNRANKED
        found: list[int] = []
        good: list[int] = []
        for mask, preferred in options:
            rank = ranks[mask]
            found.append(rank)
            if rank < least:  # noqa: PLR1730 - a call of min costs more than the rest
                least = rank
            if preferred:
                good.append(rank)
        if least < _ANY:  # else it names no node
            sets.append(found)
            if least > target:  # noqa: PLR1730 - a call of max costs more than the rest
                target = least
        if not possible:
            continue
        if not good:
            possible = False
        elif max(good) >= _ANY:
            offered += good
        elif common is None:
            common = good
        else:
            common = [rank for rank in common if rank in good]
            possible = bool(common)
    return (common or offered) if possible else (), sets, target >> 8


def _compromise(kind: int, sets: list[list[int]], target: int, numa: NumaTopology, work: Work) -> NumaMask:
    """The best mask that one of each list leave in common when none is preferred; 0 without any."""
    ways = 1
    for ranks in sets:
        ways *= len(ranks)
    if ways > _FEW:
        lists = [[*{rank & _MASK for rank in ranks}] for ranks in sets]
        return of_many(lists, target, numa, near=kind & 1 == 1, work=work)
    if not sets:
        return 0
    found: Collection[int] = sets[0] if len(sets) > 1 else (_MASK,)
    for ranks in sets[1:-1]:
        found = {one & rank for one in found for rank in ranks}
    nearness, last, least = _nearness[target], sets[-1], _ANY
    for one in found:
        for rank in last:
            nearest = nearness[one & rank & _MASK]
            if nearest < least:  # noqa: PLR1730 - a call of min costs more than the rest
                least = nearest
    if kind & 1 and least < _ANY and (least & least - 1 & _MASK or not numa.even):
        best = least >> 8
        masks = {one & rank & _MASK for one in found for rank in last}
        return _closest([mask for mask in masks if nearness[mask] >> 8 == best], numa)
    return 0 if least == _ANY else least & _MASK


def _closest(ranks: list[int], numa: NumaTopology) -> NumaMask:
    """Of equally wide masks, or their ranks, the first whose nodes are nearest to each other; sorts them."""
    if len(ranks) == 1:
        return ranks[0] & _MASK
    rows = numa.distances
    if not rows:
        return numa.closest(tuple(ranks))
    ranks.sort()
    closest, least = 0, -1
    for rank in ranks:
        spread = 0
        nodes = _nodes[rank & _MASK]
        for node in nodes:
            row = rows[node]
            for other in nodes:
                spread += row[other]
        if spread < least or least < 0:
            closest, least = rank, spread
    return closest & _MASK
