"""A fake of CPUs that can do all that an allocator can do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from nodealloc import _attrs as attrs
from nodealloc._reading import Reader
from nodealloc.idset import CPUSet, NodeSet
from nodealloc.podspec import Json, Quantity
from nodealloc.testing.topology import FakeAllocator
from nodealloc.topology import (
    Claim,
    Confinement,
    Hints,
    Holding,
    NotYet,
    Owner,
    ResourceUse,
    Restored,
    Shortfall,
    TopologyHint,
)

__all__ = ["FakeCpuAllocator"]


@attrs.frozen(kw_only=True)
class FakeCpuAllocator:
    """CPUs by number, the lowest first, with fractions of the shared pool; has all four abilities.

    Attributes:
        units: Gives out whole CPUs.
        shared_milli_cpu: Owner to what it was promised of the shared pool, in
            thousandths of a CPU.
    """

    units: FakeAllocator
    shared_milli_cpu: Mapping[Owner, int] = attrs.field(factory=dict[Owner, int])

    @classmethod
    def of(cls, counts: Mapping[int, int], /) -> FakeCpuAllocator:
        """With so many free CPUs on each node, numbered from 0."""
        return cls(units=FakeAllocator.of("cpu", counts))

    @property
    def name(self) -> str:
        """`cpu`."""
        return self.units.name

    def hints(self, claims: Sequence[Claim], /) -> Hints | NotYet:
        """See `Allocator.hints`; a fraction has no preference."""
        return self.units.hints([_whole(claim) for claim in claims])

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> FakeCpuAllocator | Shortfall | NotYet:
        """See `Allocator.allocate`: whole CPUs for itself, and the rest promised of the shared pool."""
        units = self.units.allocate(_whole(claim), affinity)
        if not isinstance(units, FakeAllocator):
            return units
        rest = _milli(claim) % 1000
        shares = {**self.shared_milli_cpu, claim.owner: rest} if rest else self.shared_milli_cpu
        if units is self.units and shares == self.shared_milli_cpu:
            return self
        return attrs.evolve(self, units=units, shared_milli_cpu=shares)

    def release(self, workload: str, member: str | None = None, /) -> FakeCpuAllocator:
        """See `Allocator.release`."""
        shares = {
            owner: share
            for owner, share in self.shared_milli_cpu.items()
            if owner.workload != workload or member not in {None, owner.member}
        }
        return attrs.evolve(self, units=self.units.release(workload, member), shared_milli_cpu=shares)

    def remembered(self, workload: str, /) -> Json:
        """See `Remembers.remembered`: member to CPUs and thousandths."""
        rows: dict[str, Json] = {}
        for owner in {**self.units.held, **self.shared_milli_cpu}:
            if owner.workload == workload:
                share = self.shared_milli_cpu.get(owner, 0)
                rows[owner.member] = {"cpus": str(self._own(owner)), "sharedMilliCpu": share}
        return rows or None

    def restored(self, grants: Mapping[str, Json], /) -> Restored:
        """See `Remembers.restored`; a workload whose CPUs are not there, or not free, is evicted."""
        found, evicted = self, dict[str, str]()
        for workload, row in grants.items():
            after = found._with(workload, _read(workload, row))
            if after is None:
                evicted[workload] = "its CPUs are not there, or others hold them"
            found = after or found
        return Restored(allocator=found, evicted=evicted)

    def holdings(self) -> Sequence[Holding]:
        """See `Accounts.holdings`."""
        return [
            Holding(
                owner=owner,
                resource=self.name,
                amount=mask.bit_count(),
                nodes=NodeSet(node for node, here in self.units.units.items() if here & mask),
                cpus=CPUSet.from_mask(mask),
            )
            for owner, mask in self.units.held.items()
        ]

    def capacity(self) -> Sequence[ResourceUse]:
        """See `Accounts.capacity`."""
        return [
            ResourceUse(
                resource=self.name,
                node=node,
                allocatable=cpus.bit_count(),
                available=self.units.free_on(node),
            )
            for node, cpus in self.units.units.items()
        ]

    def confinement(self, owner: Owner, /) -> Confinement:
        """See `Confines.confinement`: its own CPUs, or those that nobody holds."""
        own = self._own(owner)
        free = CPUSet.from_mask(self._all & ~_union(self.units.held.values()))
        shares = not own or owner in self.shared_milli_cpu
        return Confinement(cpus=own | free if shares else own, exclusive=own)

    def adopted(self, claim: Claim, where: Confinement, /) -> FakeCpuAllocator | Shortfall:
        """See `Adopts.adopted`: what is exclusive there is held."""
        if not where.exclusive:
            return self
        after = self._with(
            claim.owner.workload, {claim.owner.member: (where.exclusive, _milli(claim) % 1000)}
        )
        if after is not None:
            return after
        wanted, detail = len(where.exclusive), f"CPUs {where.exclusive} are not all free"
        return Shortfall(resource=self.name, wanted=wanted, free=0, detail=detail)

    @property
    def _all(self) -> int:
        return _union(self.units.units.values())

    def _own(self, owner: Owner) -> CPUSet:
        return CPUSet.from_mask(self.units.held.get(owner, 0))

    def _with(self, workload: str, members: Mapping[str, tuple[CPUSet, int]]) -> FakeCpuAllocator | None:
        """With these members holding exactly that; None where others do, or nobody could."""
        others = _union(mask for owner, mask in self.units.held.items() if owner.workload != workload)
        masks = {Owner(workload, name): cpus.mask for name, (cpus, _) in members.items() if cpus}
        if _union(masks.values()) & (others | ~self._all):
            return None
        shares = {Owner(workload, name): share for name, (_, share) in members.items() if share}
        units = attrs.evolve(self.units, held={**self.units.held, **masks})
        return attrs.evolve(self, units=units, shared_milli_cpu={**self.shared_milli_cpu, **shares})


def _milli(claim: Claim) -> int:
    return claim.amounts["cpu"].milli_value if "cpu" in claim.amounts else 0


def _whole(claim: Claim) -> Claim:
    """The claim for whole CPUs alone."""
    if "cpu" not in claim.amounts:
        return claim
    return attrs.evolve(claim, amounts={**claim.amounts, "cpu": Quantity.of(_milli(claim) // 1000)})


def _read(workload: str, row: Json) -> dict[str, tuple[CPUSet, int]]:
    reader = Reader(f"CPUs of {workload}")
    members: dict[str, tuple[CPUSet, int]] = {}
    for member, written in reader.mapping(row, "$").items():
        fields = reader.mapping(written, f"$.{member}")
        cpus = CPUSet.parse(reader.text(fields.get("cpus"), f"$.{member}.cpus"))
        share = reader.whole(fields.get("sharedMilliCpu"), f"$.{member}.sharedMilliCpu", most=999)
        members[member] = cpus, share
    reader.check()
    return members


def _union(masks: Iterable[int]) -> int:
    found = 0
    for mask in masks:
        found |= mask
    return found
