"""The hints of one claim for CPUs, devices and memory, by the kubelet's rules, one set of nodes at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TypeVar

import attrs

from nodealloc.cpuset import CpuAllocator, StaticPolicy
from nodealloc.devices import Device, DeviceAllocator
from nodealloc.machine import Machine
from nodealloc.memblocks import MemoryAllocator
from nodealloc.topology import Claim, Hints, TopologyHint
from tests.property.test_memblocks_exhaustive import Plain

__all__ = ["of_cpus", "of_devices", "of_memory"]

T = TypeVar("T")


def masks_of(nodes: Sequence[int]) -> Iterator[int]:
    """Every set of nodes: small ones first, then by ids."""
    for size in range(1, len(nodes) + 1):
        for chosen in combinations(nodes, size):
            yield sum(1 << one for one in chosen)


def of_cpus(allocator: CpuAllocator, machine: Machine, claim: Claim) -> Hints:
    """Where whole CPUs can be had, counted on the CPUs themselves."""
    policy, amount = allocator.policy, claim.amounts.get("cpu")
    assert isinstance(policy, StaticPolicy)
    if not claim.exclusive or amount is None or not amount.value:
        return {}
    wanted = amount.value
    place = {cpu.id: 1 << cpu.numa_nodes[0] for cpu in machine.cpus}
    socket = {cpu.id: cpu.socket for cpu in machine.cpus}
    held = {owner: {*one.cpus} for owner, one in allocator.state.items()}
    lent = _lent(
        claim, {who.member: what for who, what in held.items() if who.workload == claim.owner.workload}
    )
    taken = {cpu for cpus in held.values() for cpu in cpus} | {*policy.reserved}
    free = place.keys() - taken | lent
    nodes = sorted({mask.bit_length() - 1 for mask in place.values()})
    ever = [mask for mask in masks_of(nodes) if _near(place, place, mask) >= wanted]
    least = ever[0].bit_count() if ever else len(nodes)
    sockets = -(-least // (len(nodes) // len({*socket.values()}))) if policy.options.align_by_socket else 0

    def good(mask: int) -> bool:
        touched = {socket[cpu] for cpu, node in place.items() if node & mask}
        return mask.bit_count() == least or len(touched) == sockets

    return {
        "cpu": [
            TopologyHint(mask, good(mask))
            for mask in masks_of(nodes)
            if _near(free, place, mask) >= wanted and _near(lent, place, mask) == len(lent)
        ]
    }


def of_devices(
    allocator: DeviceAllocator, listed: Mapping[str, Sequence[Device]], nodes: Sequence[int], claim: Claim
) -> Hints:
    """Where devices can be had; one near several nodes counts once for a set with any of them."""
    found: dict[str, list[TopologyHint] | None] = {}
    for resource, devices in listed.items():
        wanted = claim.amounts[resource].value if resource in claim.amounts else 0
        if not wanted:
            continue
        place = {one.id: one.numa_nodes for one in devices if one.numa_nodes}
        healthy = {one.id for one in devices if one.health == "Healthy"}
        held = {
            (workload, member): grant.ids
            for workload, members in allocator.grants.items()
            for (member, name), grant in members.items()
            if name == resource
        }
        own = {member: {*ids} for (workload, member), ids in held.items() if workload == claim.owner.workload}
        lent = _lent(claim, own) & healthy & place.keys()
        free = healthy & place.keys() - {one for ids in held.values() for one in ids} | lent
        least = next(
            (mask.bit_count() for mask in masks_of(nodes) if _near(place, place, mask) >= wanted), len(nodes)
        )
        found[resource] = (
            [
                TopologyHint(mask, mask.bit_count() == least)
                for mask in masks_of(nodes)
                if _near(free, place, mask) >= wanted and _near(lent, place, mask) == len(lent)
            ]
            if place
            else None
        )
    return found


def of_memory(allocator: MemoryAllocator, claim: Claim) -> Hints:
    """Where memory and huge pages can be had: the same hints for each resource, or none at all."""
    amounts = {name: one for name, one in claim.amounts.items() if name in {"memory", "hugepages-2Mi"}}
    plain = Plain(allocator, attrs.evolve(claim, amounts=amounts))
    hints = plain.hints() if claim.exclusive and plain.asked else []
    return dict.fromkeys(plain.asked, hints) if hints else {}


def _near(some: Iterable[T], place: Mapping[T, int], mask: int) -> int:
    """How many of them are near a set of nodes."""
    return sum(1 for one in some if place[one] & mask)


def _lent(claim: Claim, held: Mapping[str, set[T]]) -> set[T]:
    """What members that have ended held, and no other member holds."""
    ended = {one for member, those in held.items() if member in claim.reuse for one in those}
    return ended - {one for member, those in held.items() if member not in claim.reuse for one in those}
