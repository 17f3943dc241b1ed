"""A fake allocator, and the check that any allocator can be held to.

>>> from nodealloc.testing.topology import FakeAllocator
>>> gpu = FakeAllocator.of("example.com/gpu", {0: 2, 1: 2})
>>> gpu.free_on(0)
2
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import TypeVar

import attrs

from nodealloc.idset import bits, lowest
from nodealloc.podspec import Quantity
from nodealloc.topology import (
    Allocator,
    Availability,
    Claim,
    ClaimKind,
    Comparison,
    Hints,
    NotReady,
    NumaTopology,
    Owner,
    Policy,
    PolicyName,
    Reports,
    Scene,
    Shortfall,
    TopologyHint,
    Workload,
    merge,
    peak,
)

__all__ = ["FakeAllocator", "check_allocator", "check_comparison", "check_reports", "workload"]

T = TypeVar("T")


def workload(key: str, /, *amounts: Mapping[str, int], init: Sequence[Mapping[str, int]] = ()) -> Workload:
    """A workload of claims named `init-0`…, `app-0`…, for tests.

    Args:
        key: Its key.
        amounts: What each main member asks for, in whole units.
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
    units: Mapping[int, int]
    held: Mapping[Owner, int] = attrs.field(factory=dict[Owner, int])
    waiting_for: str = ""

    @classmethod
    def of(cls, resource: str, capacity: Mapping[int, int], /) -> FakeAllocator:
        """With so many free units on each node."""
        units: dict[int, int] = {}
        first = 0
        for node, count in sorted(capacity.items()):
            units[node] = ((1 << count) - 1) << first
            first += count
        return cls(name=resource, units=units)

    def free_on(self, node: int, /) -> int:
        """How many units of a node nobody holds."""
        return (self.units.get(node, 0) & self._free).bit_count()

    def hints(self, claims: Sequence[Claim], /) -> Hints | NotReady:
        """See `Allocator.hints`."""
        wanted = peak(claims, self._wanted)
        if not wanted:
            return {}
        if self.waiting_for:
            return NotReady(resource=self.name, reason=self.waiting_for)
        held = [self.held[claim.owner] for claim in claims if claim.owner in self.held]
        if len(held) == len(claims) == 1:
            return {self.name: [TopologyHint(self._nodes_of(held[0]), preferred=True)]}
        usable = self._usable(claims[0]) if len(claims) == 1 else self._free | _union(held)
        return {self.name: list(self._possible(wanted, usable))}

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> FakeAllocator | Shortfall | NotReady:
        """See `Allocator.allocate`; what may be reused is taken first, then low units."""
        wanted = self._wanted(claim)
        if not wanted or claim.owner in self.held:
            return self
        if self.waiting_for:
            return NotReady(resource=self.name, reason=self.waiting_for)
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
) -> None:
    """Hold an allocator to what admission relies on, for one workload.

    The workload should be one that `allocator` can grant some of and that it
    does not hold yet. Checked for each claim in turn, with the earlier ones
    granted: asking and allocating change nothing and answer alike when
    repeated; hints stay inside the machine; a held claim is granted again as it
    is; what was granted can be given back; values survive pickling.

    Args:
        allocator: The one to check.
        asked: Claims to check it with.
        numa: The machine that its hints have to stay inside.
        every_hint_grants: Whether every hint has to be one that `allocate`
            accepts; pass False for a policy that hints more than it grants.
        exact_release: Whether releasing one member restores the value to the
            last unit; pass False for books that give back elsewhere than they
            took. Releasing the whole workload has to, always.

    Raises:
        AssertionError: A promise is broken; the text says which, for which claim.
        MaskOutsideError: A hint names a node that the machine has not.
        HintError: A hint is none.
    """
    assert allocator.name, "an allocator needs a name"
    _check_unknown_release(allocator)
    _check_hints(allocator, asked.claims, numa)
    before = allocator
    for claim in asked.claims:
        before = _check_claim(before, claim, numa, strict=every_hint_grants, exact=exact_release)
    emptied = before.release(asked.key)
    assert emptied == allocator, (
        f"{allocator.name}: releasing {asked.key} did not restore the value before it"
    )
    _check_unknown_release(before)


