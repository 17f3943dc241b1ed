"""The merge of listed hints on machines of at most eight nodes, which is all that a kubelet takes.

Nothing that was asked is remembered. What makes it quick are tables of such a
machine's sets of nodes, made once for each set of nodes (`prepared`). A hint that stands in no
table, or is no hint, raises `LookupError`, `TypeError` or `ValueError`, or ends
in None; `_merge` then reads all hints at length and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from itertools import compress
from typing import Final

from nodealloc.topology._counted import CountedHints
from nodealloc.topology._hints import Hints, NumaMask, NumaTopology, TopologyHint
from nodealloc.topology._node_sets import ListedHints, NodeSets
from nodealloc.topology._non_preferred_of_bits import best_non_preferred as of_bits
from nodealloc.topology._non_preferred_of_lists import best_non_preferred
from nodealloc.topology._outcome import Merged
from nodealloc.topology._policy import Policy
from nodealloc.topology._small_machine import ANYWHERE, NODES, Said, SmallMachine
from nodealloc.topology._work import Work

__all__ = ["OFFERS", "OUTCOMES", "SINGLE", "of_lists", "offered_by", "prepared"]

SINGLE: Final = 6
"""A `Policy.kind` from here up is single-numa-node; an odd kind prefers close nodes."""

_RESTRICTED: Final = 4

_MASK: Final = (1 << NODES) - 1
_PLACES: Final = 255

_GATHERS: Final = sum(1 << 56 - 7 * node for node in range(NODES))

_MACHINES: Final = 128
"""Machines whose tables are kept; of eight nodes they take 0.4 MB."""

_NOWHERE = Merged(TopologyHint(affinity=None, preferred=False), admit=False)

_small = lru_cache(maxsize=1)(partial(NodeSets.of, tuple(range(NODES))))
"""All sets of the nodes that a kubelet takes."""

_machines: dict[NumaMask, SmallMachine] = {}
"""By all nodes of a machine: its tables."""

OFFERS: Final[dict[NumaMask, Said]] = {}
"""By all nodes of a machine, under single-numa-node the node that each hint offers; see `SmallMachine`."""

OUTCOMES: Final[dict[NumaMask, Mapping[NumaMask, Merged]]] = {}
"""By all nodes of a machine, under single-numa-node the outcome for a node, or for 0, which is any."""


def prepared(full: object) -> bool:
    """Whether the tables of a machine with these nodes had to be made, and could be."""
    if type(full) is not int or not 0 < full < ANYWHERE or full.bit_count() > NODES:
        return False
    # Each is asked: another thread may have emptied some while this machine's were put in.
    if full in _machines and full in OUTCOMES and full in OFFERS:
        return False
    if len(_machines) >= _MACHINES:
        for tables in (OFFERS, OUTCOMES, _machines):
            tables.clear()
    _machines[full] = machine = SmallMachine(full)
    OUTCOMES[full] = machine.alone
    OFFERS[full] = machine.offers
    return True


def offered_by(options: Sequence[TopologyHint], full: NumaMask) -> NumaMask:
    """The nodes that hints offer under single-numa-node, and `ANYWHERE` where that is any; 0 for none."""
    if type(options) is ListedHints:
        return _single_nodes(options, full)
    nodes, offers = 0, OFFERS[full]
    for hint in options:
        nodes |= offers[hint]
    return nodes


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
    machine = _machines[numa.mask]
    lists: list[Sequence[TopologyHint]] = []
    sets: list[ListedHints] = []
    possible = True
    for hints in providers:
        if hints:
            for options in hints.values():
                if type(options) is ListedHints and options.sets:
                    sets.append(options)
                elif options:
                    if type(options) is CountedHints:
                        return None
                    lists.append(options)  # pyright: ignore[reportUnknownArgumentType]
                elif options is not None:
                    possible = False
    if sets:
        if not lists:
            return _of_sets(policy, kind, sets, machine, numa, work=work, possible=possible)
        lists += [[*one] for one in sets]
    outcomes = machine.tolerated if kind < _RESTRICTED else machine.refused
    if not lists:
        return (machine.preferred if possible else outcomes)[-1]
    if len(lists) > 1:
        each: list[int] = []
        said = machine.said
        for options in lists:
            says = 0
            for hint in options:
                says |= said[hint]
            each.append(says)
        good = _common(each, machine) if possible else 0
        if not good:
            return outcomes[
                best_non_preferred(lists, each, machine, policy, numa, work=work, near=kind & 1 == 1)
            ]
        if kind & 1 and good & good - 1:
            return machine.preferred[_closest(good, machine, numa)]
        return machine.preferred[(good & -good).bit_length() - 1]
    places = machine.place
    least = best = len(places)
    for mask, preferred in lists[0]:
        place = places[mask]
        if place < least:  # noqa: PLR1730 - a call of min costs more than the rest
            least = place
        if preferred and place < best:
            best = place
    if possible and best < len(places):
        least, outcomes = best, machine.preferred
    if kind & 1 and len(lists[0]) > 1 and (least >= len(numa.nodes) or not numa.even):
        least = _closest_of(lists[0], least, machine, numa, good=outcomes is machine.preferred)
    return outcomes[least]


def _closest_of(
    hints: Sequence[TopologyHint], place: int, machine: SmallMachine, numa: NumaTopology, *, good: bool
) -> int:
    """The place of the closest hint that is as wide as the one of a place, and as good."""
    width, places = machine.masks[place].bit_count(), machine.place
    equals = {
        mask for mask, preferred in hints if mask and mask.bit_count() == width and (preferred or not good)
    }
    return places[numa.closest(tuple(sorted(equals)))] if len(equals) > 1 else place


def _common(lists: Sequence[int], machine: SmallMachine) -> int:
    """What all lists prefer; where each of them prefers any node, all that they prefer besides."""
    good, offered = -1, 0
    for says in lists:
        one = says >> machine.good
        if one > machine.every:
            offered |= one
        else:
            good &= one
    return good if good >= 0 else offered


def _closest(sets: int, machine: SmallMachine, numa: NumaTopology) -> int:
    """The place of the narrowest of several sets; among equally wide ones the closest."""
    narrowest = machine.masks[(sets & -sets).bit_length() - 1].bit_count()
    if narrowest > 1 or not numa.even:
        return machine.place[numa.closest(tuple(machine.chosen(sets & machine.widths[narrowest])))]
    return (sets & -sets).bit_length() - 1


def _of_sets(
    policy: Policy,
    kind: int,
    lists: Sequence[ListedHints],
    machine: SmallMachine,
    numa: NumaTopology,
    *,
    work: Work | None,
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
    near = kind & 1 == 1
    outcomes = machine.tolerated if kind < _RESTRICTED else machine.refused
    if possible and common:
        outcomes = machine.preferred
    elif len(lists) == 1:
        common = lists[0].sets
    else:
        bits, target = [one.sets for one in lists], max([every.lowest(one.sets).bit_count() for one in lists])
        found = of_bits(every, bits, target, numa, near=near)
        if found is not None:
            return outcomes[machine.place[found] if found else -1]
        plain, each = [[*one] for one in lists], [_says(one.sets, machine) for one in lists]
        return outcomes[best_non_preferred(plain, each, machine, policy, numa, work=work, near=near)]
    best = every.lowest(common)
    if near and (best & best - 1 or not numa.even):
        best = numa.closest(tuple(_masks(common & every.widths[best.bit_count()])))
    return outcomes[machine.place[best]]


def _single_nodes(hints: ListedHints, full: NumaMask) -> NumaMask:
    """Nodes that are preferred by themselves."""
    every = _small()
    if hints.of.masks is not every.masks or hints.sets & ~every.within[full]:
        raise KeyError(full)
    # Eight bits that are eight apart come to stand beside each other.
    return (hints.preferred & every.widths[1]) * _GATHERS >> 56 & _MASK


def _masks(sets: int) -> list[NumaMask]:
    """The sets that some bits stand for, narrow ones first."""
    return [*compress(_small().masks, sets.to_bytes(_PLACES, "little"))]


def _says(sets: int, machine: SmallMachine) -> int:
    """What hints say together that are not preferred."""
    says = 0
    for mask in _masks(sets):
        says |= machine.said[mask, False]
    return says
