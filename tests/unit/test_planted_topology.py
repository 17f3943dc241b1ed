"""Allocators and what they can do besides, wrong in what seldom shows; each is refused by the kit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from nodealloc.idset import CPUSet, bits, lowest
from nodealloc.testing.abilities import FakeCpuAllocator
from nodealloc.testing.topology import FakeAllocator
from nodealloc.topology import NotYet, Shortfall, TopologyHint
from tests.unit.planted_bugs import PLANTED, RIGHT, planted, refused

ALLOCATE, HINTS, RELEASE = (RIGHT[FakeAllocator, name] for name in ("allocate", "hints", "release"))
SHOWN = RIGHT[FakeAllocator, "availability"]
CPUS = {name: RIGHT[FakeCpuAllocator, name] for name in ("remembered", "restored", "holdings", "capacity")}
CPUS |= {name: RIGHT[FakeCpuAllocator, name] for name in ("confinement", "adopted")}
ANY = TopologyHint(affinity=None, preferred=False)


def granted(before: Any, answer: Any) -> bool:
    """Whether something was taken."""
    return isinstance(answer, FakeAllocator) and answer != before


@planted(
    "topology.Allocator",
    FakeAllocator,
    "availability",
    "1 were granted and 0 fewer are free: the rest is granted twice",
)
def one_more_once_held(self: Any, claims: Any) -> Any:
    """One too many is free, once somebody holds something."""
    entries = SHOWN(self, claims)
    if not self.held:
        return entries
    return [
        attrs.evolve(one, free={n: min(c + 1, one.allocatable[n]) for n, c in one.free.items()})
        for one in entries
    ]


@planted(
    "topology.Allocator",
    FakeAllocator,
    "availability",
    "2 were asked for on NUMA nodes 0, and 3 fewer are free there",
)
def wanted_one_less(self: Any, claims: Any) -> Any:
    """Says that one less is wanted."""
    return [attrs.evolve(one, wanted=max(1, one.wanted - 1)) for one in SHOWN(self, claims)]


@planted(
    "topology.Reports",
    FakeAllocator,
    "availability",
    "2 are said to be wanted by all together, the main members want",
)
def wanted_by_the_first(self: Any, claims: Any) -> Any:
    """Of two members it counts one."""
    most = max((self._wanted(one) for one in claims), default=0)
    return [attrs.evolve(one, wanted=most) for one in SHOWN(self, claims)]


@planted("topology.Allocator", FakeAllocator, "release", "releasing it did not restore the value")
def capacity_comes_back_twice(self: Any, w: Any, m: Any = None) -> Any:
    """What is given back is one unit more than was taken."""
    after = RELEASE(self, w, m)
    if after == self:
        return after
    more = max(unit for units in self.units.values() for unit in bits(units)) + 1
    return attrs.evolve(after, units={**after.units, 0: after.units[0] | 1 << more})


@planted(
    "topology.Allocator",
    FakeAllocator,
    "allocate",
    "1 were granted and 0 fewer are free: the rest is granted twice",
)
def twice_after_a_release(self: Any, c: Any, h: Any) -> Any:
    """Once somebody has gone, whoever comes shares with who is left."""
    answer = ALLOCATE(self, c, h)
    first = [owner.workload for owner in self.held]
    if granted(self, answer) and first and first[0] != "check-0" and len(first) > 1:
        there = next(iter(self.held.values()))
        if there.bit_count() >= self._wanted(c):
            return attrs.evolve(self, held={**self.held, c.owner: lowest(there, self._wanted(c))})
    return answer


@planted("topology.Allocator", FakeAllocator, "allocate", "two equal values answer differently")
def by_order_of_holders(self: Any, c: Any, h: Any) -> Any:
    """Takes from the top when the one who came last holds little; equal values answer differently."""
    answer = ALLOCATE(self, c, h)
    if not granted(self, answer) or len(self.held) < 2:
        return answer
    last = self.held[list(self.held)[-1]]
    if last & 1:
        free = self._free & self._on(h.affinity)
        top = sum(1 << unit for unit in sorted(bits(free), reverse=True)[: self._wanted(c)])
        return attrs.evolve(self, held={**self.held, c.owner: top})
    return answer


@planted(
    "topology.Allocator",
    FakeAllocator,
    "allocate",
    "granted otherwise when check-nobody-has-it is asked for as",
)
def by_order_of_amounts(self: Any, c: Any, h: Any) -> Any:
    """Takes from the top when its resource is not the first one named."""
    answer = ALLOCATE(self, c, h)
    if not granted(self, answer) or next(iter(c.amounts)) == self.name:
        return answer
    free = self._free & self._on(h.affinity)
    top = sum(1 << unit for unit in sorted(bits(free), reverse=True)[: self._wanted(c)])
    return attrs.evolve(self, held={**self.held, c.owner: top})


@planted(
    "topology.Allocator",
    FakeAllocator,
    "hints",
    "NUMA nodes 0 is not preferred, and nothing is narrower than one",
)
def prefers_the_second_best(self: Any, cs: Any) -> Any:
    """Prefers what is one node wider than needed."""
    found = HINTS(self, cs)
    if isinstance(found, NotYet) or not found:
        return found
    least = min((one.affinity.bit_count() for one in found[self.name]), default=0)
    return {
        self.name: [one._replace(preferred=one.affinity.bit_count() == least + 1) for one in found[self.name]]
    }


@planted(
    "topology.Allocator",
    FakeAllocator,
    "hints",
    "NUMA nodes 1 is not preferred, and nothing is narrower than one",
)
def prefers_the_lowest_alone(self: Any, cs: Any) -> Any:
    """Of equally narrow ones it prefers the first."""
    found = HINTS(self, cs)
    if isinstance(found, NotYet) or not found:
        return found
    return {self.name: [one._replace(preferred=at == 0) for at, one in enumerate(found[self.name])]}


@planted("topology.Allocator", FakeAllocator, "hints", r"example\.com/gpu, claim app-0 among 2 workloads")
def hints_one_unit_beyond(self: Any, cs: Any) -> Any:
    """Hints at a node that lacks one unit."""
    found = HINTS(self, cs)
    if isinstance(found, NotYet) or not found or len(cs) != 1:
        return found
    short = [
        TopologyHint(1 << node, preferred=True)
        for node in self.units
        if self.free_on(node) + 1 == self._wanted(cs[0]) and cs[0].owner not in self.held
    ]
    known = {one.affinity for one in found[self.name]}
    return {self.name: [*(one for one in short if one.affinity not in known), *found[self.name]]}


@planted(
    "topology.Allocator",
    FakeAllocator,
    "hints",
    r"example\.com/gpu, claim app-1 with all of job on NUMA nodes 0",
)
def hints_for_the_first_claim(self: Any, cs: Any) -> Any:
    """For a whole workload it looks at one member."""
    return HINTS(self, cs[:1]) if len(cs) > 1 else HINTS(self, cs)


@planted(
    "topology.Allocator",
    FakeAllocator,
    "hints",
    "answer with a Shortfall where there is too little, with NotYet",
)
def hints_need_somebody(self: Any, cs: Any) -> Any:
    """Breaks when nobody asks."""
    assert cs[0] is not None
    return HINTS(self, cs)


@planted(
    "topology.Allocator",
    FakeAllocator,
    "hints",
    "answered a list_iterator where a list or CountedHints belongs",
)
def hints_are_used_up(self: Any, cs: Any) -> Any:
    """Answers with what can be read once."""
    found = HINTS(self, cs)
    return found if isinstance(found, NotYet) or not found else {self.name: iter(found[self.name])}


@planted(
    "topology.Allocator", FakeAllocator, "hints", "NUMA nodes 0 is listed as preferred and as not preferred"
)
def the_same_hint_twice(self: Any, cs: Any) -> Any:
    """Lists one node twice, once preferred and once not."""
    found = HINTS(self, cs)
    if isinstance(found, NotYet) or not found or not found[self.name]:
        return found
    first = found[self.name][0]
    return {self.name: [*found[self.name], first._replace(preferred=not first.preferred)]}


@planted("topology.Allocator", FakeAllocator, "serves", r"says that it serves example\.com/gpu-check")
def serves_by_beginning(self: Any, resource: str) -> bool:
    """Takes whatever begins like its own for its own."""
    return resource.startswith(self.name)


@planted(
    "topology.Allocator", FakeAllocator, "_wanted", r"example\.com/gpu, a claim of example\.com/gpu-check"
)
def counts_by_beginning(self: Any, c: Any) -> int:
    """Counts what begins like its own."""
    return sum(amount.value for name, amount in c.amounts.items() if name.startswith(self.name))


@planted(
    "topology.Allocator", FakeAllocator, "_wanted", r"example\.com/gpu, a claim of check\.example\.com/gpu"
)
def counts_whatever_ends_alike(self: Any, c: Any) -> int:
    """Counts what has the same name in another domain."""
    short = self.name.rpartition("/")[2]
    return sum(amount.value for name, amount in c.amounts.items() if name.endswith(short))


@planted(
    "topology.Allocator",
    FakeAllocator,
    "release",
    "releasing the member '' of job, which it has not, changed",
)
def no_name_is_everybody(self: Any, w: Any, m: Any = None) -> Any:
    """Takes a member without a name for the whole workload."""
    return RELEASE(self, w, m or None)


@planted(
    "topology.Allocator", FakeAllocator, "release", "job holds something, and releasing '' changed something"
)
def no_workload_is_everybody(self: Any, w: Any, m: Any = None) -> Any:
    """Takes a workload without a name for all."""
    return RELEASE(self, w, m) if w else attrs.evolve(self, held={})


@planted("topology.Allocator", FakeAllocator, "release", "granting .* changed how much .* holds")
def releases_by_ending(self: Any, w: Any, m: Any = None) -> Any:
    """Releases my-job with job."""
    left = {o: u for o, u in self.held.items() if not o.workload.endswith(w) or m not in {None, o.member}}
    return self if len(left) == len(self.held) else attrs.evolve(self, held=left)


@planted(
    "topology.Allocator", FakeAllocator, "release", "holds nothing was released, and with it that of job"
)
def member_of_anybody(self: Any, w: Any, m: Any = None) -> Any:
    """Releases the member of that name of every workload."""
    if m is None:
        return RELEASE(self, w, m)
    left = {o: u for o, u in self.held.items() if o.member != m}
    return self if len(left) == len(self.held) else attrs.evolve(self, held=left)


@planted("topology.Allocator", FakeAllocator, "release", "releasing job did not restore the value before it")
def forgets_the_others_of_a_name(self: Any, w: Any, m: Any = None) -> Any:
    """Releases one member of a workload when told to release all."""
    if m is not None:
        return RELEASE(self, w, m)
    gone = next((o for o in self.held if o.workload == w), None)
    left = {o: u for o, u in self.held.items() if o != gone}
    return self if gone is None else attrs.evolve(self, held=left)


@planted("topology.Allocator", FakeAllocator, "allocate", r"example\.com/gpu, claim app-0 among 2 workloads")
def any_node_is_the_first(self: Any, c: Any, h: Any) -> Any:
    """On any node means on node 0."""
    return ALLOCATE(self, c, h if h.affinity is not None else TopologyHint(1, preferred=False))


@planted(
    "topology.Allocator",
    FakeAllocator,
    "allocate",
    "hinted NUMA nodes 0-1, then refused it",
)
def lowest_node_of_several(self: Any, c: Any, h: Any) -> Any:
    """Of a set of nodes it looks at the lowest."""
    wide = h.affinity is not None and h.affinity.bit_count() > 1
    return ALLOCATE(self, c, TopologyHint(h.affinity & -h.affinity, preferred=False) if wide else h)


@planted(
    "topology.Allocator",
    FakeAllocator,
    "allocate",
    "the members of check-lent want 2 at their peak, and 1 fewer are",
)
def lends_to_two(self: Any, c: Any, h: Any) -> Any:
    """Lends the same units of an init member to two main members."""
    lent = 0
    for owner, units in self.held.items():
        if owner.workload == c.owner.workload and owner.member in c.reuse:
            lent |= units
    lent &= self._on(h.affinity)
    if c.owner in self.held or not lent or lent.bit_count() < self._wanted(c) or not self._wanted(c):
        return ALLOCATE(self, c, h)
    return attrs.evolve(self, held={**self.held, c.owner: lowest(lent, self._wanted(c))})


@planted(
    "topology.Allocator",
    FakeAllocator,
    "allocate",
    "the members of check-lent want 2 at their peak, and 1 fewer are",
)
def lends_of_every_member(self: Any, c: Any, h: Any) -> Any:
    """Lends what a member holds that has not ended."""
    lent = 0
    for owner, units in self.held.items():
        if owner.workload == c.owner.workload:
            lent |= units
    lent &= self._on(h.affinity)
    if c.owner in self.held or not self._wanted(c) or lent.bit_count() < self._wanted(c):
        return ALLOCATE(self, c, h)
    return attrs.evolve(self, held={**self.held, c.owner: lowest(lent, self._wanted(c))})


@planted(
    "topology.Allocator",
    FakeAllocator,
    "allocate",
    "asked on any node, and refused in the name of NUMA nodes 5",
)
def tells_of_other_nodes(self: Any, c: Any, h: Any) -> Any:
    """Refuses in the name of nodes that nobody asked about."""
    answer = ALLOCATE(self, c, h)
    return attrs.evolve(answer, nodes=1 << 5) if isinstance(answer, Shortfall) else answer


@planted(
    "topology.Allocator", FakeAllocator, "allocate", r"refused for 10 example\.com/gpu, and 9 were asked for"
)
def tells_of_less_wanted(self: Any, c: Any, h: Any) -> Any:
    """Says in a refusal that one more is wanted than was asked for."""
    answer = ALLOCATE(self, c, h)
    return attrs.evolve(answer, wanted=answer.wanted + 1) if isinstance(answer, Shortfall) else answer


@planted(
    "topology.Allocator",
    FakeAllocator,
    "allocate",
    "3 were granted and 2 fewer are free",
)
def by_name_of_the_workload(self: Any, c: Any, h: Any) -> Any:
    """Whoever has a long name gets one unit less."""
    answer = ALLOCATE(self, c, h)
    if granted(self, answer) and len(c.owner.workload) > 9 and self._wanted(c) > 1:
        units = answer.held[c.owner]
        return attrs.evolve(answer, held={**answer.held, c.owner: units & (units - 1)})
    return answer


@planted("topology.Allocator", FakeAllocator, "allocate", r"example\.com/gpu, claim init-0, example\.com/gpu")
def the_largest_is_short(self: Any, c: Any, h: Any) -> Any:
    """Who takes all there is gets all but one."""
    answer = ALLOCATE(self, c, h)
    if granted(self, answer) and not answer._free and self._wanted(c) > 1:
        units = answer.held[c.owner]
        return attrs.evolve(answer, held={**answer.held, c.owner: units & (units - 1)})
    return answer


@planted(
    "topology.Allocator",
    FakeAllocator,
    "allocate",
    "then refused it: Shortfall",
)
def refuses_the_last_unit(self: Any, c: Any, h: Any) -> Any:
    """Keeps one unit for itself."""
    answer = ALLOCATE(self, c, h)
    if granted(self, answer) and not answer._free:
        return Shortfall(resource=self.name, wanted=self._wanted(c), free=self._wanted(c) - 1)
    return answer


@planted(
    "topology.Allocator", FakeAllocator, "allocate", r"11 of example\.com/gpu were granted, and there are 8"
)
def fifth_workload_is_forgotten(self: Any, c: Any, h: Any) -> Any:
    """Holds four workloads, and forgets the oldest then."""
    answer = ALLOCATE(self, c, h)
    if granted(self, answer) and len({o.workload for o in answer.held}) > 4:
        oldest = next(iter(answer.held)).workload
        return RELEASE(answer, oldest)
    return answer


@planted("topology.Remembers", FakeCpuAllocator, "restored", "what came back is remembered in other words")
def swaps_two_members(self: Any, rows: Any) -> Any:
    """Gives each what the next one held."""
    turned = {}
    for key, row in rows.items():
        names = list(row)
        turned[key] = dict(zip(names, [row[name] for name in [*names[1:], *names[:1]]], strict=True))
    return CPUS["restored"](self, turned)


@planted("topology.Remembers", FakeCpuAllocator, "restored", "half/app was confined to")
def loses_the_last_cpu(self: Any, rows: Any) -> Any:
    """One CPU is missing of the machine after a restart."""
    back = CPUS["restored"](self, rows)
    units = back.allocator.units
    top = max(units.units)
    less = {**units.units, top: units.units[top] & ~(1 << (units.units[top].bit_length() - 1))}
    return attrs.evolve(back, allocator=attrs.evolve(back.allocator, units=attrs.evolve(units, units=less)))


@planted("topology.Remembers", FakeCpuAllocator, "remembered", "half holds something, and '' is remembered")
def remembers_by_beginning(self: Any, workload: str) -> Any:
    """Answers for every workload whose name begins so."""
    return next(
        (CPUS["remembered"](self, o.workload) for o in self.units.held if o.workload.startswith(workload)),
        CPUS["remembered"](self, workload),
    )


@planted(
    "topology.Remembers", FakeCpuAllocator, "restored", "job-check-twin is not restored, and nobody is told"
)
def gives_up_in_silence(self: Any, rows: Any) -> Any:
    """Drops what cannot be had, and tells nobody."""
    return attrs.evolve(CPUS["restored"](self, rows), evicted={})


@planted(
    "topology.Remembers",
    FakeCpuAllocator,
    "restored",
    r"job is said to be evicted \(it went\), and holds something",
)
def tells_of_an_eviction_alone(self: Any, rows: Any) -> Any:
    """Says that somebody went who holds it still."""
    back = CPUS["restored"](self, rows)
    return attrs.evolve(
        back,
        evicted={**back.evicted, **dict.fromkeys(list(rows)[:1], "it went")}
        if len(rows) == 1
        else back.evicted,
    )


@planted("topology.Remembers", FakeCpuAllocator, "remembered", "what is remembered cannot be written as JSON")
def remembers_in_numbers(self: Any, workload: str) -> Any:
    """Has numbers for names, which JSON makes texts of."""
    row = CPUS["remembered"](self, workload)
    return row and {**row, 7: {"cpus": "", "sharedMilliCpu": 0}}


@planted(
    "topology.Accounts",
    FakeCpuAllocator,
    "holdings",
    r"Owner\(workload='half', member='app'\) is listed with 2 cpu, and",
)
def swaps_who_holds_what(self: Any) -> Any:
    """Lists each with what the next one holds."""
    rows = list(CPUS["holdings"](self))
    return [attrs.evolve(one, owner=rows[at - 1].owner) for at, one in enumerate(rows)]


@planted("topology.Accounts", FakeCpuAllocator, "holdings", "5 cpu are held, 3 less are left")
def lists_one_too_many(self: Any) -> Any:
    """Counts one more than is held, and names none."""
    return [attrs.evolve(one, amount=one.amount + 1, cpus=CPUSet()) for one in CPUS["holdings"](self)]


@planted("topology.Accounts", FakeCpuAllocator, "capacity", "3 cpu are held, 2 less are left")
def one_more_is_left(self: Any) -> Any:
    """Counts one CPU too many as left, once somebody holds some."""
    rows = CPUS["capacity"](self)
    return [attrs.evolve(one, available=min(one.allocatable, one.available + 1)) for one in rows]


@planted("topology.Accounts", FakeCpuAllocator, "capacity", "3 cpu are held, 2 less are left")
def holders_are_counted(self: Any) -> Any:
    """What is left falls by one for each holder."""
    return [
        attrs.evolve(one, available=one.allocatable - (len(self.units.held) if one.node == 0 else 0))
        for one in CPUS["capacity"](self)
    ]


@planted(
    "topology.Confines",
    FakeCpuAllocator,
    "confinement",
    r"Owner\(workload='check-confines', member='stranger'\) may run on",
)
def may_run_on_all(self: Any, owner: Any) -> Any:
    """Who holds nothing of its own may run everywhere."""
    where = CPUS["confinement"](self, owner)
    return (
        attrs.evolve(where, cpus=type(where.exclusive).from_mask(self._all)) if not where.exclusive else where
    )


@planted(
    "topology.Confines",
    FakeCpuAllocator,
    "confinement",
    r"Owner\(workload='job', member='app-0'\) was granted CPUs 0-1, and",
)
def confined_to_the_sibling(self: Any, owner: Any) -> Any:
    """Members of one workload get each other's CPUs."""
    mine = [o for o in self.units.held if o.workload == owner.workload]
    if owner in mine and len(mine) > 1:
        return CPUS["confinement"](self, mine[mine.index(owner) - 1])
    return CPUS["confinement"](self, owner)


