"""Devices that a program says itself, on a node that remembers: no plugin will come to say them again."""

from __future__ import annotations

from nodealloc.checkpoint import KUBELET_FORMATS, MemoryStore
from nodealloc.cpuset import CpuAllocator
from nodealloc.devices import Device, DeviceAllocator, DeviceLedger, Phase
from nodealloc.machine import machine_from_text
from nodealloc.node import FORMATS, NodeAllocator
from nodealloc.podspec import Pod
from nodealloc.topology import Owner, Snapshot
from nodealloc.verdicts import Admitted, NotYet, Refused

MACHINE = machine_from_text("4 cores, memory=8Gi")
GPU = "example.com/gpu"


def started(store: MemoryStore, *devices: str, is_said: bool = True) -> NodeAllocator:
    """A node of a program that says its devices, or waits for plugins."""
    allocator = DeviceAllocator.of(MACHINE)
    if is_said:
        allocator = allocator.with_devices(GPU, [Device(one) for one in devices])
    node = NodeAllocator(Snapshot.of(MACHINE, allocators=[CpuAllocator.of(MACHINE), allocator]), store)
    node.start()
    return node


def pod(name: str) -> Pod:
    """That asks for one device."""
    app = {"name": "app", "image": "app", "resources": {"limits": {GPU: 1}}}
    return Pod.from_manifest({"metadata": {"name": name, "uid": name}, "spec": {"containers": [app]}})


def held(node: NodeAllocator, name: str) -> set[str]:
    """The devices of a pod."""
    return set(node.snapshot[DeviceAllocator].devices_of(Owner(name, "app")).get(GPU, ()))


def test_devices_that_a_program_says_are_there_after_the_start() -> None:
    """And after the next one, less what is held; what is said anew counts, and grants stand."""
    node = started(store := MemoryStore(FORMATS), "a", "b")
    assert isinstance(node.admit(pod("first")), Admitted)
    later = started(MemoryStore(FORMATS, data=store.data()), "a", "b")
    assert held(later, "first") == held(node, "first")
    assert isinstance(later.admit(pod("second")), Admitted)
    assert held(later, "first") | held(later, "second") == {"a", "b"}
    answer = later.admit(pod("third"))
    assert isinstance(answer, Refused)
    assert "0 free" in answer.message


def test_what_only_a_plugin_said_is_awaited_after_a_restart() -> None:
    """The next program says no devices: who asks for one is told to wait."""
    node = started(store := MemoryStore(FORMATS), "a")
    assert isinstance(node.admit(pod("first")), Admitted)
    later = started(MemoryStore(FORMATS, data=store.data()), is_said=False)
    assert held(later, "first") == {"a"}
    assert isinstance(later.admit(pod("second")), NotYet)
    assert later.snapshot[DeviceAllocator].inventories[GPU].phase is Phase.AWAITED


def test_a_ledger_keeps_devices_that_a_program_says() -> None:
    """Also where it remembers something: it reads the same state without a node."""
    said = DeviceAllocator.of(MACHINE).with_devices(GPU, [Device("a")])
    store = MemoryStore(KUBELET_FORMATS)
    for _ in range(2):
        ledger = DeviceLedger.load(said, store, now_s=0.0)
        assert ledger.current().inventories[GPU].devices.ids == ("a",)
        answer = ledger.admit(Snapshot.of(MACHINE), pod("first"))
        assert isinstance(answer, Admitted)
        assert ledger.current().devices_of(Owner("first", "app")) == {GPU: {"a"}}
