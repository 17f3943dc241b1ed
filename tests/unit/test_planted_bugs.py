"""Bugs that people do write: the kit refuses each, in a sentence that names it."""

# ruff: noqa: D102 - a class says what its one method does wrong

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import attrs
import pytest

from nodealloc.cpuset import CpuLayout, CPUSet, KubeletPicker, StaticPolicy, take_cpus
from nodealloc.errors import NodeallocError
from nodealloc.idset import bits, lowest
from nodealloc.machine import machine_from_text
from nodealloc.podspec import Quantity
from nodealloc.testing.cpuset import check_picker
from nodealloc.testing.topology import (
    FakeAllocator,
    check_allocator,
    check_comparison,
    check_reports,
    workload,
)
from nodealloc.topology import (
    Allocator,
    Availability,
    Claim,
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
)

GPU = "example.com/gpu"
NUMA = NumaTopology(nodes=(0, 1), distances={0: {0: 10, 1: 21}, 1: {0: 21, 1: 10}})
Answer = FakeAllocator | Shortfall | NotYet


class Units(FakeAllocator):
    """Four units on each of two nodes; a bug is one method of it done wrong."""

    @classmethod
    def eight(cls) -> Units:
        """With nothing held."""
        return cls(name=GPU, units={0: 0b1111, 1: 0b1111_0000})


def asked_for() -> Workload:
    """Four units in the end, and one before."""
    return workload("job", {GPU: 1}, {GPU: 3}, init=[{GPU: 1}])


def wanted(claim: Claim) -> int:
    """Units that a claim asks for."""
    return claim.amounts[GPU].value if GPU in claim.amounts else 0


def holding(node: FakeAllocator, claim: Claim, units: int) -> FakeAllocator:
    """With these units held, whoever else holds them."""
    return attrs.evolve(node, held={**node.held, claim.owner: units})


class SameForAll(Units):
    """Every owner sees all there is."""

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> Answer:
        here = [self.units[node] for node in bits(3 if affinity.affinity is None else affinity.affinity)]
        if not wanted(claim) or claim.owner in self.held:
            return self
        if sum(here).bit_count() < wanted(claim):
            return Shortfall(resource=GPU, wanted=wanted(claim), free=sum(here).bit_count())
        return holding(self, claim, lowest(sum(here), wanted(claim)))


class OneTooMany(Units):
    """Off by one: the last unit of a grant is not taken."""

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> Answer:
        after = super().allocate(claim, affinity)
        if after is self or not isinstance(after, FakeAllocator):
            return after
        units = after.held[claim.owner]
        return holding(self, claim, lowest(units, max(1, units.bit_count() - 1)))


class GrantsNothing(Units):
    """Says yes and takes nothing."""

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> Answer:
        after = super().allocate(claim, affinity)
        return self if isinstance(after, FakeAllocator) else after


class AnywhereElse(Units):
    """Takes from the other nodes first."""

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> Answer:
        elsewhere = super().allocate(claim, TopologyHint(0b10, preferred=True))
        if isinstance(elsewhere, FakeAllocator):
            return elsewhere
        return super().allocate(claim, TopologyHint(None, preferred=False))


class Raises(Units):
    """Raises where there is too little."""

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> Answer:
        answer = super().allocate(claim, affinity)
        if isinstance(answer, Shortfall):
            raise RuntimeError("full")  # noqa: TRY004 - that is the bug
        return answer


class NoAnswer(Units):
    """Forgets to answer where there is too little."""

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> Answer:
        answer = super().allocate(claim, affinity)
        return cast("Answer", None) if isinstance(answer, Shortfall) else answer


class GrantsToAll(Units):
    """Books something for a claim that asks for nothing."""

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> Answer:
        if not wanted(claim):
            return holding(self, claim, 0)
        return super().allocate(claim, affinity)


class Again(Units):
    """Grants a held claim once more, elsewhere."""

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> Answer:
        if claim.owner in self.held and len(self.held) == 1:
            return holding(self, claim, self.held[claim.owner] << 1)
        return super().allocate(claim, affinity)


class Eats(Units):
    """Takes what others hold when it is full."""

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> Answer:
        answer = super().allocate(claim, affinity)
        if isinstance(answer, Shortfall) and self.held:
            left = dict(list(self.held.items())[1:])
            return attrs.evolve(self, held=left).allocate(claim, affinity)
        return answer


