"""The allocator of CPUs: a policy and its state, as one immutable value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodealloc import _attrs as attrs
from nodealloc._arguments import check
from nodealloc._typed import trusting, typed_fields, typed_methods
from nodealloc.checkpoint import CPU_STATE, Checkpoint, CpuManagerState, JsonCheckpoint
from nodealloc.cpuset import _abilities as abilities
from nodealloc.cpuset._codec import recorded, to_kubelet, to_record, to_row
from nodealloc.cpuset._demand import CPU, demand_of
from nodealloc.cpuset._grant import grant, hints_for
from nodealloc.cpuset._options import StaticOptions
from nodealloc.cpuset._policy import StaticPolicy
from nodealloc.cpuset._recorded import RecordedCpus
from nodealloc.cpuset._resize import resize
from nodealloc.cpuset._restore import settled
from nodealloc.cpuset._state import CpuState
from nodealloc.cpuset._stock import CpuStock
from nodealloc.idset import CPUSet
from nodealloc.podspec import Json
from nodealloc.topology import (
    Allocator,
    Availability,
    Claim,
    Confinement,
    Hints,
    Holding,
    Owner,
    Recalled,
    ResourceUse,
    Restored,
    RestorePlan,
    Shortfall,
    TopologyHint,
    Workload,
    peak,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from nodealloc.machine import Machine

__all__ = ["CpuAllocator"]

_OWNER = "an Owner(workload, member)"


@typed_methods
@typed_fields
@attrs.frozen(kw_only=True)
class CpuAllocator(CpuStock):
    """CPUs of one node: an `Allocator` with every ability.

    It `Reports`, `Remembers`, `Accounts`, `Confines`, `Adopts`, and keeps the
    kubelet's file `cpu_manager_state`. Every method answers with a value and
    changes nothing. Can be pickled, and shared between threads.

    Attributes:
        policy: How CPUs are given out.
        state: Who holds which.
        shared: The shared pool: where everybody runs who holds nothing.
    """

    @classmethod
    def of(
        cls,
        machine: Machine,
        /,
        *,
        reserved: CPUSet | int | str | Iterable[int] = 0,
        options: StaticOptions | Mapping[str, str] | None = None,
    ) -> CpuAllocator:
        """The CPUs of a machine under the static policy, with nothing held.

        What else the policy knows, `StaticPolicy.of` takes; for the policy `none`
        there is `NonePolicy`.

        Args:
            machine: Where CPUs are given out.
            reserved: CPUs that nobody gets for itself; see `StaticPolicy.of`.
            options: The kubelet's options; see `StaticOptions`.

        Raises:
            ConfigurationError: See `StaticPolicy.of`.
        """
        return cls(policy=StaticPolicy.of(machine, reserved=reserved, options=options))

    @property
    def name(self) -> str:
        """`cpu`."""
        return CPU

    def cpus_of(self, owner: Owner, /) -> CPUSet:
        """The CPUs that an owner may run on: its own, and the shared pool where it was promised a part."""
        assignment = self.state.of(check("cpus_of", owner, Owner, _OWNER))
        if assignment is None:
            return self.shared
        return assignment.cpus | self.shared if assignment.shared_milli_cpu else assignment.cpus

    def exclusive_of(self, owner: Owner, /) -> CPUSet:
        """The CPUs that an owner holds for itself; empty for one that shares."""
        assignment = self.state.of(check("exclusive_of", owner, Owner, _OWNER))
        return CPUSet() if assignment is None else assignment.cpus

    def serves(self, resource: str, /) -> bool:
        """CPUs."""
        return resource == CPU

    def hints(self, claims: Sequence[Claim], /) -> Hints:
        """See `Allocator.hints`."""
        return hints_for(self.policy, self.state, claims) if isinstance(self.policy, StaticPolicy) else {}

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> CpuAllocator | Shortfall:
        """See `Allocator.allocate`."""
        if not isinstance(self.policy, StaticPolicy):
            return self
        state = grant(self.policy, self.state, claim, affinity)
        if state is self.state:
            return self
        return _allocator(policy=self.policy, state=state) if isinstance(state, CpuState) else state

    def release(self, workload: str, member: str | None = None, /) -> CpuAllocator:
        """See `Allocator.release`; the CPUs of an init member that has ended may go back by themselves."""
        return self._moved(self.state.without(workload, member))

    def resize(self, claim: Claim, _workload: Workload | None = None, /) -> CpuAllocator | Shortfall:
        """This allocator with the claim's owner holding as many CPUs as it asks for now.

        Needs `StaticPolicy.resizable`. Up keeps all that it has; down is a
        subset. What the rest of its workload asks for changes nothing: each member
        holds its own CPUs, also those that it lends. See
        `docs/how-to/resize-a-container.md`.
        """
        if not isinstance(self.policy, StaticPolicy):
            return self
        state = resize(self.policy, self.state, claim)
        return state if isinstance(state, Shortfall) else self._moved(state)

    def availability(self, claims: Sequence[Claim], /) -> Sequence[Availability]:
        """See `Reports.availability`."""
        policy = self.policy
        if not isinstance(policy, StaticPolicy):
            return ()
        wanted = peak(claims, lambda claim: demand_of(policy, claim).exclusive)
        if wanted == 0:
            return ()
        free = policy.allocatable & ~self.state.held
        nodes = list(zip(policy.layout.node_ids, policy.layout.nodes, strict=True))
        return (
            Availability(
                resource=CPU,
                wanted=wanted,
                free={node: (cpus & free).bit_count() for node, cpus in nodes},
                allocatable={node: (cpus & policy.allocatable).bit_count() for node, cpus in nodes},
            ),
        )

    def plan_restore(
        self, stored: CpuManagerState | JsonCheckpoint | RecordedCpus, /
    ) -> RestorePlan[CPUSet, CpuAllocator]:
        """Check what was remembered against this policy and its machine; never refuses.

        Kept is what only names CPUs that may be held now, and that nobody else
        holds. What names others is moved: each lost CPU is replaced, near by first,
        so that the members of a workload share among them what they shared before,
        and the rest of their CPUs stays. Where too few are free, the workload is
        evicted, and what it held is offered to the others. Workloads go in the order
        in which they were admitted.

        Args:
            stored: A kubelet's file, or what `to_record` wrote.

        Raises:
            DecodeError: A list of CPUs is none, or a record of another kind, version
                or shape; names every fault.

        Source: ours; the kubelet (``cm/cpumanager/policy_static.go``) refuses to
        start, and the operator drains the node and deletes the file.
        """
        return settled(self, recorded(stored), self._moved)

    # What a node asks besides.

    def remembered(self, workload: str, /) -> Json:
        """Member to its CPUs; see `Remembers.remembered`."""
        return to_row(self.state, workload) or None

    def restored(self, grants: Mapping[str, Json], /) -> Restored:
        """See `Remembers.restored`; kept, moved or evicted as `plan_restore` says."""
        return abilities.restored(self, grants, self._moved)

    def holdings(self) -> Sequence[Holding]:
        """See `Accounts.holdings`."""
        return tuple(abilities.holdings(self))

    def capacity(self) -> Sequence[ResourceUse]:
        """See `Accounts.capacity`; nothing where nobody gets CPUs for itself."""
        return tuple(abilities.capacity(self))

    def confinement(self, owner: Owner, /) -> Confinement:
        """See `Confines.confinement`: its own CPUs, or the shared pool."""
        return Confinement(cpus=self.cpus_of(owner), exclusive=self.exclusive_of(owner))

    def adopted(self, claim: Claim, where: Confinement, /) -> CpuAllocator | Shortfall:
        """See `Adopts.adopted`: what is exclusive there is held, nothing else."""
        return abilities.adopted(self, claim, where, self._moved)

    def kubelet_key(self) -> str:
        """`cpu_manager_state`."""
        return CPU_STATE

    def to_kubelet(self, _before: Allocator | None = None, /) -> CpuManagerState:
        """The state as the kubelet's `cpu_manager_state` has it.

        It has no place for what the kubelet does not know: a baseline of a resize,
        a promised part of the shared pool. Where those policies are on, store
        `to_record` beside it.
        """
        return to_kubelet(self)

    def to_record(self) -> JsonCheckpoint:
        """The whole state as a record of our own, generation and all."""
        return to_record(self)

    def from_kubelet(self, file: Checkpoint, /) -> Mapping[str, Recalled]:
        """What a kubelet's file says of each workload.

        Raises:
            DecodeError: A list of CPUs is none, or the layout is that before 1.18.
        """
        return abilities.from_kubelet_file(file)

    def _moved(self, state: CpuState) -> CpuAllocator:
        return self if state is self.state else _allocator(policy=self.policy, state=state)


_allocator = trusting(CpuAllocator)
