"""What is remembered: grants and the names of resources, as the kubelet's device file has them."""

from __future__ import annotations

import attrs

from nodealloc.checkpoint._device_state import DeviceManagerState, PodDevices
from nodealloc.devices._allocator import DeviceAllocator
from nodealloc.devices._grants import Grant
from nodealloc.devices._inventory import Inventory
from nodealloc.devices._life import Phase

__all__ = ["forget_world", "remembered", "restored"]


def remembered(allocator: DeviceAllocator, /) -> DeviceManagerState:
    """The allocator as `kubelet_internal_checkpoint` keeps it.

    A grant that its plugin has not answered has no answer there either (null).
    A resource whose plugin is gone is not named.
    """
    entries = [
        PodDevices(
            pod_uid=workload,
            container_name=member,
            resource_name=resource,
            device_ids=dict(grant.places),
            alloc_resp=grant.response,
        )
        for workload, held in sorted(allocator.grants.items())
        for (member, resource), grant in sorted(held.items())
    ]
    registered = {
        resource: inventory.devices.ids_of(inventory.devices.healthy)
        for resource, inventory in sorted(allocator.inventories.items())
        if inventory.phase is not Phase.GONE
    }
    return DeviceManagerState(pod_device_entries=tuple(entries), registered_devices=registered)


def restored(allocator: DeviceAllocator, state: DeviceManagerState, /, *, now_s: float) -> DeviceAllocator:
    """An allocator that knows what was remembered, with every plugin awaited.

    Args:
        allocator: Its NUMA nodes and settings count; what it holds is replaced.
        state: From the file.
        now_s: When the grace period of the awaited plugins begins.
    """
    grants: dict[str, dict[tuple[str, str], Grant]] = {}
    resources = set(state.registered_devices or {})
    for entry in state.pod_device_entries or ():
        places = {node: tuple(ids) for node, ids in (entry.device_ids or {}).items() if ids}
        grant = Grant(places=places, response=entry.alloc_resp)
        grants.setdefault(entry.pod_uid, {})[entry.container_name, entry.resource_name] = grant
        resources.add(entry.resource_name)
    inventories = {
        resource: Inventory(resource=resource, phase=Phase.AWAITED, since_s=now_s)
        for resource in sorted(resources)
    }
    fresh = forget_world(allocator)
    return attrs.evolve(fresh, grants=grants, inventories=inventories, held={})


def forget_world(allocator: DeviceAllocator, /) -> DeviceAllocator:
    """The same settings, without devices, grants and answers."""
    return attrs.evolve(allocator, inventories={}, grants={}, answers={}, unanswered=(), held={})
