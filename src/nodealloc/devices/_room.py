"""Pure: room for one more resource where only so many may be known."""

from __future__ import annotations

from nodealloc.devices._allocator import DeviceAllocator
from nodealloc.devices._errors import RegistrationRefusedError
from nodealloc.devices._inventory import Inventory
from nodealloc.devices._life import Phase

__all__ = ["with_room_for"]


def with_room_for(allocator: DeviceAllocator, resource: str, most: int, /) -> DeviceAllocator:
    """The allocator with room for a resource: the one that was away longest is forgotten if need be.

    Forgotten are resources of which nobody holds anything, whose plugin never
    listed a device, or is gone. A flood of names pushes out itself.

    Raises:
        RegistrationRefusedError: All that are known are in use.
    """
    if resource in allocator.inventories or len(allocator.inventories) < most:
        return allocator
    held = {name for grants in allocator.grants.values() for _, name in grants}
    idle = [one for name, one in allocator.inventories.items() if name not in held and _is_idle(one)]
    if not idle:
        raise RegistrationRefusedError(
            f"{resource}: {most} resources are known, which is the most there may be; "
            "stop a plugin, or raise the agent's limit"
        )
    return allocator.without_inventory(min(idle, key=lambda one: one.since_s).resource)


def _is_idle(inventory: Inventory) -> bool:
    return inventory.phase is Phase.GONE or (inventory.phase is Phase.LOST and not inventory.devices.ids)
