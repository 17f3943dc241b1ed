"""Devices as an allocator, and a plugin without a socket."""

from __future__ import annotations

from typing import assert_type

from nodealloc.devices import (
    Device,
    DeviceAllocator,
    DeviceLedger,
    DeviceList,
    Inventory,
    PluginConnection,
    PluginOptions,
)
from nodealloc.devices.plugins import DevicePlugins
from nodealloc.podspec import Quantity
from nodealloc.testing.devices import FakePlugin, wait_until
from nodealloc.topology import Claim, NotYet, Owner, Shortfall, TopologyHint

GPU = "example.com/gpu"
listed = DeviceList.of([Device("a", numa_nodes=1), Device("b", numa_nodes=2)], nodes=(0, 1))
serving = Inventory(resource=GPU).registered(1, now_s=0.0).listed(1, listed, PluginOptions(), now_s=0.0)
allocator = DeviceAllocator(nodes=(0, 1)).with_inventory(serving)
claim = Claim(owner=Owner("job", "rank-0"), amounts={GPU: Quantity.of(1)})
granted = allocator.allocate(claim, TopologyHint(2, preferred=True))
assert_type(granted, DeviceAllocator | Shortfall | NotYet)
assert isinstance(granted, DeviceAllocator)
assert granted.grants["job"]["rank-0", GPU].ids == {"b"}

plugin = FakePlugin((Device("a"),))


def connect(_socket: str) -> PluginConnection:
    """The plugin, whatever the path."""
    return plugin


ledger = DeviceLedger(DeviceAllocator())
with DevicePlugins(ledger, connect=connect) as plugins:
    plugins.register(GPU, "/anywhere", ["v1beta1"])
    wait_until(lambda: any(one.settled for one in ledger.current().inventories.values()))
