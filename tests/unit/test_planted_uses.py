"""Bugs that show on a node in use, and honest allocators that are odd; the kit tells them apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from nodealloc.devices import DeviceLedger
from nodealloc.idset import NodeSet, bits, lowest
from nodealloc.podspec import Quantity
from nodealloc.testing.abilities import FakeCpuAllocator
from nodealloc.testing.podfacts import FakePods
from nodealloc.testing.podstatus import FakeSink
from nodealloc.testing.probes import FakeProber
from nodealloc.testing.runtime import FakeContainerRuntime
from nodealloc.testing.topology import FakeAllocator, check_allocator, workload
from nodealloc.testing.volumes import FakeMounter
from nodealloc.topology import (
    Availability,
    Claim,
    Hints,
    NotYet,
    NumaTopology,
    Shortfall,
    TopologyHint,
    Workload,
)
from tests.unit.planted_bugs import GPU, PLANTED, RIGHT, planted, refused

A, F, C, R = "topology.Allocator", FakeAllocator, FakeCpuAllocator, FakeContainerRuntime
NUMA = NumaTopology(nodes=(0, 1), distances={0: {0: 10, 1: 21}, 1: {0: 21, 1: 10}})
UNITS = {0: 0b1111, 1: 0b1111_0000}


def highest(mask: int, count: int) -> int:
    """So many bits of a mask, from the top."""
    return sum(1 << bit for bit in sorted(bits(mask))[-count:])


@planted(A, F, "allocate", "and only . of . came from there")
def forgets_the_affinity_when_it_is_tight(self: Any, c: Any, h: Any) -> Any:
    """Takes low units, wherever they are, once half of all is held."""
    after = RIGHT[F, "allocate"](self, c, h)
    if isinstance(after, F) and after is not self and not c.reuse and self._free.bit_count() <= 4:
        taken = lowest(self._free, after.held[c.owner].bit_count())
        return attrs.evolve(after, held={**after.held, c.owner: taken})
    return after


@planted(A, F, "allocate", "4 example.com/gpu were asked for on any node, and 5 fewer are free")
def one_more_beside_a_whole_node(self: Any, c: Any, h: Any) -> Any:
    """Grants a unit of another node as well where all of one is asked for."""
    after = RIGHT[F, "allocate"](self, c, h)
    if isinstance(after, F) and after is not self and self._wanted(c) == 4:
        free = after._free
        return attrs.evolve(after, held={**after.held, c.owner: after.held[c.owner] | free & -free})
    return after


@planted(A, F, "allocate", "two equal values answer differently")
def looks_at_who_came_last(self: Any, c: Any, h: Any) -> Any:
    """Takes high units where whoever stands last in a mapping holds one unit."""
    after = RIGHT[F, "allocate"](self, c, h)
    last = next(reversed(self.held.values()), 0)
    if isinstance(after, F) and after is not self and not c.reuse and last.bit_count() == 1:
        taken = highest(self._usable(c) & self._on(h.affinity), self._wanted(c))
        return attrs.evolve(after, held={**after.held, c.owner: taken})
    return after


@planted(A, F, "allocate", "a member of kind sidecar gets nothing")
def sidecars_hold_nothing(self: Any, c: Any, h: Any) -> Any:
    """Grants sidecars nothing."""
    return self if c.kind.value == "sidecar" else RIGHT[F, "allocate"](self, c, h)


@planted(A, F, "hints", "held on NUMA nodes 0, and hinted at on NUMA nodes 1")
def what_is_held_is_hinted_at_everywhere(self: Any, cs: Any) -> Any:
    """Hints at each node for what has a place."""
    if len(cs) == 1 and cs[0].owner in self.held:
        return {self.name: [TopologyHint(1 << node, preferred=True) for node in self.units]}
    return RIGHT[F, "hints"](self, cs)


@planted(A, F, "hints", "one hint is listed twice")
def every_hint_twice(self: Any, cs: Any) -> Any:
    """Lists all hints, and all again."""
    found = RIGHT[F, "hints"](self, cs)
    return found if isinstance(found, NotYet) or not found else {self.name: found[self.name] * 2}


@planted(A, F, "hints", r"hints have no preference about example.com/gpu \(None\)")
def no_preference_when_nothing_is_left(self: Any, cs: Any) -> Any:
    """Says None where an empty list belongs."""
    found = RIGHT[F, "hints"](self, cs)
    return found if isinstance(found, NotYet) or not found or found[self.name] else {self.name: None}


@planted(A, F, "allocate", "refused for . example.com/gpu wanted, and reports .")
def wants_what_is_missing(self: Any, c: Any, h: Any) -> Any:
    """Says what is missing instead of what is wanted."""
    after = RIGHT[F, "allocate"](self, c, h)
    return (
        attrs.evolve(after, wanted=after.wanted - after.free, free=0)
        if isinstance(after, Shortfall)
        else after
    )


@planted(A, F, "allocate", "free, and reports .* there")
def counts_other_nodes_as_free(self: Any, c: Any, h: Any) -> Any:
    """Says what is free on all nodes where it was asked on one."""
    after = RIGHT[F, "allocate"](self, c, h)
    if isinstance(after, Shortfall):
        return attrs.evolve(after, free=min(after.wanted - 1, self._free.bit_count()))
    return after


@planted(A, F, "release", "app-1.* took .*init-0.* along")
def the_last_member_takes_the_first_along(self: Any, w: Any, m: Any = None) -> Any:
    """Releases init members with the last main one."""
    after = RIGHT[F, "release"](self, w, m)
    if m != "app-1" or after is self:
        return after
    left = {o: u for o, u in after.held.items() if o.workload != w or not o.member.startswith("init")}
    return attrs.evolve(after, held=left)


@planted(A, F, "allocate", "a claim that is held was granted anew when it was asked for on NUMA nodes 1")
def moves_what_is_held(self: Any, c: Any, h: Any) -> Any:
    """Moves what is held to the node that is named."""
    if c.owner in self.held and h.affinity is not None:
        count = self.held[c.owner].bit_count()
        there = self._on(h.affinity) & (self._free | self.held[c.owner])
        if there.bit_count() >= count:
            return attrs.evolve(self, held={**self.held, c.owner: lowest(there, count)})
    return RIGHT[F, "allocate"](self, c, h)


@planted(A, F, "allocate", "granted anew when it was asked for on NUMA nodes 1")
def refuses_what_is_held_elsewhere(self: Any, c: Any, h: Any) -> Any:
    """Refuses what is held where another node is named."""
    if c.owner in self.held and h.affinity and not self._nodes_of(self.held[c.owner]) & h.affinity:
        return Shortfall(resource=self.name, wanted=self._wanted(c), free=0, nodes=h.affinity)
    return RIGHT[F, "allocate"](self, c, h)


@planted(A, F, "hints", "hinted for all of them, then refused")
def all_together_need_what_the_largest_needs(self: Any, cs: Any) -> Any:
    """Takes the largest of the main members for their sum."""
    if len(cs) < 2:
        return RIGHT[F, "hints"](self, cs)
    wanted = max(self._wanted(c) for c in cs)
    return {self.name: list(self._possible(wanted, self._free))} if wanted else {}


@planted(A, F, "hints", "an empty list says that example.com/gpu is possible nowhere")
def never_two_nodes(self: Any, cs: Any) -> Any:
    """Has no hints for what needs two nodes, and grants it."""
    found = RIGHT[F, "hints"](self, cs)
    if isinstance(found, NotYet) or not found:
        return found
    return {self.name: [hint for hint in found[self.name] if hint.affinity.bit_count() == 1]}


@planted("topology.Reports", F, "availability", "the rest is granted twice")
def reports_what_was_free_before(self: Any, cs: Any) -> Any:
    """Forgets the last grant in what it reports."""
    before = attrs.evolve(self, held=dict(list(self.held.items())[:-1]))
    return RIGHT[F, "availability"](before, cs)


class Sieve(FakeAllocator):
    """Everything is free, whoever holds it."""

    @property
    def _free(self) -> int:
        return sum(self.units.values())

    def __eq__(self, other: object) -> bool:
        """As whoever it was made from."""
        return isinstance(other, FakeAllocator) and (self.units, self.held) == (other.units, other.held)

    __hash__ = None  # type: ignore[assignment]


@planted("topology.Remembers", C, "restored", "fitted beside what was there, and 24 beside what came back")
def grants_twice_after_a_restart(self: Any, grants: Any) -> Any:
    """What came back is held, and free for others."""
    back = RIGHT[C, "restored"](self, grants)
    units = back.allocator.units
    sieve = Sieve(name=units.name, units=units.units, held=units.held)
    return attrs.evolve(back, allocator=attrs.evolve(back.allocator, units=sieve))


@planted("topology.Accounts", C, "holdings", r"less cpu is left on nodes \[1\], and .* listed on nodes \[0\]")
def lists_all_on_the_first_node(self: Any) -> Any:
    """Lists what is held on node 0, wherever it is."""
    return [attrs.evolve(one, nodes=NodeSet.of(0)) for one in RIGHT[C, "holdings"](self)]


@planted("devices.AllocatorKeeper", DeviceLedger, "alter", "says nothing of it")
def swallows_what_a_change_raises(self: Any, change: Any) -> Any:
    """Answers as if nothing had been asked."""
    try:
        return RIGHT[DeviceLedger, "alter"](self, change)
    except ZeroDivisionError:
        return self.current(), self.current()


@planted("runtime.Images", R, "images", "is listed without any")
def lists_no_names(self: Any) -> Any:
    """Lists images by id alone."""
    return [attrs.evolve(one, names=()) for one in RIGHT[R, "images"](self)]


@planted("volumes.Mounter", FakeMounter, "mount", "raised MountError.* where it has to answer")
def mounts_in_the_place_of_another(self: Any, s: Any, t: Any, *, fstype: Any = "", options: Any = ()) -> Any:
    """Takes away what is mounted there."""
    self._mounts[:] = [one for one in self._mounts if one.target != t]
    RIGHT[FakeMounter, "mount"](self, s, t, fstype=fstype, options=options)


@planted("probes.Prober", FakeProber, "probe", r"raised OSError\('refused'\) where it has to answer")
def raises_for_who_is_sick(self: Any, question: Any) -> Any:
    """Raises where it has to answer."""
    reply = RIGHT[FakeProber, "probe"](self, question)
    if not reply.kind.is_success:
        raise OSError("refused")
    return reply


@planted("podfacts.PodSource", FakePods, "get", r"raised KeyError\('no such pod'\) where it has to answer")
def knows_no_stranger(self: Any, uid: str) -> Any:
    """Raises for a pod that it does not know."""
    found = RIGHT[FakePods, "get"](self, uid)
    if found is None:
        raise KeyError(uid)
    return found


LISTED: dict[int, Any] = {}


@planted("podfacts.PodSource", FakePods, "uids", "others when it is asked again")
def lists_once(self: Any) -> Any:
    """Has one iterator for everybody who asks."""
    return LISTED.setdefault(id(self), iter(tuple(RIGHT[FakePods, "uids"](self))))


@planted("podstatus.Sink", FakeSink, "told", r"raised ValueError\('said before'\) where it has to answer")
def takes_nothing_twice(self: Any, uid: str, status: Any) -> None:
    """Raises for what it was told before, as after a restart."""
    if self.statuses.get(uid) == status:
        raise ValueError("said before")
    RIGHT[FakeSink, "told"](self, uid, status)


@pytest.mark.parametrize("name", [name for name, bug in PLANTED.items() if bug.broken.__module__ == __name__])
def test_what_shows_in_use_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check passes without the bug, and with it says which promise is broken."""
    (tmp_path / "again").mkdir()
    refused(PLANTED[name], tmp_path, monkeypatch)


