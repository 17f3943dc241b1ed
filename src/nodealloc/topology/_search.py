"""Search over a whole workload, so that an early member does not take what a later one needs.

The kubelet settles each container for good before it looks at the next. Here a
choice is taken back when a later member cannot be placed, depth first: the
choices of each member are tried best first, so that the first assignment that
is found is the kubelet's own wherever the kubelet finds one.

The bound: with c candidates for each of m members at most c + c² + … + cᵐ
claims are tried. Under single-numa-node c is the number of nodes. Members that
ask for the same are not tried in every order on separate nodes, so that m equal
ones cost at most 2ᶜ instead. `Policy.search_steps` ends a search that meets a
worse case.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from nodealloc.topology._asking import Stopped, allocated, hints_of
from nodealloc.topology._candidates import candidates, options_of
from nodealloc.topology._claims import Claim, Workload
from nodealloc.topology._hints import TopologyHint
from nodealloc.topology._policy import PolicyName, Scope
from nodealloc.topology._ports import Allocator
from nodealloc.topology._shares import allocated_shares
from nodealloc.topology._snapshot import Affinities, Snapshot
from nodealloc.verdicts import NotYet

__all__ = ["Found", "NotFound", "search"]


@attrs.frozen(kw_only=True)
class Found:
    """An assignment that fits.

    Attributes:
        allocators: With every claim granted.
        affinity: Member to its hint.
        steps: How many claims were tried.
    """

    allocators: tuple[Allocator, ...]
    affinity: Affinities
    steps: int


@attrs.frozen(kw_only=True)
class NotFound:
    """No assignment fits, or none was reached.

    Attributes:
        steps: How many claims were tried.
        exhausted: Whether the search stopped at its bound.
    """

    steps: int
    exhausted: bool


@attrs.define
class _Level:
    """One member's choices that are left to try, best first, on the allocators before it."""

    allocators: tuple[Allocator, ...]
    choices: list[TopologyHint]


def search(snapshot: Snapshot, workload: Workload, /) -> Found | NotFound:
    """The first assignment in which every claim is granted, if there is one.

    An allocator that is not ready counts as one that does not grant: admission
    has asked all of them before it searches.
    """
    if snapshot.scope is Scope.POD:
        return _together(snapshot, workload)
    claims = workload.claims
    levels = (
        [_Level(snapshot.allocators, _choices(snapshot, claims[:1], snapshot.allocators))] if claims else []
    )
    chosen: list[TopologyHint] = []
    steps = 0
    while levels:
        level = levels[-1]
        if not level.choices:
            levels.pop()
            if chosen:
                chosen.pop()
            continue
        if steps == snapshot.policy.search_steps:
            return NotFound(steps=steps, exhausted=True)
        steps += 1
        place = len(levels) - 1
        hint = level.choices.pop(0)
        granted = allocated(level.allocators, claims[place], hint)
        if isinstance(granted, Stopped):
            continue
        chosen.append(hint)
        if len(levels) == len(claims):
            affinity = {claim.owner.member: given for claim, given in zip(claims, chosen, strict=True)}
            return Found(allocators=granted, affinity=affinity, steps=steps)
        choices = _choices(snapshot, claims[place + 1 : place + 2], granted)
        if _same_wish(claims[place], claims[place + 1]):
            choices = [choice for choice in choices if not _mirrored(hint, choice)]
        levels.append(_Level(granted, choices))
    return NotFound(steps=steps, exhausted=False)


def _same_wish(one: Claim, other: Claim) -> bool:
    return attrs.evolve(one, owner=other.owner) == other


def _mirrored(before: TopologyHint, hint: TopologyHint) -> bool:
    """Whether two equal members on separate nodes stand in the order that is not tried."""
    if before.affinity is None or hint.affinity is None:
        return False
    return not before.affinity & hint.affinity and hint.affinity < before.affinity


def _together(snapshot: Snapshot, workload: Workload) -> Found | NotFound:
    """Scope `pod`: every candidate for all members at once."""
    steps = 0
    for hint in _choices(snapshot, workload.claims, snapshot.allocators):
        allocators = snapshot.allocators
        for claim in workload.claims:
            steps += 1
            granted = allocated(allocators, claim, hint)
            if isinstance(granted, Stopped):
                break
            allocators = granted
        else:
            affinity = {claim.owner.member: hint for claim in workload.claims}
            return Found(allocators=allocators, affinity=affinity, steps=steps)
    return NotFound(steps=steps, exhausted=False)


def _choices(
    snapshot: Snapshot, claims: Sequence[Claim], allocators: tuple[Allocator, ...]
) -> list[TopologyHint]:
    """Every hint that the policy lets in, best first."""
    policy, numa = snapshot.policy, snapshot.numa
    if policy.name is PolicyName.NONE:
        return [TopologyHint(affinity=None, preferred=False)]
    hints = hints_of(allocators, claims)
    if isinstance(hints, NotYet):
        return []
    options = options_of(policy, hints, numa, [allocator.name for allocator in allocators])
    shares = allocated_shares(allocators, claims) if policy.comparison is not None else {}
    found = candidates(policy, options, numa, shares)
    if policy.name is PolicyName.SINGLE_NUMA_NODE:
        return [TopologyHint(None, preferred=True) if hint.affinity == numa.mask else hint for hint in found]
    if policy.name is PolicyName.RESTRICTED:
        return found
    # Where the intersection is too narrow for one of them, all nodes leave each its own.
    everywhere = TopologyHint(numa.mask, preferred=False)
    return found if any(hint.affinity == numa.mask for hint in found) else [*found, everywhere]
