"""Values only: how every plugin is doing, for people."""

from __future__ import annotations

from collections.abc import Mapping

from nodealloc import _attrs as attrs
from nodealloc.devices._allocator import DeviceAllocator
from nodealloc.devices._inventory import Capacity
from nodealloc.devices._life import Phase

__all__ = ["DevicePluginStatus", "status_of"]


@attrs.frozen(kw_only=True)
class DevicePluginStatus:
    """One resource's plugin, for people.

    Attributes:
        resource: What it serves.
        phase: Where its life stands.
        socket: Where it listens, or "" when it has not registered.
        generation: Of its registration.
        capacity: What it offers.
        for_s: How long it has been in this phase, in seconds.
        trouble: Why it is not serving, or "".
        findings: What was wrong with its last list.
    """

    resource: str
    phase: Phase
    socket: str
    generation: int
    capacity: Capacity
    for_s: float
    trouble: str
    findings: tuple[str, ...]


def status_of(
    allocator: DeviceAllocator, sockets: Mapping[str, str], /, *, now_s: float
) -> tuple[DevicePluginStatus, ...]:
    """Every resource's plugin, by name.

    Args:
        allocator: Knows the resources.
        sockets: Resource to where its plugin listens now.
        now_s: Monotonic seconds.
    """
    return tuple(
        DevicePluginStatus(
            resource=resource,
            phase=inventory.phase,
            socket=sockets.get(resource, ""),
            generation=inventory.generation,
            capacity=inventory.capacity,
            for_s=now_s - inventory.since_s,
            trouble=inventory.trouble,
            findings=inventory.devices.findings,
        )
        for resource, inventory in sorted(allocator.inventories.items())
    )
