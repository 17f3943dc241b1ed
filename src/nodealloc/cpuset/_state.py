"""Values only: who holds which CPUs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol, cast

from nodealloc import _attrs as attrs
from nodealloc._arguments import check, within, wrong
from nodealloc._entries import with_entry, without_entry
from nodealloc._frozen import Frozen, extended, freeze
from nodealloc._typed import trusting, typed_fields, typed_methods
from nodealloc.idset import CPUSet
from nodealloc.topology import Claim, Owner, lent

__all__ = ["Assignment", "CpuState"]


def _some(_instance: object, _attribute: object, cpus: CPUSet) -> None:
    if not check("Assignment.cpus", cpus, CPUSet, "a CPUSet"):
        raise wrong("Assignment.cpus", cpus, "at least one CPU")


@attrs.frozen(kw_only=True)
class Assignment:
    """What one member of a workload holds.

    Attributes:
        cpus: Its exclusive CPUs, at least one.
        baseline: Those of them that it was admitted with, where it has been
            resized since; else None.
        shared_milli_cpu: What it may use of the shared pool besides, in
            thousandths of a CPU.
    """

    cpus: CPUSet = attrs.field(validator=_some)
    baseline: CPUSet | None = None
    shared_milli_cpu: int = attrs.field(default=0, validator=within(0))


@typed_methods
@typed_fields
@attrs.frozen(kw_only=True)
class CpuState:
    """All assignments of a node; everything else is worked out from them.

    Members of one workload may hold the same CPU: an init container lends what
    it held to the containers behind it. A CPU is free when nobody holds it.

    Attributes:
        assignments: Workload to member to what it holds; no workload without
            members.
        generation: Grows with every change; two states are equal when their
            assignments are.
        held: CPUs that somebody holds, as a mask.
        shared_milli_cpu: Sum of what members with exclusive CPUs may use of the shared pool besides.
    """

    assignments: Mapping[str, Mapping[str, Assignment]] = attrs.field(
        factory=Frozen[str, Mapping[str, Assignment]], validator=freeze
    )
    generation: int = attrs.field(default=0, eq=False)
    held: int = attrs.field(init=False, eq=False, repr=False)
    shared_milli_cpu: int = attrs.field(init=False, eq=False, repr=False)
    _apart: bool = attrs.field(init=False, eq=False, repr=False)
    """Whether no CPU is held by two workloads; a remembered state need not be like that."""

    def __attrs_post_init__(self) -> None:
        unions = [_union(members.values()) for members in self.assignments.values()]
        held = 0
        for cpus in unions:
            held |= cpus
        _set(self, "held", held)
        _set(self, "shared_milli_cpu", sum([one.shared_milli_cpu for _, one in self.items()]))
        _set(self, "_apart", sum(map(int.bit_count, unions)) == held.bit_count())

    def items(self) -> Iterator[tuple[Owner, Assignment]]:
        """Every owner with its assignment, in the order of admission."""
        for workload, members in self.assignments.items():
            for member, assignment in members.items():
                yield Owner(workload, member), assignment

    def of(self, owner: Owner, /) -> Assignment | None:
        """What an owner holds, or None."""
        return self.assignments.get(owner.workload, _NOBODY).get(owner.member)

    def lent_to(self, claim: Claim, /) -> int:
        """CPUs of members that have ended and that no other member holds, as a mask."""
        if not claim.reuse:
            return 0
        members = self.assignments.get(claim.owner.workload, _NOBODY)
        ended, kept = lent(claim, members.items())
        return _union(ended) & ~_union(kept)

    def with_assignment(self, owner: Owner, assignment: Assignment, /) -> CpuState:
        """This state with the owner holding exactly that."""
        members = self.assignments.get(owner.workload, _NOBODY)
        assignments = with_entry(
            self.assignments, owner.workload, extended(members, owner.member, assignment)
        )
        if owner.member in members:
            return CpuState(assignments=assignments, generation=self.generation + 1)
        # Worked out from this state, so that it takes no longer the more workloads there are.
        cpus, held = assignment.cpus.mask, self.held
        both = cpus & held
        return _state(
            assignments=assignments,
            generation=self.generation + 1,
            held=held | cpus,
            shared_milli_cpu=self.shared_milli_cpu + assignment.shared_milli_cpu,
            apart=self._apart and not (both and both & ~_union(members.values())),
        )

    def without(self, workload: str, member: str | None = None, /) -> CpuState:
        """This state without a member, or without a whole workload; `self` where unknown."""
        members = self.assignments.get(workload)
        if members is None or (member is not None and member not in members):
            return self
        left = Frozen(
            () if member is None else [(name, held) for name, held in members.items() if name != member]
        )
        assignments = (
            with_entry(self.assignments, workload, left)
            if left
            else without_entry(self.assignments, workload)
        )
        if not self._apart:
            return CpuState(assignments=assignments, generation=self.generation + 1)
        gone = sum([held.shared_milli_cpu for name, held in members.items() if name not in left])
        return _state(
            assignments=assignments,
            generation=self.generation + 1,
            held=self.held & ~_union(members.values()) | _union(left.values()),
            shared_milli_cpu=self.shared_milli_cpu - gone,
            apart=True,
        )


class _Maker(Protocol):
    """Makes a state of all that there is of it."""

    def __call__(
        self,
        *,
        assignments: Mapping[str, Mapping[str, Assignment]],
        generation: int,
        held: int,
        shared_milli_cpu: int,
        apart: bool,
    ) -> CpuState: ...


_state = cast("_Maker", trusting(CpuState))
_set = object.__setattr__
_NOBODY: Mapping[str, Assignment] = Frozen()


def _union(assignments: Iterable[Assignment]) -> int:
    mask = 0
    for assignment in assignments:
        mask |= assignment.cpus.mask
    return mask