@planted(
    "topology.Confines", FakeCpuAllocator, "confinement", r"nobody holds anything, and Owner\(workload='job',"
)
def confined_to_nothing(self: Any, owner: Any) -> Any:
    """Leaves who shares without any CPU."""
    where = CPUS["confinement"](self, owner)
    return where if where.exclusive else attrs.evolve(where, cpus=type(where.exclusive)())


@planted(
    "topology.Adopts",
    FakeCpuAllocator,
    "adopted",
    r"Owner\(workload='job', member='app-0'\) holds CPUs 4096-4097,",
)
def adopts_what_is_not_there(self: Any, claim: Any, where: Any) -> Any:
    """Takes in CPUs that the machine has not."""
    if where.exclusive and where.exclusive.mask & ~self._all:
        units = attrs.evolve(self.units, held={**self.units.held, claim.owner: where.exclusive.mask})
        return attrs.evolve(self, units=units)
    return CPUS["adopted"](self, claim, where)


@planted(
    "topology.Adopts",
    FakeCpuAllocator,
    "adopted",
    r"Owner\(workload='job', member='app-0'\) holds CPUs 4096-4097,",
)
def adopts_as_many_elsewhere(self: Any, claim: Any, where: Any) -> Any:
    """Holds as many CPUs as run, the lowest that are free."""
    if not where.exclusive:
        return self
    free = self._all & ~sum(self.units.held.values())
    taken = lowest(free, len(where.exclusive))
    return CPUS["adopted"](
        self, claim, attrs.evolve(where, exclusive=type(where.exclusive).from_mask(taken), cpus=None)
    )


@pytest.mark.parametrize("name", [name for name, bug in PLANTED.items() if bug.broken.__module__ == __name__])
def test_what_seldom_shows_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check passes without the bug, and with it says which promise is broken."""
    (tmp_path / "again").mkdir()
    refused(PLANTED[name], tmp_path, monkeypatch)
