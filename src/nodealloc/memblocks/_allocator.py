"""The allocators: a memory policy together with its state, as one immutable value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nodealloc import _attrs as attrs
from nodealloc._arguments import check, choice, not_a_machine, wrong
from nodealloc._typed import trusting, typed_fields, typed_methods
from nodealloc.checkpoint import MEMORY_STATE, Checkpoint, MemoryManagerState
from nodealloc.idset import NodeSet
from nodealloc.machine import Machine
from nodealloc.memblocks import _abilities as abilities
from nodealloc.memblocks._blocks import MEMORY, Block, NodeMemory, is_memory
from nodealloc.memblocks._codec import recorded, to_kubelet
from nodealloc.memblocks._demand import demand_at_peak, demand_of
from nodealloc.memblocks._granting import grant, release
from nodealloc.memblocks._layout import Demand, Layout
from nodealloc.memblocks._options import MemoryOptions, MemoryPolicy
from nodealloc.memblocks._recorded import RecordedMemory
from nodealloc.memblocks._refusals import refusal
from nodealloc.memblocks._reserved import reserved_of
from nodealloc.memblocks._resize import moved, nodes_to_resize, to_regrant
from nodealloc.memblocks._restore import MAX_DRIFT_BYTES, MemoryRestorePlan, settled
from nodealloc.memblocks._state import MemoryState
from nodealloc.memblocks._static_policy import PlacementQuery, place
from nodealloc.memblocks._stock import MemoryStock
from nodealloc.podspec import Json, Quantity
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
    Shortfall,
    TopologyHint,
    Workload,
)

__all__ = ["MemoryAllocator"]

# Members of an enumeration are slow to look up before Python 3.12.
_NO_POLICY = MemoryPolicy.NONE
_STATIC_POLICIES = (MemoryPolicy.STATIC, MemoryPolicy.BEST_EFFORT)


@typed_methods
@typed_fields
@attrs.frozen(kw_only=True)
class MemoryAllocator(MemoryStock):
    """The static policy and its state: memory and huge pages for exclusive claims.

    An `Allocator` of `nodealloc.topology` that `Reports`, `Remembers`,
    `Accounts`, `Confines`, `Adopts`, and keeps the kubelet's file
    `memory_manager_state`.

    Attributes:
        state: What is held and what is free.
        options: Departures from the kubelet.
        policy: `STATIC`, or `BEST_EFFORT` for another name in the state file.
    """

    @classmethod
    def of(
        cls,
        machine: Machine,
        /,
        *,
        policy: MemoryPolicy | str = MemoryPolicy.STATIC,
        reserved: Mapping[int, Mapping[str, int | str | Quantity]] | str | None = None,
        options: MemoryOptions | None = None,
    ) -> MemoryAllocator:
        """The memory of a machine, with nothing held.

        Args:
            machine: What there is.
            policy: Which policy decides, or the kubelet's word for it; for `None`
                there is `UnpinnedMemory`.
            reserved: What the system keeps, by NUMA node and resource: bytes, texts
                such as `1Gi` or quantities; or the kubelet's notation, see
                `parse_reserved` and `check_reserved`.
            options: Departures from the kubelet.

        Raises:
            DecodeError: Reserved memory does not fit the machine; lists every fault.
            ConfigurationError: No machine, no such policy, or the one that pins nothing.
        """
        if not hasattr(machine, "numa_nodes"):
            raise not_a_machine(machine)
        return cls(
            state=MemoryState.empty(Layout.of(machine, reserved_of(reserved))),
            options=options or MemoryOptions(),
            policy=choice(MemoryPolicy, policy, "MemoryAllocator.of, policy"),
        )

    def __attrs_post_init__(self) -> None:
        if self.policy is _NO_POLICY:
            known = " or ".join(one.value for one in _STATIC_POLICIES)
            raise wrong("MemoryAllocator.policy", self.policy, f"{known}; for None take UnpinnedMemory")

    @property
    def name(self) -> str:
        """`memory`."""
        return MEMORY

    def serves(self, resource: str, /) -> bool:
        """Memory and huge pages, of whatever size."""
        return is_memory(resource)

    def hints(self, claims: Sequence[Claim], /) -> Hints:
        """Groups of nodes that could serve the claims; none when nothing could.

        Every resource has the same hints, because a claim's resources come from
        one group. Like the kubelet, a demand that fits nowhere has no hints at
        all, so that its refusal comes from `allocate`, with the figures.
        """
        asking = claims
        if len(claims) != 1:
            asking = [claim for claim in claims if claim.exclusive]
        elif not claims[0].exclusive:
            return {}
        demand = self._demand(asking) if asking else ()
        if not demand or not isinstance(demand, tuple):
            return {}
        state = self.state
        held = self._held(asking) if asking[0].owner.workload in state.grants else ()
        found = held or self._query(asking, demand).hints()
        if not found:
            return {}
        resources = state.layout.resources
        return {resources[row]: found for row, _ in demand}

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> MemoryAllocator | Shortfall:
        """This allocator with the claim granted on one group of nodes."""
        if not claim.exclusive or (
            claim.owner.workload in self.state.grants and self.state.blocks(claim.owner)
        ):
            return self
        demand = demand_of(self.state.layout, claim.amounts)
        if not isinstance(demand, tuple):
            return demand
        if not demand:
            return self
        query = self._query((claim,), demand)
        nodes = place(query, affinity, self.options)
        if not isinstance(nodes, int):
            return refusal(query, nodes)
        state = grant(
            self.state,
            claim.owner,
            nodes,
            demand,
            ended=claim.reuse,
            left=query.left,
            strict=self.options.strict,
        )
        return self._with(state)

    def release(self, workload: str, member: str | None = None, /) -> MemoryAllocator:
        """This allocator without what the member, or the whole workload, holds."""
        state = release(self.state, workload, member, strict=self.options.strict)
        if state is self.state:
            return self
        return self._with(state)

    def resize(self, claim: Claim, workload: Workload | None = None, /) -> MemoryAllocator | Shortfall:
        """This allocator with the claim's owner holding what it asks for now, on the nodes that it has.

        Memory does not move: growing beyond these nodes is a shortfall, and so is
        a resource that it did not hold. A shortfall leaves all as it was.

        Args:
            claim: What its owner asks for now.
            workload: All claims of its pod, as they are to be; the claim alone where None. What one
                member has over from another is counted anew, so that all hold together what they
                need at their peak.

        Raises:
            ConfigurationError: The claim is none of the workload, or may have memory over from a
                member whose claim is not told.
        """
        asking = to_regrant(self.state, claim, workload)
        after = self
        for one in asking:
            after = after.release(one.owner.workload, one.owner.member)
        for one in asking or (claim,):
            nodes = nodes_to_resize(self.state, one)
            if isinstance(nodes, Shortfall):
                return nodes
            if nodes is None:
                continue
            granted = after.allocate(one, TopologyHint(affinity=nodes, preferred=True))
            if isinstance(granted, Shortfall):
                return granted
            if elsewhere := moved(self.state, granted.state, one.owner):
                return elsewhere
            after = granted
        return self if after.state == self.state else after

    def availability(self, claims: Sequence[Claim], /) -> Sequence[Availability]:
        """What the claims ask for at their peak, beside what is free and allocatable where."""
        asking = [claim for claim in claims if claim.exclusive]
        demand = demand_at_peak(self.state.layout, asking, all_members=True)
        if isinstance(demand, Shortfall):
            return [Availability(resource=demand.resource, wanted=demand.wanted, free={}, allocatable={})]
        layout = self.state.layout
        return [
            Availability(
                resource=layout.resources[row],
                wanted=size,
                free=dict(zip(layout.nodes, self.state.free[row], strict=True)),
                allocatable=dict(zip(layout.nodes, layout.allocatable[row], strict=True)),
            )
            for row, size in demand
        ]

    def blocks_of(self, owner: Owner, /) -> tuple[Block, ...]:
        """What an owner holds, by resource name; empty when that is nothing."""
        return self.state.blocks(check("blocks_of", owner, Owner, "an Owner(workload, member)"))

    def mems_of(self, owner: Owner, /) -> NodeSet:
        """The nodes that confine an owner to its memory; empty leaves it where its parent is."""
        return abilities.nodes_of(self.blocks_of(owner)) or NodeSet()

    def tables(self) -> tuple[NodeMemory, ...]:
        """Every NUMA node with its figures, ascending by id."""
        return self.state.tables()

    def recorded(self) -> RecordedMemory:
        """What `to_kubelet` makes a kubelet's state file of."""
        return RecordedMemory(policy=self.policy, nodes=self.tables(), grants=self.state.grants)

    def plan_restore(
        self,
        stored: MemoryManagerState | RecordedMemory,
        /,
        *,
        max_drift_bytes: int = MAX_DRIFT_BYTES,
    ) -> MemoryRestorePlan[MemoryAllocator]:
        """Check what was remembered against the machine of today; never refuses.

        To be asked of an allocator that holds nothing. A workload stays where its
        blocks fit beside those of the others, wherever the machine's figures have
        gone. Where they do not, small workloads stay before large ones, so that as
        few as possible are disturbed (of two of a size, the lower key); the others
        move to nodes that have the bytes, whole workloads at a time, or are evicted.

        Args:
            stored: A kubelet's file, or what `recorded` said.
            max_drift_bytes: By how much the memory of a node may differ without
                being `beyond`; huge pages do not drift.

        Raises:
            ConfigurationError: This allocator holds something.
            DecodeError: See `from_kubelet`.

        Source: ours; the kubelet (``cm/memorymanager/policy_static.go``) refuses to
        start after any difference, and the operator deletes the file.
        """
        return settled(self, recorded(stored), self._with, max_drift_bytes=max_drift_bytes)

    # What a node asks besides.

    def remembered(self, workload: str, /) -> Json:
        """Member to its blocks: nodes as a mask, resource, bytes; see `Remembers.remembered`."""
        return abilities.row(self.state.grants.get(workload, {})) or None

    def restored(self, grants: Mapping[str, Json], /) -> Restored:
        """See `Remembers.restored`; kept, moved or evicted as `plan_restore` says."""
        remembered = RecordedMemory(policy=self.policy, grants=abilities.from_rows(grants))
        return settled(self, remembered, self._with).restored("memory")

    def holdings(self) -> Sequence[Holding]:
        """See `Accounts.holdings`: an entry for each block."""
        return tuple(abilities.holdings(self.state))

    def capacity(self) -> Sequence[ResourceUse]:
        """See `Accounts.capacity`."""
        return tuple(abilities.capacity(self.tables()))

    def confinement(self, owner: Owner, /) -> Confinement:
        """See `Confines.confinement`: the nodes of its blocks."""
        return Confinement(mems=abilities.nodes_of(self.state.blocks(owner)))

    def adopted(self, claim: Claim, where: Confinement, /) -> MemoryAllocator | Shortfall:
        """See `Adopts.adopted`; a container that is confined to no nodes goes where there is memory."""
        mask = where.mems.mask if where.mems else None
        answer = self.allocate(claim, TopologyHint(mask, preferred=False))
        if isinstance(answer, Shortfall) or not where.mems:
            return answer
        # A static policy widens an affinity that does not suffice; this container stands already.
        return abilities.elsewhere(answer.state.blocks(claim.owner), where.mems) or answer

    def kubelet_key(self) -> str:
        """`memory_manager_state`."""
        return MEMORY_STATE

    def to_kubelet(self, _before: Allocator | None = None, /) -> MemoryManagerState:
        """The record that a kubelet would keep of this allocator in `memory_manager_state`."""
        return to_kubelet(self.recorded())

    def from_kubelet(self, file: Checkpoint, /) -> Mapping[str, Recalled]:
        """What a kubelet's file says of each workload.

        Raises:
            DecodeError: An unknown policy, a negative or enormous node id, a block without nodes,
                or memory that belongs to a whole pod, which has no owner here.
        """
        return abilities.from_kubelet_file(file)

    def _with(self, state: MemoryState) -> MemoryAllocator:
        return _allocator(state=state, options=self.options, policy=self.policy)

    def _demand(self, claims: Sequence[Claim]) -> Demand | Shortfall:
        layout = self.state.layout
        if len(claims) == 1:
            return demand_of(layout, claims[0].amounts)
        return demand_at_peak(layout, claims, all_members=self.options.strict)

    def _query(self, claims: Sequence[Claim], demand: Demand) -> PlacementQuery:
        claim = claims[0]
        alone = len(claims) == 1 and bool(claim.reuse)
        left = self.state.left_by(claim) if alone else _NOTHING_LEFT
        return _asked(self.state.layout, self.state, demand, left)

    def _held(self, claims: Sequence[Claim]) -> Sequence[TopologyHint]:
        """Where the first claim that is granted already sits, so that the rest go there too."""
        for claim in claims:
            held = self.state.blocks(claim.owner)
            if held:
                return (TopologyHint(held[0].nodes, preferred=True),)
        return ()


_allocator, _asked = trusting(MemoryAllocator), trusting(PlacementQuery)
_NOTHING_LEFT: Mapping[tuple[int, str], int] = {}
