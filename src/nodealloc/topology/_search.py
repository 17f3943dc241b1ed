"""Search over a whole workload, so that an early member does not take what a later one needs.

The kubelet settles each container for good before it looks at the next. Here a
choice is taken back when a later member cannot be placed, depth first: the
choices of each member are tried best first, so that the first assignment that
is found is the kubelet's own wherever the kubelet finds one.

The bound: with c candidates for each of m members at most c + c² + … + cᵐ
claims are tried. Under single-numa-node c is the number of nodes. Members that
ask for the same are not tried in every order on separate nodes, so that m equal
ones cost at most 2ᶜ instead. `Policy.search_steps` and `Policy.work_units` end a
search that meets a worse case.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nodealloc import _attrs as attrs
from nodealloc.topology._asking import Stopped, allocated, hints_of
from nodealloc.topology._candidates import candidates
from nodealloc.topology._claims import Claim, Workload
from nodealloc.topology._errors import WorkLimitError
from nodealloc.topology._hints import NumaTopology, TopologyHint
from nodealloc.topology._policy import PolicyName, Scope
from nodealloc.topology._ports import Allocator
from nodealloc.topology._reading import read
from nodealloc.topology._snapshot import Affinities, Snapshot
from nodealloc.topology._utilization import allocated_shares
from nodealloc.topology._work import Work
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


_STEP_UNITS = 100
"""What a tried claim counts at least: each allocator answers once, and then is asked for hints."""

_HELD_UNITS = 15
"""What it counts more for each member that is placed already, since allocators carry those along."""


@attrs.define
class _Level:
    """One member's choices that are left to try, best first, on the allocators before it."""

    allocators: tuple[Allocator, ...]
    choices: Iterator[TopologyHint]


def search(snapshot: Snapshot, workload: Workload, work: Work, /) -> Found | NotFound:
    """The first assignment in which every claim is granted, if there is one.

    An allocator that is not ready counts as one that does not grant: admission
    has asked all of them before it searches.

    Args:
        snapshot: The node.
        workload: Who asks.
        work: What is spent; a search ends, exhausted, with the last unit.
    """
    steps = _Steps(snapshot, workload, work)
    try:
        return steps.together() if snapshot.scope is Scope.POD else steps.one_by_one()
    except WorkLimitError:
        return NotFound(steps=steps.taken, exhausted=True)


class _Steps:
    """A search under way."""

    def __init__(self, snapshot: Snapshot, workload: Workload, work: Work) -> None:
        self._snapshot = snapshot
        self._claims = workload.claims
        self._work = work
        self.taken: int = 0

    def one_by_one(self) -> Found | NotFound:
        """Scope `container`: each member's candidates, on what the members before it left."""
        claims = self._claims
        levels = [self._level(self._snapshot.allocators, claims[:1])] if claims else []
        chosen: list[TopologyHint] = []
        while levels:
            level = levels[-1]
            hint = next(level.choices, None)
            if hint is None:
                levels.pop()
                if chosen:
                    chosen.pop()
                continue
            place = len(levels) - 1
            granted = self._try(level.allocators, claims[place], hint, place)
            if granted is None:
                continue
            chosen.append(hint)
            if len(levels) == len(claims):
                affinity = {claim.owner.member: given for claim, given in zip(claims, chosen, strict=True)}
                return Found(allocators=granted, affinity=affinity, steps=self.taken)
            after = self._level(granted, claims[place + 1 : place + 2])
            if _same_wish(claims[place], claims[place + 1]):
                after.choices = _not_mirrored(hint, after.choices)
            levels.append(after)
        return NotFound(steps=self.taken, exhausted=False)

    def together(self) -> Found | NotFound:
        """Scope `pod`: every candidate for all members at once."""
        for hint in self._level(self._snapshot.allocators, self._claims).choices:
            allocators = self._snapshot.allocators
            for place, claim in enumerate(self._claims):
                granted = self._try(allocators, claim, hint, place)
                if granted is None:
                    break
                allocators = granted
            else:
                affinity = {claim.owner.member: hint for claim in self._claims}
                return Found(allocators=allocators, affinity=affinity, steps=self.taken)
        return NotFound(steps=self.taken, exhausted=False)

    def _try(
        self, allocators: tuple[Allocator, ...], claim: Claim, hint: TopologyHint, place: int
    ) -> tuple[Allocator, ...] | None:
        if self.taken == self._snapshot.policy.search_steps:
            raise WorkLimitError(self._work.limit)
        self.taken += 1
        self._work.spend((_STEP_UNITS + _HELD_UNITS * place) * len(allocators))
        granted = allocated(allocators, claim, hint)
        return None if isinstance(granted, Stopped) else granted

    def _level(self, allocators: tuple[Allocator, ...], claims: Sequence[Claim]) -> _Level:
        """A member, with every hint that the policy lets in, best first."""
        return _Level(allocators, self._choices(allocators, claims))

    def _choices(self, allocators: tuple[Allocator, ...], claims: Sequence[Claim]) -> Iterator[TopologyHint]:
        policy, numa = self._snapshot.policy, self._snapshot.numa
        if policy.name is PolicyName.NONE:
            yield TopologyHint(affinity=None, preferred=False)
            return
        hints = hints_of(allocators, claims)
        if isinstance(hints, NotYet):
            return
        reading = read(hints, numa.mask, [allocator.name for allocator in allocators])
        self._work.spend(sum([len(one.masks) for one in reading.lists]))
        shares = allocated_shares(allocators, claims) if policy.comparison is not None else {}
        found = candidates(policy, reading, numa, shares, self._work)
        yield from _with_everywhere(found, numa) if policy.name is PolicyName.BEST_EFFORT else found


def _with_everywhere(found: Iterator[TopologyHint], numa: NumaTopology) -> Iterator[TopologyHint]:
    """Where the intersection is too narrow for one of them, all nodes leave each its own."""
    missing = True
    for hint in found:
        missing = missing and hint.affinity != numa.mask
        yield hint
    if missing:
        yield TopologyHint(numa.mask or None, preferred=False)


def _same_wish(one: Claim, other: Claim) -> bool:
    return attrs.evolve(one, owner=other.owner) == other


def _not_mirrored(before: TopologyHint, choices: Iterator[TopologyHint]) -> Iterator[TopologyHint]:
    return (choice for choice in choices if not _mirrored(before, choice))


def _mirrored(before: TopologyHint, hint: TopologyHint) -> bool:
    """Whether two equal members on separate nodes stand in the order that is not tried.

    On nodes that overlap the order matters: what the first takes of the nodes in
    common decides what is left for the second.
    """
    if before.affinity is None or hint.affinity is None:
        return False
    return not before.affinity & hint.affinity and hint.affinity < before.affinity
