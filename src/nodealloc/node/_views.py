"""What a node holds and has left, as values: for people, for schedulers, for a status page."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import attrs

from nodealloc.cpuset import CpuAllocator, StaticPolicy
from nodealloc.idset import NodeSet
from nodealloc.memblocks import MemoryAllocator
from nodealloc.topology import Allocator, Owner, Snapshot

__all__ = ["Holding", "ResourceUse", "describe", "holdings", "resource_use"]


@attrs.frozen(kw_only=True)
class Holding:
    """What one owner holds of one resource.

    Attributes:
        owner: Workload and member.
        resource: `cpu`, `memory`, `hugepages-2Mi`, `example.com/gpu`.
        amount: Whole CPUs, bytes, devices.
        nodes: NUMA nodes that it comes from; empty where that is not known.
        what: Which, in words: `2-3,18-19`, `gpu-0, gpu-1`; "" for memory.
    """

    owner: Owner
    resource: str
    amount: int
    nodes: NodeSet
    what: str = ""


@attrs.frozen(kw_only=True)
class ResourceUse:
    """One resource on one NUMA node, in whole CPUs, bytes or devices.

    Attributes:
        resource: Its name.
        node: NUMA node id; None for devices without one.
        allocatable: What could be held were the node empty.
        available: What nobody holds now.
    """

    resource: str
    node: int | None
    allocatable: int
    available: int


def holdings(snapshot: Snapshot, /) -> tuple[Holding, ...]:
    """Everything that is held, by owner and resource. Looks at the shipped allocators."""
    found = [one for allocator in snapshot.allocators for one in _held(allocator)]
    return tuple(sorted(found, key=lambda one: (one.owner, one.resource, one.nodes.mask)))


def resource_use(snapshot: Snapshot, /) -> tuple[ResourceUse, ...]:
    """What there is and what is left, by resource and NUMA node. Looks at the shipped allocators."""
    found = [one for allocator in snapshot.allocators for one in _use(allocator)]
    return tuple(sorted(found, key=lambda one: (one.resource, -1 if one.node is None else one.node)))


def describe(snapshot: Snapshot, /) -> str:
    """Both as text, a line each."""
    lines = [
        f"{one.resource} on {'no node' if one.node is None else f'node {one.node}'}: "
        f"{one.available} of {one.allocatable} left"
        for one in resource_use(snapshot)
    ]
    lines += [
        f"{one.owner.workload}/{one.owner.member} holds {one.amount} {one.resource}"
        + (f" on nodes {one.nodes}" if one.nodes else "")
        + (f": {one.what}" if one.what else "")
        for one in holdings(snapshot)
    ]
    return "\n".join(lines)


def _held(allocator: Allocator) -> Iterator[Holding]:
    if isinstance(allocator, CpuAllocator):
        layout = allocator.policy.layout
        for owner, assignment in allocator.state.items():
            nodes = NodeSet.from_mask(layout.nodes_of(assignment.cpus.mask))
            cpus = assignment.cpus
            yield Holding(owner=owner, resource="cpu", amount=len(cpus), nodes=nodes, what=str(cpus))
    elif isinstance(allocator, MemoryAllocator):
        for workload, members in allocator.state.grants.items():
            for member, blocks in members.items():
                for block in blocks:
                    owner, size = Owner(workload, member), block.size_bytes
                    yield Holding(owner=owner, resource=block.resource, amount=size, nodes=block.node_set)
    elif _is_devices(allocator):
        yield from _held_devices(allocator)


def _use(allocator: Allocator) -> Iterator[ResourceUse]:
    if isinstance(allocator, CpuAllocator):
        policy = allocator.policy
        usable = policy.allocatable if isinstance(policy, StaticPolicy) else 0
        for node, cpus in zip(policy.layout.node_ids, policy.layout.nodes, strict=True):
            there, free = (cpus & usable).bit_count(), (cpus & usable & ~allocator.state.held).bit_count()
            yield ResourceUse(resource="cpu", node=node, allocatable=there, available=free)
    elif isinstance(allocator, MemoryAllocator):
        for memory in allocator.tables():
            for resource, table in memory.tables.items():
                there, free = table.allocatable, table.free
                yield ResourceUse(resource=resource, node=memory.node, allocatable=there, available=free)
    elif _is_devices(allocator):
        yield from _use_of_devices(allocator)


def _is_devices(allocator: Allocator) -> bool:
    """Whether these are devices; their package is not loaded for the sake of nodes without any."""
    devices = sys.modules.get("nodealloc.devices")
    return devices is not None and isinstance(allocator, devices.DeviceAllocator)


def _held_devices(allocator: Allocator) -> Iterator[Holding]:
    from nodealloc.devices import NO_NODE, DeviceAllocator  # noqa: PLC0415

    assert isinstance(allocator, DeviceAllocator)  # noqa: S101 - for the type checkers
    for workload, grants in allocator.grants.items():
        for (member, resource), grant in grants.items():
            nodes = NodeSet(node for node in grant.places if node != NO_NODE)
            owner, ids = Owner(workload, member), sorted(grant.ids)
            yield Holding(owner=owner, resource=resource, amount=len(ids), nodes=nodes, what=", ".join(ids))


def _use_of_devices(allocator: Allocator) -> Iterator[ResourceUse]:
    from nodealloc.devices import DeviceAllocator  # noqa: PLC0415

    assert isinstance(allocator, DeviceAllocator)  # noqa: S101 - for the type checkers
    held: dict[str, set[str]] = {}
    for grants in allocator.grants.values():
        for (_, resource), grant in grants.items():
            held.setdefault(resource, set()).update(grant.ids)
    for resource, inventory in allocator.inventories.items():
        devices = inventory.devices
        nowhere: tuple[int | None, int] = None, devices.everything & ~devices.placed
        taken = devices.mask_of(held.get(resource, set()))
        for node, mask in (*devices.by_node.items(), nowhere):
            there = mask & devices.healthy
            if mask:
                free = (there & ~taken).bit_count()
                yield ResourceUse(resource=resource, node=node, allocatable=there.bit_count(), available=free)
