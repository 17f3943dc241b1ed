"""How plugins take part in a node's decisions."""

from __future__ import annotations

from nodealloc import _attrs as attrs
from nodealloc._typed import typed_fields
from nodealloc.devices._allocator import DeviceAllocator
from nodealloc.devices.plugins._reconciler import DevicePlugins
from nodealloc.topology import Allocator, Snapshot

__all__ = ["DeviceAdvisor"]


@typed_fields
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
        kept = tuple(_settled(one) for one in outcome.allocators)
        same = all(one is other for one, other in zip(kept, outcome.allocators, strict=True))
        return outcome if same else attrs.evolve(outcome, allocators=kept)


def _settled(allocator: Allocator) -> Allocator:
    return allocator.without_answers() if isinstance(allocator, DeviceAllocator) else allocator