def check_reports(reports: Reports, asked: Workload, numa: NumaTopology, /) -> None:
    """Hold what an allocator reports to what refusals are made of.

    Args:
        reports: An `Allocator` with this ability.
        asked: Claims that ask for something of it.
        numa: The machine that it speaks of.

    Raises:
        AssertionError: A promise is broken; the text says which.
    """
    entries = reports.availability(asked.claims)
    assert entries, "nothing is reported of what the claims ask for"
    assert list(entries) == list(reports.availability(asked.claims)), "answered differently the second time"
    named = {resource for claim in asked.claims for resource in claim.amounts}
    for one in entries:
        assert one.resource in named, f"{one.resource} was not asked for"
        assert one.wanted > 0, f"{one.resource}: an entry is for what is wanted, found {one.wanted}"
        for node in {*one.free, *one.allocatable}:
            assert node == -1 or numa.mask >> node & 1, f"{one.resource}: the machine has no NUMA node {node}"
            free, most = one.free.get(node, 0), one.allocatable.get(node, 0)
            assert 0 <= free <= most, f"{one.resource}, node {node}: {free} free of {most}"
    assert len({one.resource for one in entries}) == len(entries), "a resource is reported twice"


def check_comparison(comparison: Comparison, numa: NumaTopology, /) -> None:
    """Hold a comparison to what the merge relies on, over every set of at most eight nodes.

    Raises:
        AssertionError: A promise is broken; the text says which.
    """
    nodes = numa.nodes[:8]
    taken = {node: place / len(nodes) for place, node in enumerate(nodes)}
    again = _pickled(comparison)
    for preferred in (True, False):
        for scene in (Scene(numa=numa, narrowest=1), Scene(numa=numa, narrowest=2, allocated=taken)):
            ranks = {
                mask: comparison.rank(TopologyHint(mask, preferred=preferred), scene)
                for width in range(1, len(nodes) + 1)
                for mask in (sum(1 << node for node in chosen) for chosen in combinations(nodes, width))
            }
            assert len({len(rank) for rank in ranks.values()}) == 1, "ranks of one scene differ in length"
            for mask, rank in ranks.items():
                hint = TopologyHint(mask, preferred=preferred)
                assert all(one == one for one in rank), f"{hint}: {rank} cannot be ordered"  # noqa: PLR0124
                assert comparison.rank(hint, scene) == rank, f"{hint}: ranked differently the second time"
                assert again.rank(hint, scene) == rank, f"{hint}: pickling changed the rank"


def _check_claim(
    before: Allocator, claim: Claim, numa: NumaTopology, *, strict: bool, exact: bool
) -> Allocator:
    where = f"{before.name}, claim {claim.owner.member}"
    hints = _check_hints(before, (claim,), numa)
    tried = [TopologyHint(affinity=None, preferred=False)]
    if not isinstance(hints, NotReady):
        tried += [hint for options in hints.values() for hint in options or ()]
    after = before
    for hint in tried:
        answer = _twice(before, f"{where}, allocate on {hint}", partial(before.allocate, claim, hint))
        if isinstance(answer, (Shortfall, NotReady)):
            offered = hint.affinity is not None and not isinstance(answer, NotReady)
            assert not (offered and strict), f"{where}: hinted {hint}, then refused it: {answer}"
            continue
        if not hints and answer == before:
            continue
        _check_granted(before, answer, claim, where, exact=exact)
        after = answer
    return after


def _check_granted(before: Allocator, after: Allocator, claim: Claim, where: str, *, exact: bool) -> None:
    key, member = claim.owner.workload, claim.owner.member
    again = after.allocate(claim, TopologyHint(affinity=None, preferred=False))
    assert again == after, f"{where}: a claim that is held was granted anew"
    assert _pickled(after) == after, f"{where}: pickling changed the value"
    if exact and not claim.reuse:  # what was lent may have changed hands for good
        assert after.release(key, member) == before, f"{where}: releasing it did not restore the value"
    assert after.release(key, "no such") == after, f"{where}: releasing an unknown member changed something"


def _check_hints(allocator: Allocator, claims: Sequence[Claim], numa: NumaTopology) -> Hints | NotReady:
    where = f"{allocator.name}, hints"
    hints = _twice(allocator, where, lambda: allocator.hints(claims))
    if not isinstance(hints, NotReady):
        # The merge refuses masks outside the machine and answers that are no hints.
        merge(Policy(name=PolicyName.BEST_EFFORT), [hints], numa, names=[allocator.name])
    return hints


def _check_unknown_release(allocator: Allocator) -> None:
    same = allocator.release("no such workload")
    assert same == allocator, f"{allocator.name}: releasing an unknown workload changed something"


def _twice(allocator: Allocator, where: str, call: Callable[[], T]) -> T:
    """The call's answer, which must not change the allocator and must be the same again."""
    before = _pickled(allocator)
    first, second = call(), call()
    assert first == second, f"{where}: answered differently the second time"
    assert allocator == before, f"{where}: changed the allocator that was asked"
    return first


def _pickled(value: T) -> T:
    copy: T = pickle.loads(pickle.dumps(value))  # noqa: S301
    return copy