@attrs.frozen(kw_only=True)
class Reserving(FakeAllocator):
    """Never gives out the lowest unit of a node."""

    def _rest(self) -> FakeAllocator:
        units = {node: mask & (mask - 1) for node, mask in self.units.items()}
        return FakeAllocator(name=self.name, units=units, held=self.held)

    def hints(self, claims: Sequence[Claim], /) -> Hints | NotYet:
        """Of the rest."""
        return self._rest().hints(claims)

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> FakeAllocator | Shortfall | NotYet:
        """Of the rest."""
        after = self._rest().allocate(claim, affinity)
        return attrs.evolve(self, held=after.held) if isinstance(after, FakeAllocator) else after

    def availability(self, claims: Sequence[Claim], /) -> Sequence[Availability]:
        """Of the rest."""
        return self._rest().availability(claims)


@attrs.frozen(kw_only=True)
class Modest(FakeAllocator):
    """Prefers single nodes, and no set of several."""

    def hints(self, claims: Sequence[Claim], /) -> Hints | NotYet:
        """The same hints."""
        found: Any = super(Modest, self).hints(claims)
        if isinstance(found, NotYet) or not found:
            return found
        hints = [TopologyHint(one.affinity, one.affinity.bit_count() == 1) for one in found[self.name]]
        return {self.name: hints}


