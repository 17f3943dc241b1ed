"""Values only: who holds which CPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

import attrs

from nodealloc.idset import CPUSet
from nodealloc.topology import Owner

__all__ = ["Assignment", "CpuState"]


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

    cpus: CPUSet = attrs.field(validator=attrs.validators.min_len(1))
    baseline: CPUSet | None = None
    shared_milli_cpu: int = attrs.field(default=0, validator=attrs.validators.ge(0))


@attrs.frozen(kw_only=True, slots=False)
class CpuState:
    """All assignments of a node; everything else is worked out from them.

    Members of one workload may hold the same CPU: an init container lends what
    it held to the containers behind it. A CPU is free when nobody holds it.

    Attributes:
        assignments: Workload to member to what it holds; no workload without
            members. Treat it as read-only.
        generation: Grows with every change; two states are equal when their
            assignments are.
    """

    assignments: Mapping[str, Mapping[str, Assignment]] = attrs.field(
        factory=dict[str, Mapping[str, Assignment]]
    )
    generation: int = attrs.field(default=0, eq=False)

    @cached_property
    def held(self) -> int:
        """CPUs that somebody holds, as a mask."""
        mask = 0
        for members in self.assignments.values():
            for assignment in members.values():
                mask |= assignment.cpus.mask
        return mask

    @cached_property
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
        return self.assignments.get(owner.workload, {}).get(owner.member)

    def lent_to(self, owner: Owner, ended: tuple[str, ...], /) -> int:
        """CPUs of members that have ended and that no other member holds, as a mask.

        Source: kubelet ``cm/cpumanager/policy_static.go``, `cpusToReuse`.
        """
        if not ended:
            return 0
        lent = kept = 0
        for member, assignment in self.assignments.get(owner.workload, {}).items():
            if member in ended:
                lent |= assignment.cpus.mask
            elif member != owner.member:
                kept |= assignment.cpus.mask
        return lent & ~kept

    def with_assignment(self, owner: Owner, assignment: Assignment, /) -> CpuState:
        """This state with the owner holding exactly that."""
        members = {**self.assignments.get(owner.workload, {}), owner.member: assignment}
        return CpuState(
            assignments={**self.assignments, owner.workload: members}, generation=self.generation + 1
        )

    def without(self, workload: str, member: str | None = None, /) -> CpuState:
        """This state without a member, or without a whole workload; `self` where unknown."""
        members = self.assignments.get(workload)
        if members is None or (member is not None and member not in members):
            return self
        assignments = dict(self.assignments)
        left = {} if member is None else {name: held for name, held in members.items() if name != member}
        if left:
            assignments[workload] = left
        else:
            del assignments[workload]
        return CpuState(assignments=assignments, generation=self.generation + 1)
