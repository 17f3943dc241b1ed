"""What devices can do for a node besides being granted: be remembered, shown, adopted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

import attrs

from nodealloc.checkpoint import Checkpoint, DeviceManagerState
from nodealloc.devices._grants import NO_NODE, Grant, Grants
from nodealloc.devices._inventory import Inventory
from nodealloc.devices._state import restored, to_row
from nodealloc.devices._stock import DeviceStock, masks
from nodealloc.idset import NodeSet
from nodealloc.topology import Claim, Confinement, Holding, Owner, Recalled, ResourceUse, Shortfall

__all__ = ["adopted", "capacity", "devices_of", "from_kubelet_file", "holdings"]

S = TypeVar("S", bound=DeviceStock)


def holdings(grants: Grants, /) -> Iterator[Holding]:
    """See `Accounts.holdings`."""
    for workload, of_members in grants.items():
        for (member, resource), grant in of_members.items():
            ids = tuple(sorted(grant.ids))
            nodes = NodeSet(node for node in grant.places if node != NO_NODE)
            owner = Owner(workload, member)
            yield Holding(owner=owner, resource=resource, amount=len(ids), nodes=nodes, ids=ids)


def capacity(inventories: Mapping[str, Inventory], taken: Mapping[str, int], /) -> Iterator[ResourceUse]:
    """See `Accounts.capacity`.

    Args:
        inventories: By resource.
        taken: Resource to the devices that somebody holds, as a mask.
    """
    for resource, inventory in inventories.items():
        devices = inventory.devices
        nowhere: tuple[int | None, int] = None, devices.everything & ~devices.placed
        for node, mask in (*devices.by_node.items(), nowhere):
            there = mask & devices.healthy
            if mask:
                free = (there & ~taken.get(resource, 0)).bit_count()
                yield ResourceUse(resource=resource, node=node, allocatable=there.bit_count(), available=free)


def devices_of(grants: Grants, owner: Owner, /) -> dict[str, tuple[str, ...]]:
    """Resource to the ids that an owner holds."""
    return {
        resource: tuple(sorted(grant.ids))
        for (member, resource), grant in grants.get(owner.workload, {}).items()
        if member == owner.member
    }


def from_kubelet_file(empty: DeviceStock, file: Checkpoint, /) -> dict[str, Recalled]:
    """See `KubeletFile.from_kubelet`."""
    if not isinstance(file, DeviceManagerState):
        return {}
    allocator = restored(empty, file)
    return {
        workload: Recalled(
            members=tuple(dict.fromkeys(member for member, _ in of_members)),
            grants=to_row(allocator, workload),
        )
        for workload, of_members in allocator.grants.items()
    }


def adopted(allocator: S, claim: Claim, where: Confinement, wanted: Mapping[str, int], /) -> S | Shortfall:
    """See `Adopts.adopted`.

    Args:
        allocator: As it is.
        claim: Whose container runs.
        where: With the devices that it uses.
        wanted: Resource to how many the claim asks for.
    """
    grants = dict(allocator.grants.get(claim.owner.workload, {}))
    for resource, count in wanted.items():
        ids = where.devices.get(resource)
        fault = "nobody has said which of them it uses" if ids is None else ""
        if ids is not None:
            fault = _fault(allocator.grants, claim, resource, ids, count)
        if ids is None or fault:
            return Shortfall(resource=resource, wanted=count, free=0, detail=f"{resource}: {fault}")
        grants[claim.owner.member, resource] = _grant(allocator.inventories.get(resource), ids)
    if not wanted:
        return allocator
    after = {**allocator.grants, claim.owner.workload: grants}
    awaited = {one: Inventory(resource=one) for one in wanted if one not in allocator.inventories}
    inventories = {**allocator.inventories, **awaited}
    return attrs.evolve(allocator, grants=after, inventories=inventories, held=masks(inventories, after))


def _fault(grants: Grants, claim: Claim, resource: str, ids: tuple[str, ...], count: int) -> str:
    """What stands against these devices; "" for nothing."""
    if len(set(ids)) != count:
        return f"{count} were asked for, {len(set(ids))} are in use"
    for workload, of_members in grants.items():
        for (member, name), grant in of_members.items():
            lent = workload == claim.owner.workload and member in (*claim.reuse, claim.owner.member)
            both = grant.ids & set(ids) if name == resource and not lent else frozenset[str]()
            if both:
                return f"{', '.join(sorted(both))} of {workload}/{member}, which holds them"
    return ""


def _grant(inventory: Inventory | None, ids: tuple[str, ...]) -> Grant:
    """The devices at their nodes, as far as their plugin has said."""
    nodes_of = inventory.devices.nodes_of if inventory else _nowhere
    return Grant.of((identity, nodes_of(identity)) for identity in ids)


def _nowhere(_identity: str) -> tuple[int, ...]:
    return ()
