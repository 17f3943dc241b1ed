"""A node of which some is held: hints, grants and refusals there, and what one workload's members keep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from nodealloc.testing._allocator_calls import (
    ANYWHERE,
    Promises,
    allocate,
    figures,
    pinned,
    released,
    stranger,
)
from nodealloc.testing._allocator_checks import check_claim, check_hints
from nodealloc.testing._allocator_edges import check_together
from nodealloc.testing._wording import told
from nodealloc.topology import Allocator, ClaimKind, NotYet, Owner, Shortfall, TopologyHint, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nodealloc.topology import Claim, CountedHints

__all__ = ["check_kinds", "check_members", "check_spread", "check_totals"]

_STEPS: Final = 8
"""Holders that come one by one, on one node after another."""
_HINTS: Final = 192
"""So many hints are tried in all steps together; on wide machines that is a step or two."""
_FACTORS: Final = (1, 2, 3, 4)


def check_spread(allocator: Allocator, asked: Workload, promises: Promises) -> None:
    """With holders on one node after another every hint means what it says at each step."""
    for claim in {tuple(one.amounts.items()): one for one in asked.claims}.values():
        _check_spread(allocator, claim, asked, promises)


def _check_spread(allocator: Allocator, claim: Claim, asked: Workload, promises: Promises) -> None:
    hints = check_hints(allocator, (stranger(claim),), promises)
    if isinstance(hints, NotYet) or not pinned(hints):
        return
    tried = sum(len(_some(options)) for options in hints.values())
    nodes = list(promises.numa.nodes)
    value, where = allocator, f"{allocator.name}, claim {claim.owner.member} among holders on each node"
    for step in range(min(_STEPS, 1 + _HINTS // max(tried, 1))):
        for node in nodes[step % len(nodes) :] + nodes[: step % len(nodes)]:
            hint = TopologyHint(1 << node, preferred=False)
            answer = allocate(value, stranger(claim, key=f"check-use-{step}"), hint, where)
            if not isinstance(answer, (Shortfall, NotYet)) and answer != value:
                value = answer
                break
        else:
            return
        check_claim(value, stranger(claim), promises)
        check_together(value, attrs.evolve(asked, claims=tuple(_mains(asked))), promises)


def _some(options: Sequence[TopologyHint] | CountedHints | None) -> Sequence[TopologyHint]:
    return options if isinstance(options, (list, tuple)) else ()


def _mains(asked: Workload) -> list[Claim]:
    """The members that run together, none of which is lent anything."""
    return [attrs.evolve(one, reuse=()) for one in asked.claims if one.kind is ClaimKind.MAIN]


def check_kinds(allocator: Allocator, claim: Claim) -> None:
    """When a member runs says nothing about whether it gets what it asks for."""
    where = f"{allocator.name}, claim {claim.owner.member}"
    granted: Mapping[ClaimKind, bool] = {
        kind: allocate(allocator, attrs.evolve(stranger(claim), kind=kind), ANYWHERE, where) != allocator
        for kind in ClaimKind
    }
    for kind, is_granted in granted.items():
        assert is_granted or not granted[ClaimKind.MAIN], (
            f"{where}: a main member is granted it, and a member of kind {kind.value} gets nothing"
        )


def check_members(full: Allocator, asked: Workload) -> None:
    """One member's release leaves what the others of its workload hold."""
    key = asked.key
    names = [claim.owner.member for claim in asked.claims]
    holding = [name for name in names if released(full, key, name) != full]
    for name in holding:
        left = released(full, key, name)
        for other in holding:
            # What was lent is held by both until one of them goes; the other one holds it then.
            kept = other == name or released(left, key, other) != left
            assert kept, f"{full.name}: releasing {Owner(key, name)} took {Owner(key, other)} along"


def check_totals(allocator: Allocator, claim: Claim, granted: int, most: int, promises: Promises) -> None:
    """Where holders of one unit fill a node to its last unit, a grant takes what is asked and no more.

    Args:
        allocator: Holds nothing.
        claim: Of which the node was filled.
        granted: How often.
        most: How many times its amounts are granted at once.
        promises: What it is held to.
    """
    shown = figures(allocator, claim)
    if promises.fractions or not promises.exact or len(shown) != 1:
        return
    ((name, entry),) = shown.items()
    if granted * entry.wanted != sum(entry.allocatable.values()):
        return  # some can never be granted to claims of this size, or counts at several nodes
    for factor in sorted({*_FACTORS, most // 2, most // 2 + 1, most} - {0}):
        one = stranger(claim, factor)
        where = f"{allocator.name}, {factor} times claim {claim.owner.member}"
        answer = allocate(allocator, one, ANYWHERE, where)
        if isinstance(answer, (Shortfall, NotYet)) or name not in figures(allocator, one):
            continue
        asked, left = figures(allocator, one)[name], figures(answer, one)
        gone = sum(asked.free.values()) - (sum(left[name].free.values()) if name in left else 0)
        assert gone == asked.wanted, (
            f"{where}: {asked.wanted} {name} were asked for on {told(ANYWHERE)}, and {gone} fewer are free"
        )