@attrs.frozen(kw_only=True)
class Narrow(FakeAllocator):
    """Hints at the narrowest sets, and at no others."""

    def hints(self, claims: Sequence[Claim], /) -> Hints | NotYet:
        """Fewer hints."""
        found: Any = super(Narrow, self).hints(claims)
        if isinstance(found, NotYet) or not found:
            return found
        least = min((one.affinity.bit_count() for one in found[self.name]), default=0)
        return {self.name: [one for one in found[self.name] if one.affinity.bit_count() == least]}


@attrs.frozen(kw_only=True)
class Indifferent(FakeAllocator):
    """Has no preference about nodes."""

    def hints(self, claims: Sequence[Claim], /) -> Hints | NotYet:
        """None for what it serves."""
        found: Any = super(Indifferent, self).hints(claims)
        return found if isinstance(found, NotYet) or not found else {self.name: None}


@attrs.frozen(kw_only=True)
class Rounding(FakeAllocator):
    """Grants whole nodes."""

    def _rounded(self, claim: Claim) -> Claim:
        size = max(mask.bit_count() for mask in self.units.values())
        wanted = -(-self._wanted(claim) // size) * size
        return attrs.evolve(claim, amounts={self.name: Quantity.of(wanted)}) if wanted else claim

    def hints(self, claims: Sequence[Claim], /) -> Hints | NotYet:
        """For whole nodes."""
        return super(Rounding, self).hints([self._rounded(claim) for claim in claims])

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> FakeAllocator | Shortfall | NotYet:
        """Of whole nodes."""
        after = super(Rounding, self).allocate(self._rounded(claim), affinity)
        return attrs.evolve(after, wanted=self._wanted(claim)) if isinstance(after, Shortfall) else after


@attrs.frozen(kw_only=True)
class Paired(FakeAllocator):
    """Refuses odd amounts, as whole cores are."""

    def _is_odd(self, claims: Iterable[Claim]) -> bool:
        return any(self._wanted(claim) % 2 for claim in claims)

    def hints(self, claims: Sequence[Claim], /) -> Hints | NotYet:
        """Nowhere for odd amounts."""
        return {self.name: []} if self._is_odd(claims) else super(Paired, self).hints(claims)

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> FakeAllocator | Shortfall | NotYet:
        """None of odd amounts."""
        if not self._is_odd([claim]):
            return super(Paired, self).allocate(claim, affinity)
        return Shortfall(resource=self.name, wanted=self._wanted(claim), free=0, nodes=affinity.affinity)


HONEST: dict[type[FakeAllocator], dict[str, bool]] = {
    Reserving: {},
    Modest: {},
    Narrow: {},
    Indifferent: {},
    Rounding: {"exact_hints": False},
    Paired: {"exact_hints": False},
}
JOBS = {
    "even": workload("job", {GPU: 2}, {GPU: 2}, init=[{GPU: 2}]),
    "odd": workload("job", {GPU: 1}, {GPU: 3}, init=[{GPU: 1}]),
}


@pytest.mark.parametrize("asked", JOBS.values(), ids=JOBS)
@pytest.mark.parametrize("kind", HONEST, ids=lambda kind: kind.__name__)
def test_honest_ones_that_are_odd_pass(kind: type[FakeAllocator], asked: Workload) -> None:
    """Whoever keeps every promise may go about it in a way of its own."""
    check_allocator(kind(name=GPU, units=UNITS), asked, NUMA, **HONEST[kind])