class InPlace(Units):
    """Books into the value that is asked."""

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> Answer:
        after = super().allocate(claim, affinity)
        if isinstance(after, FakeAllocator) and after is not self:
            object.__setattr__(self, "held", after.held)
        return after


class TakesAmounts(Units):
    """Counts a claim's amounts down."""

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> Answer:
        after = super().allocate(claim, affinity)
        cast("dict[str, Quantity]", claim.amounts)[GPU] = Quantity()
        return after


class ByChance(Units):
    """Any units will do."""

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> Answer:
        after = super().allocate(claim, affinity)
        if isinstance(after, FakeAllocator) and after is not self:
            places = [place for place in range(8) if not sum(self.held.values()) >> place & 1]
            chosen = random.sample(places, wanted(claim))
            return holding(self, claim, sum(1 << place for place in chosen))
        return after


class ReleasesInPlace(Units):
    """Gives back from the value that is asked."""

    def release(self, workload: str, member: str | None = None, /) -> FakeAllocator:
        after = super().release(workload, member)
        object.__setattr__(self, "held", after.held)
        return after


class Leaks(Units):
    """Gives back all but one unit."""

    def release(self, workload: str, member: str | None = None, /) -> FakeAllocator:
        after = super().release(workload, member)
        kept = {Owner("leak", one.member): held & -held for one, held in self.held.items()}
        return attrs.evolve(after, held={**after.held, **kept}) if after is not self else after


class LeaksAcross(Units):
    """Gives back the first node of a grant over two."""

    def release(self, workload: str, member: str | None = None, /) -> FakeAllocator:
        after = super().release(workload, member)
        gone = [units for owner, units in self.held.items() if owner not in after.held]
        wide = [units & 0xF0 for units in gone if units & 0x0F and units & 0xF0]
        return attrs.evolve(after, held={**after.held, Owner("leak", "x"): wide[0]}) if wide else after


class WholeFamily(Units):
    """Releases the siblings of a member as well."""

    def release(self, workload: str, member: str | None = None, /) -> FakeAllocator:
        return super().release(workload)


class Everybody(Units):
    """Releases the next workload as well."""

    def release(self, workload: str, member: str | None = None, /) -> FakeAllocator:
        after = super().release(workload, member)
        others = [one.workload for one in after.held if one.workload != workload]
        return after.release(others[0]) if after is not self and others else after


class AllForUnknown(Units):
    """An unknown workload frees all."""

    def release(self, workload: str, member: str | None = None, /) -> FakeAllocator:
        if all(owner.workload != workload for owner in self.held):
            return attrs.evolve(self, held={})
        return super().release(workload, member)


class Hinting(Units):
    """Its hints go through `changed`."""

    def hints(self, claims: Sequence[Claim], /) -> Hints | NotYet:
        found = super().hints(claims)
        if isinstance(found, NotYet) or not found:
            return found
        return {GPU: self.changed(list(found[GPU] or ()))}

    def changed(self, hints: list[TopologyHint]) -> list[TopologyHint]:
        return hints


class AllPreferred(Hinting):
    """Prefers every hint."""

    def changed(self, hints: list[TopologyHint]) -> list[TopologyHint]:
        return [hint._replace(preferred=True) for hint in hints]


class NonePreferred(Hinting):
    """Prefers none."""

    def changed(self, hints: list[TopologyHint]) -> list[TopologyHint]:
        return [hint._replace(preferred=False) for hint in hints]


class Inverted(Hinting):
    """Prefers the wide ones."""

    def changed(self, hints: list[TopologyHint]) -> list[TopologyHint]:
        return [hint._replace(preferred=not hint.preferred) for hint in hints]


class Shuffled(Hinting):
    """In any order."""

    def changed(self, hints: list[TopologyHint]) -> list[TopologyHint]:
        return random.sample(hints, len(hints)) if len(hints) > 1 else hints


class Optimist(Units):
    """Hints for one unit more than there is."""

    def hints(self, claims: Sequence[Claim], /) -> Hints | NotYet:
        if sum(map(wanted, claims)) == 9:
            return {GPU: [TopologyHint(3, preferred=True)]}
        return super().hints(claims)


class HintsForAll(Units):
    """Hints for claims that ask for nothing."""

    def hints(self, claims: Sequence[Claim], /) -> Hints | NotYet:
        return super().hints(claims) or {GPU: [TopologyHint(1, preferred=True)]}


class HintsRaise(Units):
    """Fails on a claim that does not name its resource."""

    def hints(self, claims: Sequence[Claim], /) -> Hints | NotYet:
        return super().hints([claim for claim in claims if claim.amounts[GPU]])


