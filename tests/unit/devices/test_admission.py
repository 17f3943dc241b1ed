"""Devices inside a whole admission: aligned, refused with numbers, put off, advised, remembered."""

from __future__ import annotations

from pathlib import Path

from nodealloc.checkpoint import DEVICE_STATE, KUBELET_FORMATS, DeviceManagerState, FileStore
from nodealloc.devices import DeviceAllocator, DeviceLedger, DeviceList, Inventory, PluginOptions
from nodealloc.devices.plugins import DevicePlugins
from nodealloc.podspec import Container, Pod, Quantity
from nodealloc.testing.device_plugin import numbered
from nodealloc.testing.devices import FakePlugin, wait_until
from nodealloc.topology import (
    Admitted,
    NotYet,
    NumaTopology,
    Policy,
    PolicyName,
    Refusal,
    Snapshot,
    admit,
    release,
)

GPU, NIC = "example.com/gpu", "example.com/nic"


def serving(resource: str, count: int) -> Inventory:
    """A resource whose devices are spread over two nodes."""
    devices = DeviceList.of(numbered(count, numa=(0, 1), prefix=resource[-3:]), nodes=(0, 1))
    return (
        Inventory(resource=resource).registered(1, now_s=0.0).listed(1, devices, PluginOptions(), now_s=0.0)
    )


def node(policy: PolicyName, *inventories: Inventory) -> Snapshot:
    """Two NUMA nodes with these resources."""
    allocator = DeviceAllocator(nodes=(0, 1))
    for inventory in inventories:
        allocator = allocator.with_inventory(inventory)
    return Snapshot(numa=NumaTopology(nodes=(0, 1)), policy=Policy(name=policy), allocators=(allocator,))


def pod(uid: str, **counts: int) -> Pod:
    """A pod that asks for devices."""
    requests = {f"example.com/{name}": Quantity.of(count) for name, count in counts.items()}
    return Pod(uid=uid, containers=(Container(name="c", requests=requests),))


def devices_of(snapshot: Snapshot) -> DeviceAllocator:
    """The device allocator of a snapshot."""
    (allocator,) = snapshot.allocators
    assert isinstance(allocator, DeviceAllocator)
    return allocator


def test_two_kinds_of_devices_come_from_one_node() -> None:
    """With one NUMA node asked for, both resources come from the same."""
    snapshot = node(PolicyName.SINGLE_NUMA_NODE, serving(GPU, 4), serving(NIC, 2))
    first = admit(snapshot, pod("p", nic=1))
    assert isinstance(first, Admitted)
    second = admit(first.snapshot, pod("q", gpu=2, nic=1))
    assert isinstance(second, Admitted)
    held = devices_of(second.snapshot).grants["q"]
    assert set(held["c", GPU].places) == set(held["c", NIC].places) == {1}
    assert devices_of(release(second.snapshot, "q")) == devices_of(first.snapshot)


def test_a_refusal_names_the_resource_and_its_numbers() -> None:
    """Too many devices for one node: the text says which and how many."""
    refused = admit(node(PolicyName.SINGLE_NUMA_NODE, serving(GPU, 4)), pod("p", gpu=3))
    assert isinstance(refused, Refusal)
    assert GPU in str(refused)


def test_a_plugin_that_is_missing_puts_the_pod_off() -> None:
    """Neither admitted nor refused: asked again later."""
    waiting = admit(node(PolicyName.BEST_EFFORT), pod("p", gpu=1))
    assert isinstance(waiting, NotYet)
    assert GPU in str(waiting)


def test_advice_is_asked_between_two_decisions() -> None:
    """The second decision follows the plugin's advice; nothing of it stays behind."""
    ledger = DeviceLedger(DeviceAllocator(nodes=(0, 1)))
    plugin = FakePlugin(numbered(4, numa=(0, 1)), options=PluginOptions(preferred_allocation=True))
    with DevicePlugins(ledger, connect=lambda _socket: plugin) as plugins:
        plugins.register(GPU, "/s", ["v1beta1"])
        wait_until(lambda: plugins.capacity()[GPU].allocatable == 4)

        def decide() -> DeviceAllocator:
            snapshot = Snapshot(numa=NumaTopology(nodes=(0, 1)), allocators=(ledger.current(),))
            verdict = admit(snapshot, pod("p", gpu=1))
            assert isinstance(verdict, Admitted)
            return devices_of(verdict.snapshot)

        outcome = decide()
        assert outcome.grants["p"]["c", GPU].ids == {"dev-0"}
        assert plugins.ask(outcome)
        outcome = decide()
        assert not plugins.ask(outcome)
        assert outcome.grants["p"]["c", GPU].ids == {"dev-3"}
        assert outcome.without_answers().answers == {}


def test_a_kubelet_can_take_over(tmp_path: Path) -> None:
    """The record lies where the kubelet looks for it, among the sockets, and is left alone there."""
    directory = tmp_path / "device-plugins"
    directory.mkdir()
    with FileStore(directory, KUBELET_FORMATS) as store:
        ledger = DeviceLedger(DeviceAllocator(nodes=(0, 1)), store=store)
        plugin = FakePlugin(numbered(4, numa=(0, 1)))
        with DevicePlugins(ledger, directory=directory, connect=lambda _socket: plugin) as plugins:
            plugins.register(GPU, "/s", ["v1beta1"])
            wait_until(lambda: plugins.capacity()[GPU].allocatable == 4)
            verdict = ledger.admit(Snapshot(numa=NumaTopology(nodes=(0, 1))), pod("p", gpu=1))
            assert isinstance(verdict, Admitted)
            plugins.prepare("p")
    state = DeviceManagerState.unmarshal((directory / DEVICE_STATE).read_bytes())
    state.verify()
    (entry,) = state.pod_device_entries or ()
    assert (entry.pod_uid, entry.container_name, entry.resource_name) == ("p", "c", GPU)
    assert entry.device_ids == {0: ("dev-0",)}
    assert entry.alloc_resp
