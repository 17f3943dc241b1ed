"""What plugins say of their resources, kept where the node remembers it; the ends of their grace periods."""

from __future__ import annotations

from collections.abc import Callable

from nodealloc.devices._allocator import DeviceAllocator
from nodealloc.devices._errors import RegistrationRefusedError
from nodealloc.devices._inventory import Inventory
from nodealloc.devices._ports import AllocatorKeeper
from nodealloc.devices._room import with_room_for
from nodealloc.dsw_asw import (
    Cancel,
    Clock,
    Done,
    Failed,
    InlineExecutor,
    Outcome,
    Plan,
    Reconciler,
    Step,
    View,
    World,
)
from nodealloc.errors import RetryableError, UncertainError

__all__ = ["Inventories", "InventoryDomain", "Told"]

_SOON_S = 0.1
"""The least that a keeper which could not remember something is left alone for."""

Told = Callable[[Inventory | None, DeviceAllocator, str], None]
"""Is called after a change: a resource's inventory before, the allocator after, the resource."""


class InventoryDomain:
    """A `Domain`: wanted is what the life of a resource has come to, there is what the keeper has of it.

    Args:
        keeper: Holds the allocator.
        said: What plugins said; resources that had to make room are dropped from it.
        most: Resources that are known, at most.
        grace_s: How long after the end of a stream the capacity stands.
        told: Is told of every change.
    """

    def __init__(
        self, keeper: AllocatorKeeper, said: World[str, Inventory], *, most: int, grace_s: float, told: Told
    ) -> None:
        self._keeper = keeper
        self._said = said
        self._most = most
        self._grace_s = grace_s
        self._told = told

    def plan(self, view: View[str, Inventory, Inventory, Inventory], /) -> Plan[Inventory, Inventory]:
        """Have it kept as it is by now; look again when its grace period is over."""
        if view.want is None:
            return Plan(have=None)
        now = view.want.aged(now_s=view.now_s, grace_s=self._grace_s)
        again_at_s = now.grace_ends_s(self._grace_s)
        if view.have == now:
            return Plan(again_at_s=again_at_s)
        step = Step(scope=(view.key,), verb="keep", detail=now, subject=now.generation)
        return Plan(steps=[step], again_at_s=again_at_s)

    def perform(self, step: Step[Inventory], _cancel: Cancel, /) -> None | Failed[None]:
        """Change the keeper's allocator, and tell of it."""
        inventory = step.detail
        resource = inventory.resource

        def altered(allocator: DeviceAllocator) -> DeviceAllocator:
            return with_room_for(allocator, resource, self._most).with_inventory(inventory)

        try:
            before, after = self._keeper.alter(altered)
        except (RetryableError, UncertainError) as error:  # a full disk is no plugin's fault
            return Failed(error, again_after_s=max(error.after_s, _SOON_S))
        for name, gone in before.inventories.items():
            if name not in after.inventories:
                self._forget(name, gone)
        older = before.inventories.get(resource)
        if older is not after.inventories[resource]:
            self._told(older, after, resource)
        return None

    def settled(
        self, have: Inventory | None, step: Step[Inventory], outcome: Outcome[None], /
    ) -> Inventory | None:
        """What was kept is there."""
        return step.detail if isinstance(outcome, Done) else have

    def _forget(self, resource: str, made_room: Inventory) -> None:
        """What a plugin has said of it since stands."""
        self._said.alter(resource, lambda known: None if known == made_room else known, by="room")


class Inventories:
    """Every resource's inventory, changed by what its plugin says. Thread-safe.

    Args:
        keeper: Holds the allocator.
        clock: Time.
        most: Resources that are known, at most.
        grace_s: How long after the end of a stream the capacity stands.
        told: Is told of every change.

    Attributes:
        engine: Keeps them; to be driven together with whoever changes them.
    """

    def __init__(
        self, keeper: AllocatorKeeper, clock: Clock, *, most: int, grace_s: float, told: Told
    ) -> None:
        self._keeper = keeper
        self._clock = clock
        self._grace_s = grace_s
        self._said: World[str, Inventory] = World("device plugins")
        self._kept: World[str, Inventory] = World("device inventories")
        self.engine: Reconciler[str, Inventory, Inventory, Inventory] = Reconciler(
            InventoryDomain(keeper, self._said, most=most, grace_s=grace_s, told=told),
            desired=self._said,
            actual=self._kept,
            # Each step is a change of one value under the keeper's lock, which no two could have at once.
            executor=InlineExecutor(),
            clock=clock,
            name="device inventories",
        )

    def observe(self, found: Callable[[Inventory], Inventory], /) -> None:
        """Take in what the keeper knows and no plugin has spoken of so far.

        Args:
            found: What it has come to by now.
        """
        for resource, inventory in self._keeper.current().inventories.items():
            if resource not in self._said:
                seen = found(inventory)

                def unless_said(known: Inventory | None, seen: Inventory = seen) -> Inventory:
                    return seen if known is None else known  # its plugin has spoken meanwhile

                self._kept.put(resource, inventory, by="observe")
                self._said.alter(resource, unless_said, by="observe")
        self.engine.run_until_quiet()

    def change(self, resource: str, change: Callable[[Inventory], Inventory], /) -> None:
        """Change an inventory; kept on return, unless the keeper cannot remember it yet.

        Raises:
            RegistrationRefusedError: The resource is a new one, and there is no room for it.
        """
        now_s = self._clock.monotonic_s()

        def changed(known: Inventory | None) -> Inventory:
            before = known or self._keeper.current().inventories.get(resource)
            if before is None:
                return change(Inventory(resource=resource))
            return change(before.aged(now_s=now_s, grace_s=self._grace_s))

        self._said.alter(resource, changed, by="plugin")
        self.engine.run_until_quiet()
        for failure in self.engine.failures(resource):
            if isinstance(failure.error, RegistrationRefusedError):
                self._said.drop(resource, by="no room")
                raise RegistrationRefusedError(str(failure.error)) from failure.error