class Liar(Units):
    """Reports that all is free, always."""

    def availability(self, claims: Sequence[Claim], /) -> Sequence[Availability]:
        return [attrs.evolve(one, free=one.allocatable) for one in super().availability(claims)]


class ServesNothing(Units):
    """Does not know its own resource."""

    def serves(self, resource: str, /) -> bool:
        return not resource


class ServesAll(Units):
    """Takes every resource for its own."""

    def serves(self, resource: str, /) -> bool:
        return bool(resource)


class Unpicklable(Units):
    """Cannot travel."""

    def __reduce__(self) -> str:
        raise TypeError("no")


ALLOCATORS: Mapping[type[Units], str] = {
    SameForAll: "granting .* changed how much .* holds|the rest is granted twice",
    OneTooMany: "3 were granted and 2 fewer are free: the rest is granted twice",
    GrantsNothing: "granted nothing, though it hinted at nodes",
    AnywhereElse: "granted on NUMA nodes 0, and only 0 of 1 came from there",
    Raises: r"raised RuntimeError\('full'\); answer with a Shortfall",
    NoAnswer: "answered None where an allocator, a Shortfall or NotYet belongs",
    GrantsToAll: "asks for nothing was not answered with the value itself",
    Again: "a claim that is held was granted anew",
    Eats: "1 were granted and 0 fewer are free: the rest is granted twice",
    InPlace: "allocate on any node: changed the allocator that was asked",
    TakesAmounts: "changed the claim|does not change",
    ByChance: "answered differently the second time",
    ReleasesInPlace: "release of .*: changed the allocator that was asked",
    Leaks: "releasing it did not restore the value",
    LeaksAcross: "releasing .* did not restore the value|half granted left something|is not the first",
    WholeFamily: "releasing an unknown member changed something",
    Everybody: "took away what check-.* holds|changed how much check-.* holds",
    AllForUnknown: "releasing an unknown workload changed something",
    AllPreferred: "NUMA nodes 0-1 is preferred, and so is the narrower NUMA nodes 0",
    NonePreferred: "NUMA nodes 0 is not preferred, and nothing is narrower than one node",
    Inverted: "NUMA nodes 0 is not preferred, and nothing is narrower than one node",
    Shuffled: "answered differently the second time",
    Optimist: "hinted at nodes, and refuses it on any node",
    HintsForAll: "hints for example.com/gpu, which no claim asks for",
    HintsRaise: "raised KeyError",
    Liar: "3 were granted and 0 fewer are free|1 were granted and 0 fewer are free",
    ServesNothing: "hints for example.com/gpu, which it does not serve",
    ServesAll: "says that it serves check-nobody-has-it",
    Unpicklable: r"cannot be pickled: TypeError\('no'\)",
}


@pytest.mark.parametrize("bug", ALLOCATORS, ids=lambda bug: bug.__name__)
def test_a_bug_in_an_allocator_is_named(bug: type[Units]) -> None:
    """The check ends with the promise that is broken, for the claim that shows it."""
    random.seed(1)
    with pytest.raises(AssertionError, match=ALLOCATORS[bug]):
        check_allocator(bug.eight(), asked_for(), NUMA)


def test_without_a_bug_nothing_is_found() -> None:
    """The allocator that the bugs were planted in passes, over several histories."""
    for seed in range(5):
        check_allocator(Units.eight(), asked_for(), NUMA, steps=80, seed=seed)
    check_reports(Units.eight(), asked_for(), NUMA)


@attrs.frozen(kw_only=True)
class Silent:
    """An allocator that reports nothing."""

    inner: FakeAllocator
    name: str = GPU

    def hints(self, claims: Sequence[Claim], /) -> Hints | NotYet:
        return self.inner.hints(claims)

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> Allocator | Shortfall | NotYet:
        answer = self.inner.allocate(claim, affinity)
        return attrs.evolve(self, inner=answer) if isinstance(answer, FakeAllocator) else answer

    def release(self, workload: str, member: str | None = None, /) -> Silent:
        return attrs.evolve(self, inner=self.inner.release(workload, member))


def test_what_is_granted_twice_shows_without_reports() -> None:
    """Nothing is counted there, but the node never fills up."""
    check_allocator(Silent(inner=Units.eight()), asked_for(), NUMA)
    with pytest.raises(AssertionError, match="granted 1024 times over: what one holds stays free"):
        check_allocator(Silent(inner=SameForAll.eight()), asked_for(), NUMA)


