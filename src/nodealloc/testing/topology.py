"""A fake allocator, and the check that any allocator can be held to.

>>> from nodealloc.testing.topology import FakeAllocator
>>> gpu = FakeAllocator.of("example.com/gpu", {0: 2, 1: 2})
>>> gpu.free_on(0)
2
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import TypeAlias

from nodealloc import _attrs as attrs
from nodealloc._arguments import is_other, wrong
from nodealloc._frozen import Frozen, freeze
from nodealloc._typed import typed
from nodealloc.idset import bits, lowest
from nodealloc.podspec import Quantity
from nodealloc.testing._allocator_calls import Promises, check_copy, is_allocator, pickled, released, stranger
from nodealloc.testing._allocator_checks import check_claim, check_hints
from nodealloc.testing._allocator_edges import (
    check_asks_nothing,
    check_edges,
    check_unknown_release,
    filled_by,
)
from nodealloc.testing._allocator_histories import check_fills_up, check_history
from nodealloc.testing._allocator_use import check_kinds, check_members, check_spread
from nodealloc.testing._report_checks import check_entry, check_figures, check_unused
from nodealloc.testing._wording import has_fractions, in_words
from nodealloc.topology import (
    Allocator,
    Availability,
    Claim,
    ClaimKind,
    Comparison,
    ComparisonContext,
    Hints,
    NotYet,
    NumaTopology,
    Owner,
    Rank,
    Reports,
    Shortfall,
    TopologyHint,
    Workload,
    peak,
)

__all__ = ["FakeAllocator", "check_allocator", "check_comparison", "check_reports", "workload"]

Amount: TypeAlias = "Quantity | str | float"
"""An amount as tests write it: `2`, `0.5`, `"500m"`, `"2Gi"`, or a `Quantity`."""


@typed
def workload(
    key: str, /, *amounts: Mapping[str, Amount], init: Sequence[Mapping[str, Amount]] = ()
) -> Workload:
    """A workload of claims named `init-0`…, `app-0`…, for tests.

    Args:
        key: Its key.
        amounts: What each main member asks for, in the resource's unit.
        init: What each plain init member asks for; main members may reuse it.
    """
    names = tuple(f"init-{place}" for place in range(len(init)))
    asked = [
        (name, ClaimKind.INIT, names[:place], units)
        for place, (name, units) in enumerate(zip(names, init, strict=True))
    ]
    asked += [(f"app-{place}", ClaimKind.MAIN, names, units) for place, units in enumerate(amounts)]
    return Workload(
        key=key,
        claims=tuple(
            Claim(
                owner=Owner(key, name),
                amounts={resource: Quantity.of(units) for resource, units in wanted.items()},
                kind=kind,
                reuse=reuse,
            )
            for name, kind, reuse, wanted in asked
        ),
    )


@attrs.frozen(kw_only=True)
class FakeAllocator:
    """Countable units of one resource on NUMA nodes: an `Allocator` that `Reports`.

    Attributes:
        name: The resource that it manages, and its own name.
        units: Node id to its units as a mask; no unit is on two nodes.
        held: Owner to the units that it holds, as a mask.
        waiting_for: What it awaits before it can answer, in words; "" when ready.
    """

    name: str
    units: Mapping[int, int] = attrs.field(validator=freeze)
    held: Mapping[Owner, int] = attrs.field(factory=Frozen[Owner, int], validator=freeze)
    waiting_for: str = ""

    @classmethod
    @typed
    def of(cls, resource: str, capacity: Mapping[int, int], /) -> FakeAllocator:
        """With so many free units on each node."""
        if any(count < 0 for count in capacity.values()):
            raise wrong("FakeAllocator.of: capacity", capacity, "0 or more units on each node")
        units: dict[int, int] = {}
        first = 0
        for node, count in sorted(capacity.items()):
            units[node] = ((1 << count) - 1) << first
            first += count
        return cls(name=resource, units=units)

    def free_on(self, node: int, /) -> int:
        """How many units of a node nobody holds."""
        return (self.units.get(node, 0) & self._free).bit_count()

    def serves(self, resource: str, /) -> bool:
        """See `Serves.serves`."""
        return resource == self.name

    def hints(self, claims: Sequence[Claim], /) -> Hints | NotYet:
        """See `Allocator.hints`."""
        wanted = peak(claims, self._wanted)
        if not wanted:
            return {}
        if self.waiting_for:
            return NotYet(blocker=self.name, message=self.waiting_for)
        held = [self.held[claim.owner] for claim in claims if claim.owner in self.held]
        if len(held) == len(claims) == 1:
            return {self.name: [TopologyHint(self._nodes_of(held[0]), preferred=True)]}
        usable = self._usable(claims[0]) if len(claims) == 1 else self._free | _union(held)
        return {self.name: list(self._possible(wanted, usable))}

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> FakeAllocator | Shortfall | NotYet:
        """See `Allocator.allocate`; what may be reused is taken first, then low units."""
        wanted = self._wanted(claim)
        if not wanted or claim.owner in self.held:
            return self
        if self.waiting_for:
            return NotYet(blocker=self.name, message=self.waiting_for)
        usable = self._usable(claim) & self._on(affinity.affinity)
        if usable.bit_count() < wanted:
            free = usable.bit_count()
            return Shortfall(resource=self.name, wanted=wanted, free=free, nodes=affinity.affinity)
        reusable = usable & ~self._free
        taken = lowest(reusable, wanted)
        taken |= lowest(usable & self._free, wanted - taken.bit_count())
        return attrs.evolve(self, held={**self.held, claim.owner: taken})

    def release(self, workload: str, member: str | None = None, /) -> FakeAllocator:
        """See `Allocator.release`."""
        left = {
            owner: units
            for owner, units in self.held.items()
            if owner.workload != workload or member not in {None, owner.member}
        }
        return self if len(left) == len(self.held) else attrs.evolve(self, held=left)

    def availability(self, claims: Sequence[Claim], /) -> Sequence[Availability]:
        """See `Reports.availability`."""
        wanted = peak(claims, self._wanted)
        if not wanted:
            return ()
        return (
            Availability(
                resource=self.name,
                wanted=wanted,
                free={node: self.free_on(node) for node in self.units},
                allocatable={node: units.bit_count() for node, units in self.units.items()},
            ),
        )

    @property
    def _free(self) -> int:
        return _union(self.units.values()) & ~_union(self.held.values())

    def _wanted(self, claim: Claim) -> int:
        return claim.amounts[self.name].value if self.name in claim.amounts else 0

    def _usable(self, claim: Claim) -> int:
        """Free units, and those of ended init members that no other member took over."""
        lent = kept = 0
        for owner, units in self.held.items():
            if owner.workload == claim.owner.workload:
                if owner.member in claim.reuse:
                    lent |= units
                else:
                    kept |= units
        return self._free | (lent & ~kept)

    def _on(self, mask: int | None) -> int:
        nodes = self.units if mask is None else bits(mask)
        return _union(self.units.get(node, 0) for node in nodes)

    def _nodes_of(self, units: int) -> int:
        return sum(1 << node for node, here in self.units.items() if here & units)

    def _possible(self, wanted: int, usable: int) -> Iterator[TopologyHint]:
        holding = [node for node, units in self.units.items() if units]
        narrowest = 0
        for width in range(1, len(holding) + 1):
            for nodes in combinations(holding, width):
                mask = sum(1 << node for node in nodes)
                if self._on(mask).bit_count() >= wanted:
                    narrowest = narrowest or width
                if (self._on(mask) & usable).bit_count() >= wanted:
                    yield TopologyHint(mask, preferred=width == narrowest)


def _union(masks: Iterable[int]) -> int:
    found = 0
    for mask in masks:
        found |= mask
    return found


def check_allocator(
    allocator: Allocator,
    asked: Workload,
    /,
    numa: NumaTopology,
    *,
    every_hint_grants: bool = True,
    exact_release: bool = True,
    exact_hints: bool = True,
    steps: int = 40,
    seed: int = 0,
) -> None:
    """Hold an allocator to what admission relies on, for workloads like one.

    The allocator should hold nothing, and the workload should be one that it
    can grant some of. Three parts:

    - Each claim in turn, with the earlier ones granted: asking, allocating and
      releasing change nothing, answer alike when repeated, and raise nothing;
      hints stay inside the machine, and those that are preferred are the narrowest;
      what was hinted is granted, as much as was asked and from
      there; a held claim is granted again as it is; a claim that asks for
      nothing here gets nothing; values survive pickling.
    - A random history of admissions and releases: nobody loses what is held,
      and when all has been released the value is the first again.
    - A node that fills up: the largest claim that fits is refused when it is
      full, and together no more is granted than there is.

    With `Reports`, what is free is counted before and after each grant. Without
    it, only a node that never fills up shows that something was granted twice.

    Args:
        allocator: The one to check.
        asked: Claims to check it with; amounts may be fractions.
        numa: The machine that its hints have to stay inside.
        every_hint_grants: Whether every hint has to be one that `allocate`
            accepts; pass False for a policy that hints more than it grants.
        exact_release: Whether releasing one member restores the value to the
            last unit; pass False for books that give back elsewhere than they
            took. Releasing the whole workload has to, always.
        exact_hints: Whether preferred hints are the narrowest, and what is
            granted on one is what was asked for, from its nodes; pass False for a
            policy that prefers, or takes from, whole sockets, that rounds up to
            whole nodes, or that refuses odd amounts.
        steps: Length of the history.
        seed: Which history.

    Raises:
        AssertionError: A promise is broken; the text says which, for which claim.
        MaskOutsideError: A hint names a node that the machine has not.
        HintError: A hint is none.
    """
    assert allocator.name, "an allocator needs a name"
    promises = Promises(
        numa=numa,
        every_hint_grants=every_hint_grants,
        exact_release=exact_release,
        exact_hints=exact_hints,
        fractions=has_fractions(asked),
    )
    check_copy(allocator)
    check_unknown_release(allocator)
    check_hints(allocator, asked.claims, promises)
    check_unused(allocator, asked)
    before = allocator
    for claim in asked.claims:
        before = check_claim(before, claim, promises)
        check_claim(allocator, stranger(claim), promises)
        check_asks_nothing(allocator, claim, promises)
    emptied = released(before, asked.key)
    assert emptied == allocator, (
        f"{allocator.name}: releasing {asked.key} did not restore the value before it"
    )
    check_unknown_release(before)
    check_history(allocator, asked, promises, steps=steps, seed=seed)
    for claim in {tuple(one.amounts.items()): one for one in asked.claims}.values():
        check_fills_up(allocator, claim, promises)
    check_edges(allocator, asked, promises)
    check_spread(allocator, asked, promises)
    for claim in asked.claims:
        check_kinds(allocator, claim)
    full = filled_by(allocator, asked)
    if full is not None:
        check_members(full, asked)


@in_words
def check_reports(reports: Reports, asked: Workload, numa: NumaTopology, /) -> None:
    """Hold what an allocator reports to what refusals are made of.

    Where it allocates as well, claims are granted and released: what is
    reported as free goes down by what was wanted, and comes back.

    Args:
        reports: An `Allocator` with this ability.
        asked: Claims that ask for something of it.
        numa: The machine that it speaks of.

    Raises:
        AssertionError: A promise is broken; the text says which.
    """
    before = pickled(reports, "the allocator")
    entries = reports.availability(asked.claims)
    assert entries, "nothing is reported of what the claims ask for"
    assert list(entries) == list(reports.availability(asked.claims)), "answered differently the second time"
    assert reports == before, "reporting changed the allocator that was asked"
    for one in entries:
        check_entry(one, asked, numa)
    assert len({one.resource for one in entries}) == len(entries), "a resource is reported twice"
    allocator: object = reports
    if is_allocator(allocator):
        check_figures(allocator, asked, numa)


@in_words
def check_comparison(comparison: Comparison, numa: NumaTopology, /) -> None:
    """Hold a comparison to what the merge relies on, over every set of at most eight nodes.

    Raises:
        AssertionError: A promise is broken; the text says which.
    """
    nodes = numa.nodes[:8]
    taken = {node: place / len(nodes) for place, node in enumerate(nodes)}
    again = pickled(comparison, "the comparison")
    for preferred in (True, False):
        for context in (
            ComparisonContext(numa=numa, narrowest=1),
            ComparisonContext(numa=numa, narrowest=2, allocated=taken),
        ):
            ranks: dict[int, Rank] = {}
            for width in range(1, len(nodes) + 1):
                for mask in (sum(1 << node for node in chosen) for chosen in combinations(nodes, width)):
                    hint = TopologyHint(mask, preferred=preferred)
                    ranks[mask] = _ranked(comparison, again, hint, context)
            assert len({len(rank) for rank in ranks.values()}) == 1, "ranks of one context differ in length"
            _check_ordered(ranks)
            for mask, rank in reversed(ranks.items()):
                hint = TopologyHint(mask, preferred=preferred)
                copy: ComparisonContext = pickled(context, "the context")
                assert comparison.rank(hint, copy) == rank, (
                    f"{hint}: ranked otherwise in a context of the same content, or after others"
                )


def _check_ordered(ranks: Mapping[int, Rank]) -> None:
    """The smallest of any ranks is found, whatever their numbers are made of."""
    ordered = sorted(ranks.items(), key=lambda one: one[1])
    for (lower, small), (upper, large) in combinations(ordered, 2):
        assert not large < small, (
            f"masks {lower:b} and {upper:b}: ranks {small} and {large} are in no order with the others"
        )


def _ranked(
    comparison: Comparison, again: Comparison, hint: TopologyHint, context: ComparisonContext
) -> Rank:
    """The rank of a hint: numbers, the same each time, with everything left as it was."""
    before = pickle.dumps(context)
    try:
        rank = comparison.rank(hint, context)
    except Exception as error:
        raise AssertionError(f"{hint}: raised {error!r}") from error
    untouched = context == pickle.loads(before)  # noqa: S301
    assert untouched, f"{hint}: the comparison changed the context that it was shown"
    assert isinstance(rank, tuple), f"{hint}: a rank is a tuple of numbers, found {rank!r}"
    assert rank, f"{hint}: a rank has one number at least"
    for one in rank:
        number = not is_other(one, (int, float, Fraction))
        assert number, f"{hint}: rank {rank} has {one!r} in it; a rank is a tuple of numbers"
        assert one == one, f"{hint}: {rank} cannot be ordered"  # noqa: PLR0124
    assert comparison.rank(hint, context) == rank, f"{hint}: ranked differently the second time"
    assert again.rank(hint, context) == rank, f"{hint}: pickling changed the rank"
    return rank
