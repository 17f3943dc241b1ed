"""Values only: who holds which CPUs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import attrs

from nodealloc._arguments import check, within, wrong
from nodealloc._entries import with_entry, without_entry
from nodealloc._frozen import Frozen, extended, freeze
from nodealloc._lazy import lazy
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
@attrs.frozen(kw_only=True, slots=False)
class CpuState:
    """All assignments of a node; everything else is worked out from them.

    Members of one workload may hold the same CPU: an init container lends what
    it held to the containers behind it. A CPU is free when nobody holds it.

    Attributes:
        assignments: Workload to member to what it holds; no workload without
            members.
        generation: Grows with every change; two states are equal when their
            assignments are.
    """

    assignments: Mapping[str, Mapping[str, Assignment]] = attrs.field(
        factory=Frozen[str, Mapping[str, Assignment]], validator=freeze
    )
    generation: int = attrs.field(default=0, eq=False)

    def __getstate__(self) -> Mapping[str, object]:
        """The fields alone: what was worked out from them is worked out again."""
        return {"assignments": self.assignments, "generation": self.generation}

    @lazy
    def held(self) -> int:
        """CPUs that somebody holds, as a mask."""
        mask = 0
        for members in self.assignments.values():
            mask |= _union(members.values())
        return mask

    @lazy
    def _apart(self) -> bool:
        """Whether no CPU is held by two workloads; a remembered state need not be like that."""
        unions = [_union(members.values()) for members in self.assignments.values()]
        return sum(map(int.bit_count, unions)) == self.held.bit_count()

    @lazy
    def shared_milli_cpu(self) -> int:
        """Sum of what members with exclusive CPUs may use of the shared pool besides."""
        return sum(assignment.shared_milli_cpu for _, assignment in self.items())

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
        after = _state(
            assignments=with_entry(
                self.assignments, owner.workload, extended(members, owner.member, assignment)
            ),
            generation=self.generation + 1,
        )
        if owner.member not in members:
            # Worked out from this state, so that it takes no longer the more workloads there are.
            cpus, held, known = assignment.cpus.mask, self.held, after.__dict__
            known["held"] = held | cpus
            known["shared_milli_cpu"] = self.shared_milli_cpu + assignment.shared_milli_cpu
            both = cpus & held
            known["_apart"] = self._apart and not (both and both & ~_union(members.values()))
        return after

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
        after = _state(assignments=assignments, generation=self.generation + 1)
        if self._apart:
            gone = sum([held.shared_milli_cpu for name, held in members.items() if name not in left])
            after.__dict__.update(
                held=self.held & ~_union(members.values()) | _union(left.values()),
                shared_milli_cpu=self.shared_milli_cpu - gone,
                _apart=True,
            )
        return after


_state = trusting(CpuState)
_NOBODY: Mapping[str, Assignment] = Frozen()


def _union(assignments: Iterable[Assignment]) -> int:
    mask = 0
    for assignment in assignments:
        mask |= assignment.cpus.mask
    return mask
