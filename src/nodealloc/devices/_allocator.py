"""The policy with its state: devices of every resource and who holds them, as one value."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from nodealloc import _attrs as attrs
from nodealloc._arguments import check, wrong
from nodealloc._typed import typed, typed_fields, typed_methods
from nodealloc.checkpoint import DEVICE_STATE, Checkpoint, DeviceManagerState
from nodealloc.devices import _abilities as abilities
from nodealloc.devices._grants import NO_NODE, Grant, ids_held, told_doubled, without
from nodealloc.devices._hints import device_hints
from nodealloc.devices._inventory import Device, DeviceList, Inventory
from nodealloc.devices._life import Phase
from nodealloc.devices._pick import pick
from nodealloc.devices._preferences import Answers, PreferenceQuestion
from nodealloc.devices._state import from_rows, read_alike, remembered, to_row
from nodealloc.devices._stock import DeviceStock, amount_of, resources_of, wanted_of
from nodealloc.errors import ConfigurationError
from nodealloc.podspec import Json
from nodealloc.topology import (
    Allocator,
    Availability,
    Claim,
    Confinement,
    CountedHints,
    Hints,
    Holding,
    NotYet,
    NumaMachine,
    Owner,
    Recalled,
    ResourceUse,
    Restored,
    Shortfall,
    TopologyHint,
)

__all__ = ["DeviceAllocator"]

_COUNTED = frozenset({"", "cpu", "memory", "ephemeral-storage", "pods"})
"""Names that are none, or that others answer for."""
_KEPT = 64
"""Questions and answers that are kept at most; a workload brings up one or two."""


@typed_methods
@typed_fields
@attrs.frozen(kw_only=True)
class DeviceAllocator(DeviceStock):
    """Devices as an `nodealloc.topology.Allocator`: immutable, pure, safe to share.

    It `Reports`, `Remembers`, `Accounts`, `Confines`, `Adopts`, tells whose
    grants changed, and keeps the kubelet's file `kubelet_internal_checkpoint`.

    Attributes:
        nodes: NUMA nodes of the machine, ascending.
        inventories: Resource to its devices and the life of its plugin.
        grants: Who holds what.
        answers: What plugins said about which devices go well together.
        awaited: Resources for which a claim is *not yet* while nobody has
            registered them; None for every extended resource name. Others are
            not of this allocator.
        retry_s: After how long to ask again when it is *not yet*.
        unanswered: Questions that came up on the way to this value and had no
            answer; see `nodealloc.devices.plugins.DevicePlugins.ask`.
        name: Of this provider.

    Source: kubelet v1.32 ``cm/devicemanager``.
    """

    @classmethod
    @typed
    def of(cls, machine: NumaMachine, /, *, awaited: Iterable[str] | None = None) -> DeviceAllocator:
        """The devices of a machine before any plugin has registered, with nothing held.

        A machine whose kernel names no NUMA nodes is one node, 0.

        Args:
            machine: What there is, by its `nodes`.
            awaited: Resources for which a claim is *not yet* while nobody has
                registered them; None for every extended resource name.
        """
        return cls(
            nodes=tuple(machine.nodes) or (0,), awaited=None if awaited is None else frozenset(awaited)
        )

    def devices_of(self, owner: Owner, /) -> Mapping[str, frozenset[str]]:
        """What an owner holds: resource to the ids of its devices; empty when that is nothing."""
        held = self.grants.get(check("devices_of", owner, Owner, "an Owner(workload, member)").workload, {})
        return {resource: grant.ids for (member, resource), grant in held.items() if member == owner.member}

    # What the shell changes: the world, answers, responses.

    def with_inventory(self, inventory: Inventory, /) -> DeviceAllocator:
        """This allocator after something happened to one resource; grants stand."""
        resource = inventory.resource
        before = self.inventories.get(resource)
        if before == inventory:
            return self
        inventories = {**self.inventories, resource: inventory}
        held, answers = self._held, self.answers
        if before is None or before.devices != inventory.devices:
            answers = {asked: said for asked, said in answers.items() if asked.resource != resource}
        if before is None or before.devices.ids != inventory.devices.ids:
            held = {**held, resource: inventory.devices.mask_of(ids_held(resource, self.grants))}
        return attrs.evolve(self, inventories=inventories, answers=answers, held=held)

    def with_devices(self, resource: str, devices: Iterable[Device], /) -> DeviceAllocator:
        """This allocator as if a plugin had come and listed these devices; grants stand.

        For whoever asks what a node would answer and has no plugins. Of a resource that is told
        of without a device there is none: who asks for one is refused, and not told to wait.

        Args:
            resource: `example.com/gpu`.
            devices: All that there are, each as `Device("gpu-0", numa_nodes=1 << node)`.

        Raises:
            ConfigurationError: Something else than devices, or no name of a resource, or that of one
                which others count, such as `cpu`; or devices of which one would not be there as it was
                said: an id that stands twice or is empty, a health that nobody knows, a NUMA node that
                is not there.
        """
        if resource in _COUNTED or resource.startswith("hugepages-"):
            expected = "a name that nothing else counts by, such as example.com/gpu"
            raise wrong("DeviceAllocator.with_devices, resource", resource, expected)
        listed = DeviceList.of(devices, nodes=self.nodes)
        if listed.findings:
            raise ConfigurationError(f"{resource}: {'; '.join(listed.findings)}; mend the devices")
        return self.with_inventory(
            Inventory(resource=resource, phase=Phase.SERVING, devices=listed, settled=True)
        )

    def without_inventory(self, resource: str, /) -> DeviceAllocator:
        """This allocator as if nobody had ever registered that resource; grants stand."""
        inventories = {name: one for name, one in self.inventories.items() if name != resource}
        held = {name: mask for name, mask in self._held.items() if name != resource}
        return attrs.evolve(self, inventories=inventories, held=held)

    def with_answers(self, answers: Answers, /) -> DeviceAllocator:
        """This allocator with more answers at hand and no open question."""
        kept = list({**self.answers, **answers}.items())[-_KEPT:]
        return attrs.evolve(self, answers=dict(kept), unanswered=())

    def without_answers(self) -> DeviceAllocator:
        """This allocator with neither answers nor questions, as it is kept between admissions."""
        if not self.answers and not self.unanswered:
            return self
        return attrs.evolve(self, answers={}, unanswered=())

    def with_response(self, owner: Owner, resource: str, response: bytes, /) -> DeviceAllocator:
        """This allocator knowing what the plugin answered; a grant that is gone stays gone."""
        held = self.grants.get(owner.workload, {})
        grant = held.get((owner.member, resource))
        if grant is None or grant.response == response:
            return self
        kept = {**held, (owner.member, resource): grant.answered(response)}
        return attrs.evolve(self, grants={**self.grants, owner.workload: kept})

    # What admission asks.

    def serves(self, resource: str, /) -> bool:
        """What a plugin has told of, and what one may still tell of (`awaited`)."""
        return self._is_ours(resource)

    def hints(self, claims: Sequence[Claim], /) -> Hints | NotYet:
        """Where the claims could go; see `nodealloc.topology.Allocator`."""
        answer: dict[str, Sequence[TopologyHint] | CountedHints | None] = {}
        for resource in resources_of(claims):
            wanted = wanted_of(claims, resource)
            if not wanted or not self._is_ours(resource):
                continue
            if self._stands(claims, resource):
                answer[resource] = self._hints_of_held(claims[0], resource, self._already(claims, resource))
                continue
            inventory = self._ready(resource)
            if isinstance(inventory, NotYet):
                return inventory
            devices = inventory.devices
            if not devices.placed:
                answer[resource] = None
                continue
            reusable = self._reusable(claims[0], resource, devices) if len(claims) == 1 else 0
            own = devices.mask_of(self._already(claims, resource))
            available = devices.healthy & ~self._held.get(resource, 0) | own
            answer[resource] = device_hints(
                self.nodes, wanted, by_node=devices.by_node, available=available, reusable=reusable
            )
        return answer

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> DeviceAllocator | Shortfall | NotYet:
        """This allocator with the claim granted; see `nodealloc.topology.Allocator`."""
        granted: DeviceAllocator = self
        for resource in sorted(claim.amounts):
            wanted = amount_of(claim, resource)
            if not wanted or not self._is_ours(resource):
                continue
            step = granted._allocate(claim, resource, wanted, affinity.affinity)
            if not isinstance(step, DeviceAllocator):
                return step
            granted = step
        return granted

    def release(self, workload: str, member: str | None = None, /) -> DeviceAllocator:
        """This allocator without what the member, or all, holds; see `nodealloc.topology.Allocator`."""
        before = self.grants.get(workload, {})
        gone = [key for key in before if member in (None, key[0])]
        if not gone:
            return self
        grants = without(self.grants, workload, member)
        held = dict(self._held)
        for resource in {resource for _, resource in gone} & self.inventories.keys():
            devices = self.inventories[resource].devices
            still = {
                i for key, kept in grants.get(workload, {}).items() if key[1] == resource for i in kept.ids
            }
            freed = {i for key in gone if key[1] == resource for i in before[key].ids} - still
            if any((resource, one) in self._doubled for one in freed):
                freed -= ids_held(resource, grants)
            held[resource] = held.get(resource, 0) & ~devices.mask_of(freed)
        return attrs.evolve(self, grants=grants, held=held)

    def availability(self, claims: Sequence[Claim], /) -> Sequence[Availability]:
        """What is free where, for a refusal; a device at several nodes counts at each."""
        rows: list[Availability] = []
        for resource in resources_of(claims):
            wanted = wanted_of(claims, resource)
            inventory = self.inventories.get(resource)
            if not wanted or inventory is None:
                continue
            devices = inventory.devices
            places = {**devices.by_node, NO_NODE: devices.everything & ~devices.placed}
            free = devices.healthy & ~self._held.get(resource, 0)
            there = {node: mask for node, mask in places.items() if mask} or {NO_NODE: 0}
            rows.append(
                Availability(
                    resource=resource,
                    wanted=wanted,
                    free={node: (mask & free).bit_count() for node, mask in there.items()},
                    allocatable={node: (mask & devices.healthy).bit_count() for node, mask in there.items()},
                )
            )
        return rows

    # What a node asks besides.

    def remembered(self, workload: str, /) -> Json:
        """Devices with their nodes, and what their plugin answered; see `Remembers.remembered`."""
        return to_row(self, workload) or None

    def restored(self, grants: Mapping[str, Json], /) -> Restored:
        """Every grant stands, and every plugin is awaited: which devices there are, they will say.

        A device that two workloads hold, by a kubelet's file or one that was edited, stays with
        both, as with a kubelet, and is told in the notes.

        Devices that a program said of this allocator (`with_devices`) are there. The plugins'
        grace periods begin when `DevicePlugins` starts.
        """
        allocator = from_rows(self, grants)
        return Restored(allocator=allocator, notes=told_doubled(allocator.grants))

    def regranted(self, before: Allocator, /) -> Collection[str]:
        """Workloads that hold other devices; nearly always none, because health is no grant."""
        if not isinstance(before, DeviceAllocator):
            return {*self.grants}
        old, new = before.grants, self.grants
        return [] if old is new else [key for key in {**old, **new} if old.get(key) is not new.get(key)]

    def holdings(self) -> Sequence[Holding]:
        """See `Accounts.holdings`."""
        return tuple(abilities.holdings(self.grants))

    def capacity(self) -> Sequence[ResourceUse]:
        """See `Accounts.capacity`; a device at several nodes counts at each."""
        return tuple(abilities.capacity(self.inventories, self._held))

    def confinement(self, owner: Owner, /) -> Confinement:
        """See `Confines.confinement`: the devices that are its own."""
        return Confinement(devices=abilities.devices_of(self.grants, owner))

    def adopted(self, claim: Claim, where: Confinement, /) -> DeviceAllocator | Shortfall:
        """See `Adopts.adopted`: the devices that `where` names, with or without their plugin."""
        wanted = {one: amount_of(claim, one) for one in sorted(claim.amounts) if self._is_ours(one)}
        return abilities.adopted(self, claim, where, {one: count for one, count in wanted.items() if count})

    def kubelet_key(self) -> str:
        """`kubelet_internal_checkpoint`."""
        return DEVICE_STATE

    def to_kubelet(self, before: Allocator | None = None, /) -> DeviceManagerState | None:
        """The kubelet's file; None where nothing but devices' health or presence changed."""
        alike = isinstance(before, DeviceAllocator) and read_alike(before, self)
        return None if alike else remembered(self)

    def from_kubelet(self, file: Checkpoint, /) -> Mapping[str, Recalled]:
        """What a kubelet's file says of each workload.

        Raises:
            DecodeError: A device is on a NUMA node that no machine has.
        """
        return abilities.from_kubelet_file(attrs.evolve(self, grants={}, held={}), file)

    # What the methods above share.

    def _allocate(
        self, claim: Claim, resource: str, wanted: int, affinity: int | None
    ) -> DeviceAllocator | Shortfall | NotYet:
        own = self.grants.get(claim.owner.workload, {}).get((claim.owner.member, resource))
        if own is not None:
            return self if len(own.ids) == wanted else _changed(claim, resource, wanted, len(own.ids))
        inventory = self._ready(resource)
        if isinstance(inventory, NotYet):
            return inventory
        devices = inventory.devices
        questions: list[PreferenceQuestion] = []
        chosen = pick(
            devices,
            wanted,
            available=devices.healthy & ~self._held.get(resource, 0),
            reusable=self._reusable(claim, resource, devices),
            affinity=affinity,
            prefer=self._preferring(inventory, wanted, questions),
        )
        if chosen is None:
            return self._short(claim, inventory, wanted)
        grant = Grant(places=devices.places_of(chosen))
        held = {**self.grants.get(claim.owner.workload, {}), (claim.owner.member, resource): grant}
        return attrs.evolve(
            self,
            grants={**self.grants, claim.owner.workload: held},
            held={**self._held, resource: self._held.get(resource, 0) | chosen},
            unanswered=(*self.unanswered, *questions)[-_KEPT:],
        )

    def _preferring(
        self, inventory: Inventory, wanted: int, questions: list[PreferenceQuestion]
    ) -> Callable[[int, int], int | None]:
        """Which devices its plugin would take; what it has not said yet is added to the questions."""
        devices = inventory.devices

        def prefer(among: int, settled: int) -> int | None:
            if not inventory.options.preferred_allocation:
                return None
            question = PreferenceQuestion(
                resource=inventory.resource,
                available=devices.ids_of(among),
                must_include=devices.ids_of(settled),
                size=wanted,
            )
            answer = self.answers.get(question)
            if answer is None:
                questions.append(question)
                return None
            return devices.mask_of(answer)

        return prefer


def _changed(claim: Claim, resource: str, wanted: int, held: int) -> Shortfall:
    return Shortfall(
        resource=resource,
        wanted=wanted,
        free=held,
        detail=f"{claim.owner.member} holds {held} {resource} and asks for {wanted} now; "
        "release it before it is admitted with another number",
    )
