"""What lists of hints leave in common when no set of nodes is preferred, without trying all combinations.

A set that comes out lies inside a hint of each list, so only such sets are looked at, in
the order in which they would win. Most are hints themselves, and then they come out: every
other list has a hint around them. The rest is worked out, while that is little work.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from nodealloc.topology._hints import NumaMask, NumaTopology, TopologyHint
from nodealloc.topology._many import of_many
from nodealloc.topology._policy import Policy
from nodealloc.topology._small_machine import NEVER, PLACES, SmallMachine
from nodealloc.topology._work import Work

__all__ = ["best_non_preferred"]

_TRIED: Final = 64
"""Combinations up to which trying all counts as no work; above, few sets are looked at."""

_PAIRS: Final = 500
"""Pairs of sets up to which it is worked out whether a set comes out."""


def best_non_preferred(
    lists: Sequence[Sequence[TopologyHint]],
    says: Sequence[int],
    machine: SmallMachine,
    policy: Policy,
    numa: NumaTopology,
    *,
    work: Work | None,
    near: bool,
) -> int:
    """The place of the best set that one hint of each list leave in common; -1 where none do.

    Sets of as many nodes as the neediest list needs are best, then narrower ones, then wider ones.

    Args:
        lists: At least one; none is empty.
        says: What the hints of each list say together, see `SmallMachine`.
        machine: Its tables.
        policy: What may be spent, unless `work` says it.
        numa: The machine.
        work: What may be spent.
        near: Whether the closest of equally wide sets wins, in place of the lowest.
    """
    every, inside = machine.every, machine.inside
    # All nodes come out where each list has them, or any node.
    sure, common, target = every ^ every >> 1, every, 0
    for one in says:
        sets = one & every
        sure |= sets
        common &= one >> inside
        sets &= -sets
        if sets > target:  # noqa: PLR1730 - a call of max costs more than the rest
            target = sets
    if not target:
        return -1
    neediest = target.bit_length() - 1
    here = common & machine.in_order[neediest][0]
    lowest = here & -here
    is_found = lowest & sure and not (near and here ^ lowest)
    ways = 1
    for hints in lists:
        ways *= len(hints)
    if ways <= _TRIED:
        return (
            lowest.bit_length() - 1
            if is_found
            else _of_few(lists, machine.nearness[neediest], machine, numa, near=near)
        )
    work = work or Work(policy.work_units)
    work.spend(sure.bit_count())
    if is_found:
        return lowest.bit_length() - 1
    return _in_order(says, machine, numa, sure=sure, common=common, neediest=neediest, work=work, near=near)


def _of_few(
    lists: Sequence[Sequence[TopologyHint]],
    nearness: Mapping[NumaMask, int],
    machine: SmallMachine,
    numa: NumaTopology,
    *,
    near: bool,
) -> int:
    """The same by trying all combinations."""
    full, best = machine.full, NEVER
    found: Collection[NumaMask] = [hint[0] or full for hint in lists[0]]
    for hints in lists[1:-1]:
        found = {one & (hint[0] or full) for one in found for hint in hints}
    for hint in lists[-1]:
        mask = hint[0] or full
        for one in found:
            rank = nearness[one & mask]
            if rank < best:  # noqa: PLR1730 - a call of min costs more than the rest
                best = rank
    if best == NEVER:
        return -1
    width = machine.masks[best % PLACES].bit_count()
    if near and (width > 1 or not numa.even):
        masks = {one & (hint[0] or full) for one in found for hint in lists[-1]}
        equals = sorted([mask for mask in masks if nearness[mask] // PLACES == best // PLACES])
        return machine.place[numa.closest(tuple(equals))]
    return best % PLACES


def _in_order(
    says: Sequence[int],
    machine: SmallMachine,
    numa: NumaTopology,
    *,
    sure: int,
    common: int,
    neediest: int,
    work: Work,
    near: bool,
) -> int:
    """The same by looking at sets in the order in which they would win.

    Args:
        says: As above.
        machine: As above.
        numa: As above.
        sure: Sets that come out wherever each list has a hint around them.
        common: Sets that lie inside a hint of each list.
        neediest: The place of the narrowest set of the neediest list.
        work: What may be spent.
        near: As above.
    """
    for width in machine.in_order[neediest]:
        here = common & width
        if here:
            found = _first(here, sure, says, machine, numa, near=near)
            if found is None:
                break
            if found:
                return machine.place[found]
    else:
        return -1
    masks = [machine.chosen(_hints(one, machine)) for one in says]
    best = of_many(masks, machine.masks[neediest].bit_count(), numa, near=near, work=work)
    return machine.place[best] if best else -1


def _first(
    here: int, sure: int, says: Sequence[int], machine: SmallMachine, numa: NumaTopology, *, near: bool
) -> NumaMask | None:
    """The best of equally wide sets that comes out; 0 without any, None where that takes too long."""
    masks = machine.chosen(here)
    if near and len(masks) > 1:
        masks.sort(key=numa.spread)
    for mask in masks:
        place = machine.place[mask]
        if sure >> place & 1:
            return mask
        meetings = _meetings(says, machine, machine.around[place])
        if meetings is None or mask in meetings:
            return mask if meetings else None
    return 0


def _meetings(says: Sequence[int], machine: SmallMachine, among: int) -> set[NumaMask] | None:
    """All that one hint of each list have in common, of hints among some sets; None where that takes long."""
    found = {machine.full}
    for one in says:
        hints = _hints(one, machine) & among
        if len(found) * hints.bit_count() > _PAIRS:
            return None
        masks = machine.chosen(hints)
        found = {known & mask for known in found for mask in masks}
    return found


def _hints(says: int, machine: SmallMachine) -> int:
    """The sets that a list names; "any node" is all of them."""
    sets, inside = says & machine.every, says >> machine.inside & machine.every
    return sets if inside != machine.every else sets | 1 << machine.inside - 1
