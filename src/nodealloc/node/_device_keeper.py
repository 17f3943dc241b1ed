"""How devices are remembered, and how their plugins take part in a node's decisions."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping

import attrs

from nodealloc.checkpoint import DEVICE_STATE, Checkpoint
from nodealloc.devices import DeviceAllocator, DevicePlugins, from_rows, read_alike, remembered, to_row
from nodealloc.node._node import NodeAllocator
from nodealloc.node._ports import Restored
from nodealloc.podspec import Json
from nodealloc.topology import Allocator, Snapshot

__all__ = ["DeviceAdvisor", "DeviceKeeper", "NodeDevices"]


@attrs.frozen
class DeviceKeeper:
    """A `Keeper` for `nodealloc.devices.DeviceAllocator`.

    Attributes:
        clock: Monotonic seconds; the grace periods of awaited plugins begin with it.
    """

    clock: Callable[[], float] = time.monotonic

    def grants(self, allocator: Allocator, workload: str, /) -> Json:
        """Devices with their nodes, and what their plugin answered."""
        return to_row(_devices(allocator), workload) or None

    def restore(self, allocator: Allocator, grants: Mapping[str, Json], /) -> Restored:
        """Every grant stands, and every plugin is awaited: which devices there are, they will say."""
        return Restored(allocator=from_rows(_devices(allocator), grants, now_s=self.clock()))

    def files(self, allocator: Allocator, before: Allocator | None = None, /) -> Mapping[str, Checkpoint]:
        """`kubelet_internal_checkpoint`, unless nothing but devices' health or presence changed."""
        if before is not None and read_alike(_devices(before), _devices(allocator)):
            return {}
        return {DEVICE_STATE: remembered(_devices(allocator))}


@attrs.frozen
class NodeDevices:
    """The devices of a node as `nodealloc.devices.DevicePlugins` changes them: an `AllocatorKeeper`.

    Attributes:
        node: Holds the snapshot.
        name: Of the device allocator in it.
    """

    node: NodeAllocator
    name: str = "devices"

    def current(self) -> DeviceAllocator:
        """The allocator as it is now."""
        return _devices(next(one for one in self.node.snapshot.allocators if one.name == self.name))

    def alter(
        self, change: Callable[[DeviceAllocator], DeviceAllocator], /
    ) -> tuple[DeviceAllocator, DeviceAllocator]:
        """Replace it, and remember the workloads whose grants became others."""
        found: list[DeviceAllocator] = []

        def changed(allocator: Allocator) -> Allocator:
            before = _devices(allocator)
            found[:] = [before, change(before)]
            return found[1]

        self.node.alter(self.name, changed, touched=_touched)
        return found[0], found[1]


@attrs.frozen
class DeviceAdvisor:
    """Asks device plugins which devices go well together: an `Advisor` of `NodeAllocator`.

    Attributes:
        plugins: The shell that knows them.
    """

    plugins: DevicePlugins

    def ask(self, outcome: Snapshot, /) -> bool:
        """Ask what the decision could not answer; True when there are answers now."""
        return any(self.plugins.ask(one) for one in outcome.allocators if isinstance(one, DeviceAllocator))

    def settled(self, outcome: Snapshot, /) -> Snapshot:
        """The outcome without questions and answers, which have served."""
        kept = tuple(
            one.without_answers() if isinstance(one, DeviceAllocator) else one for one in outcome.allocators
        )
        return attrs.evolve(outcome, allocators=kept)


def _touched(before: Allocator, after: Allocator) -> Collection[str]:
    """Workloads that hold other devices; nearly always none, because health is no grant."""
    old, new = _devices(before).grants, _devices(after).grants
    return [] if old is new else [key for key in {**old, **new} if old.get(key) is not new.get(key)]


def _devices(allocator: Allocator) -> DeviceAllocator:
    if not isinstance(allocator, DeviceAllocator):
        kind = type(allocator).__name__
        raise TypeError(f"{allocator.name} is a {kind}, no DeviceAllocator: give it another keeper")
    return allocator