class Half(Units):
    """Counts in halves; `whole` of them are kept of a fraction."""

    def _wanted(self, claim: Claim) -> int:
        return self.halves(claim.amounts[GPU]) if GPU in claim.amounts else 0

    def halves(self, amount: Quantity) -> int:
        return Quantity(nanos=amount.nanos * 2).value

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> Answer:
        answer = super().allocate(claim, affinity)
        if not isinstance(answer, Shortfall):
            return answer
        return attrs.evolve(answer, wanted=-(-answer.wanted // 2), free=answer.free // 2)

    def availability(self, claims: Sequence[Claim], /) -> Sequence[Availability]:
        return [
            attrs.evolve(
                one,
                wanted=-(-one.wanted // 2),
                free={node: count // 2 for node, count in one.free.items()},
                allocatable={node: count // 2 for node, count in one.allocatable.items()},
            )
            for one in super().availability(claims)
        ]


class Dropped(Half):
    """Forgets what is behind the point."""

    def halves(self, amount: Quantity) -> int:
        return 2 * (amount.nanos // 10**9)


def test_fractions_are_counted_as_what_they_are() -> None:
    """Half units pass with rounded figures; an allocator that drops them grants more than there is."""
    asked = workload("job", {GPU: "1500m"}, {GPU: 0.5})
    check_allocator(Half.eight(), asked, NUMA)
    check_reports(Half.eight(), asked, NUMA)
    dropped = Dropped(name=GPU, units={0: (1 << 16) - 1, 1: (1 << 32) - (1 << 16)})
    with pytest.raises(AssertionError, match=r"19500m of example.com/gpu were granted, and there are 16"):
        check_allocator(dropped, workload("job", {GPU: "1500m"}), NUMA)


class Fractional(Units):
    """Reports a figure that is not whole."""

    def availability(self, claims: Sequence[Claim], /) -> Sequence[Availability]:
        half = cast("Mapping[int, int]", {0: 0.5})
        return [attrs.evolve(one, free=half) for one in super().availability(claims)]


class Greedy(Units):
    """Reports more wanted than is asked for."""

    def availability(self, claims: Sequence[Claim], /) -> Sequence[Availability]:
        return [attrs.evolve(one, wanted=one.wanted + 9) for one in super().availability(claims)]


class Elsewhere(Units):
    """Reports a node that is not there."""

    def availability(self, claims: Sequence[Claim], /) -> Sequence[Availability]:
        return [attrs.evolve(one, free={7: 1}) for one in super().availability(claims)]


REPORTS: Mapping[type[Units], str] = {
    SameForAll: "the rest is granted twice",
    Liar: "the rest is granted twice",
    Fractional: "availability raised .*free: expected a mapping of whole number to whole number",
    Greedy: "14 are said to be wanted, all claims ask for 5|13 are said",
    Elsewhere: "the machine has no NUMA node 7",
    Leaks: "was granted and released, and the figures are others",
}


@pytest.mark.parametrize("bug", REPORTS, ids=lambda bug: bug.__name__)
def test_a_bug_in_a_report_is_named(bug: type[Units]) -> None:
    """Figures are held against what is granted and given back."""
    reports: Reports = bug.eight()
    with pytest.raises(AssertionError, match=REPORTS[bug]):
        check_reports(reports, asked_for(), NUMA)


def mixed(candidate: TopologyHint, _: ComparisonContext) -> Rank:
    """A number for some, a word for others."""
    return cast("Rank", ("wide",)) if candidate.affinity == 3 else (1.0,)


def listed(*_: object) -> Rank:
    """A list, which Python does not order against tuples."""
    return cast("Rank", [1.0])


def writing(_: TopologyHint, context: ComparisonContext) -> Rank:
    """Keeps notes in what the caller handed in."""
    cast("dict[int, float]", context.allocated)[0] = 0.5
    return (1.0,)


def raising(*_: object) -> Rank:
    """Divides by the share of an empty node."""
    raise ZeroDivisionError


def nan(*_: object) -> Rank:
    """No order at all."""
    return (float("nan"),)


def ragged(candidate: TopologyHint, _: ComparisonContext) -> Rank:
    """Longer for some."""
    return (1.0,) * (candidate.affinity or 1)


def none(*_: object) -> Rank:
    """No rank."""
    return cast("Rank", None)


@attrs.frozen
class Ranked:
    """A comparison that ranks by a function."""

    by: Callable[[TopologyHint, ComparisonContext], Rank]

    def rank(self, candidate: TopologyHint, context: ComparisonContext, /) -> Rank:
        return self.by(candidate, context)


COMPARISONS: Mapping[Callable[[TopologyHint, ComparisonContext], Rank], str] = {
    mixed: "has 'wide' in it; a rank is a tuple of numbers",
    listed: r"a rank is a tuple of numbers, found \[1.0\]",
    writing: "changed the context that it was shown|does not change",
    raising: r"raised ZeroDivisionError\(\)",
    nan: "cannot be ordered",
    ragged: "ranks of one context differ in length",
    none: "a rank is a tuple of numbers, found None",
}


@pytest.mark.parametrize("bug", COMPARISONS, ids=lambda bug: bug.__name__)
def test_a_bug_in_a_comparison_is_named(bug: Callable[[TopologyHint, ComparisonContext], Rank]) -> None:
    """Ranks are numbers, of one length, and asking leaves everything as it was."""
    with pytest.raises(AssertionError, match=COMPARISONS[bug]):
        check_comparison(Ranked(bug), NUMA)


@attrs.frozen
class Picking:
    """A picker by a function of what the kubelet would take."""

    by: Callable[[int, int, int], object]

    def pick(self, layout: CpuLayout, available: int, count: int, /) -> int | None:
        taken = KubeletPicker().pick(layout, available, count)
        return cast("int", self.by(taken or 0, available, count)) if taken is not None else None


def three(_taken: int, _available: int, _count: int) -> object:
    """Always the same three."""
    return 0b111


def a_set(_taken: int, _available: int, _count: int) -> object:
    """Two CPUs, and not as a mask."""
    return CPUSet.of(0, 1)


PICKERS: Mapping[str, tuple[Callable[[int, int, int], object], str]] = {
    "one too many": (lambda taken, _available, _count: taken | 1, "took"),
    "one too few": (lambda taken, _available, _count: taken & (taken - 1), "took 0"),
    "not free": (lambda taken, _available, _count: taken << 1, "as well|took"),
    "a set": (lambda taken, _available, _count: CPUSet.from_mask(taken), "as an integer, found CPUSet"),
    "a list": (lambda taken, _available, _count: list(bits(taken)), "as an integer, found list"),
    "negative": (lambda _taken, _available, _count: -1, "a mask as an integer, 0 or more"),
    "by chance": (lambda _taken, available, count: by_chance(available, count), "differently again"),
}


def by_chance(available: int, count: int) -> int:
    """Any CPUs."""
    return sum(1 << cpu for cpu in random.sample(list(bits(available)), count))


@pytest.mark.parametrize("name", PICKERS)
def test_a_bug_in_a_picker_is_named(name: str) -> None:
    """What it took is said beside what it was asked for."""
    random.seed(1)
    layout = CpuLayout.of(machine_from_text("1 socket x 4 cores"))
    wrong, says = PICKERS[name]
    with pytest.raises(AssertionError, match=says):
        check_picker(Picking(wrong), layout)


def test_a_pickers_answer_is_checked_wherever_it_is_asked() -> None:
    """What it answers is no less wrong where CPUs are reserved, or taken by hand."""
    machine = machine_from_text("1 socket x 4 cores")
    greedy = Picking(three)
    with pytest.raises(NodeallocError, match="Picking answered 0-2 when asked for 2 CPUs of 0-3"):
        StaticPolicy.of(machine, reserved=2, picker=greedy)
    with pytest.raises(NodeallocError, match="Picking answered 0-2 when asked for 0 CPUs"):
        StaticPolicy.of(machine, reserved=0, picker=greedy)
    with pytest.raises(NodeallocError, match="Picking answered 0-2 when asked for 2 CPUs"):
        take_cpus(CpuLayout.of(machine), CPUSet.parse("0-3"), 2, picker=greedy)
    with pytest.raises(NodeallocError, match="Picking answered CPUSet"):
        take_cpus(CpuLayout.of(machine), CPUSet.parse("0-3"), 2, picker=Picking(a_set))


def test_workloads_of_the_kit_may_ask_for_fractions() -> None:
    """Numbers and texts mean what they say."""
    asked: Workload = workload("job", {GPU: "250m", "cpu": 2})
    assert asked.claims[0].amounts == {GPU: Quantity.parse("0.25"), "cpu": Quantity.of(2)}
