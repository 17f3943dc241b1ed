"""Who holds which devices, as one value, and what it says of claims; decisions stand on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nodealloc import _attrs as attrs
from nodealloc._arguments import wrong
from nodealloc._frozen import Frozen, freeze
from nodealloc.devices._grants import Grant, Grants, doubled
from nodealloc.devices._hints import held_hints
from nodealloc.devices._inventory import DeviceList, Inventory
from nodealloc.devices._life import Phase
from nodealloc.devices._preferences import Answers, PreferenceQuestion
from nodealloc.idset import MAX_ID
from nodealloc.podspec import is_extended_resource
from nodealloc.topology import Claim, ClaimKind, CountedHints, NotYet, Shortfall, TopologyHint, lent, peak

__all__ = ["DeviceStock", "amount_of", "masks", "resources_of", "wanted_of"]


def masks(inventories: Mapping[str, Inventory], grants: Grants, /) -> dict[str, int]:
    """Per resource the devices that somebody holds, as far as they are listed."""
    ids: dict[str, set[str]] = {}
    for of_members in grants.values():
        for (_, resource), grant in of_members.items():
            ids.setdefault(resource, set()).update(grant.ids)
    return {
        resource: inventories[resource].devices.mask_of(there)
        for resource, there in ids.items()
        if resource in inventories
    }


def _are_nodes(_: object, __: object, nodes: tuple[int, ...]) -> None:
    if nodes != tuple(sorted(set(nodes))) or not nodes or nodes[0] < 0 or nodes[-1] > MAX_ID:
        raise wrong(
            "DeviceAllocator.nodes", nodes, f"ids of NUMA nodes from 0 to {MAX_ID}, ascending, each once"
        )


@attrs.frozen(kw_only=True)
class DeviceStock:
    """Devices of every resource, and who holds them: the fields of `DeviceAllocator`, which tells of each."""

    nodes: tuple[int, ...] = attrs.field(default=(0,), validator=_are_nodes)
    inventories: Mapping[str, Inventory] = attrs.field(factory=Frozen[str, Inventory], validator=freeze)
    grants: Grants = attrs.field(factory=Frozen[str, Mapping[tuple[str, str], Grant]], validator=freeze)
    answers: Answers = attrs.field(
        factory=Frozen[PreferenceQuestion, tuple[str, ...]], validator=freeze, eq=False
    )
    awaited: frozenset[str] | None = None
    retry_s: float = 1.0
    unanswered: tuple[PreferenceQuestion, ...] = attrs.field(default=(), eq=False)
    name: str = "devices"
    _held: Mapping[str, int] = attrs.field(
        default=attrs.Factory(lambda self: masks(self.inventories, self.grants), takes_self=True),
        eq=False,
        repr=False,
        alias="held",
    )
    _doubled: frozenset[tuple[str, str]] = attrs.field(
        default=attrs.Factory(lambda self: doubled(self.grants), takes_self=True),
        eq=False,
        repr=False,
        alias="doubled",
    )

    def _is_ours(self, resource: str) -> bool:
        if resource in self.inventories:
            return True
        return is_extended_resource(resource) if self.awaited is None else resource in self.awaited

    def _ready(self, resource: str) -> Inventory | NotYet:
        inventory = self.inventories.get(resource)
        if inventory is None:
            reason = f"plugin {resource} has not registered"
        elif inventory.phase is Phase.AWAITED:
            reason = f"plugin {resource} has not registered again since the restart"
        elif inventory.phase is Phase.CONNECTING:
            reason = f"plugin {resource} has registered and not listed its devices yet"
        elif inventory.phase is Phase.LOST:
            reason = f"plugin {resource} is away ({inventory.trouble}); its grace period is not over"
        elif inventory.phase is Phase.SERVING and not inventory.settled:
            reason = f"plugin {resource} has listed no device since it registered"
        else:
            return inventory
        return NotYet(blocker=resource, message=reason, after_s=self.retry_s)

    def _stands(self, claims: Sequence[Claim], resource: str) -> bool:
        """Whether these claims are held; an init member may have ended and given back what it had."""
        held = {claim.owner: len(self._already([claim], resource)) for claim in claims}
        return any(held.values()) and all(
            held[claim.owner] == amount_of(claim, resource)
            or (claim.kind is ClaimKind.INIT and not held[claim.owner])
            for claim in claims
        )

    def _already(self, claims: Sequence[Claim], resource: str) -> frozenset[str]:
        """What these claims hold of a resource."""
        ids: frozenset[str] = frozenset()
        for claim in claims:
            grant = self.grants.get(claim.owner.workload, {}).get((claim.owner.member, resource))
            if grant is not None:
                ids |= grant.ids
        return ids

    def _hints_of_held(
        self, claim: Claim, resource: str, ids: frozenset[str]
    ) -> list[TopologyHint] | CountedHints | None:
        """From the places as they were remembered: the plugin may be away."""
        places: dict[str, tuple[int, ...]] = {}
        for (_, name), grant in self.grants.get(claim.owner.workload, {}).items():
            if name == resource:
                places.update({one: nodes for one, nodes in grant.nodes.items() if one in ids})
        here = [tuple(node for node in places[i] if node in self.nodes) for i in sorted(places)]
        placed = [place for place in here if place]
        return held_hints(self.nodes, placed) if placed else None

    def _reusable(self, claim: Claim, resource: str, devices: DeviceList) -> int:
        """What ended members held and no other member of the workload holds."""
        if not claim.reuse:
            return 0
        held = self.grants.get(claim.owner.workload, {}).items()
        ended, kept = lent(claim, [(member, grant.ids) for (member, name), grant in held if name == resource])
        free = set[str]().union(*ended) - set[str]().union(*kept)
        return devices.mask_of(free) & devices.healthy

    def _short(self, claim: Claim, inventory: Inventory, wanted: int) -> Shortfall:
        """Counted over all nodes: those outside of the affinity are taken where it has too few."""
        devices = inventory.devices
        free = (devices.healthy & ~self._held.get(inventory.resource, 0)).bit_count()
        if inventory.phase is Phase.GONE:
            why = "its plugin is gone; start it again"
        elif not devices.ids:
            why = "there is none here; ask another node"
        else:
            sick = len(devices.ids) - devices.healthy.bit_count()
            more = "" if wanted > len(devices.ids) else " or release some"
            why = f"{len(devices.ids)} exist, {sick} of them unhealthy; ask for fewer{more}"
        return Shortfall(
            resource=inventory.resource,
            wanted=wanted,
            free=free,
            detail=f"{claim.owner.member}: {wanted} {inventory.resource} wanted, {free} free: {why}",
        )


def resources_of(claims: Sequence[Claim], /) -> list[str]:
    """What claims ask for, by name."""
    return sorted({resource for claim in claims for resource in claim.amounts})


def amount_of(claim: Claim, resource: str, /) -> int:
    """How many a claim asks for."""
    amount = claim.amounts.get(resource)
    return 0 if amount is None else max(amount.value, 0)


def wanted_of(claims: Sequence[Claim], resource: str, /) -> int:
    """How many claims need at once at most."""
    return peak(claims, lambda claim: amount_of(claim, resource))
