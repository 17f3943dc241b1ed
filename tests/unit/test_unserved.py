"""A resource that nobody on the node answers for is refused by its name."""

from __future__ import annotations

import pickle

import attrs
import pytest

from examples.custom.gpu_memory import RESOURCE, GpuMemory
from nodealloc.checkpoint import MemoryStore
from nodealloc.cpuset import CpuAllocator
from nodealloc.devices import Device, DeviceAllocator, DeviceLedger, DeviceList, Inventory, Phase
from nodealloc.devices.plugins import DevicePlugins
from nodealloc.machine import machine_from_text
from nodealloc.memblocks import MemoryAllocator
from nodealloc.node import FORMATS, NodeAllocator
from nodealloc.testing.devices import wait_until
from nodealloc.testing.dsw_asw import VirtualClock
from nodealloc.testing.topology import workload
from nodealloc.topology import Feasibility, Placed, Refusal, Snapshot, admit, explain
from nodealloc.verdicts import NotYet

GPU = "example.com/gpu"
MACHINE = machine_from_text("2 sockets x 4 cores, memory=8Gi")
CPUS = CpuAllocator.of(MACHINE)
CARDS = GpuMemory(cards={"a": (0, 1 << 34)})
NODE = Snapshot.of(MACHINE, policy="restricted", allocators=(CPUS,))  # type: ignore[arg-type]


def with_devices(devices: DeviceAllocator) -> Snapshot:
    """The node with a device manager."""
    return attrs.evolve(NODE, allocators=(CPUS, devices))


def test_a_device_that_no_allocator_serves_is_refused_by_name() -> None:
    """Whoever reads the refusal sees the resource, and who there is."""
    verdict = admit(NODE, workload("job", {GPU: 4, "cpu": 1}))
    assert isinstance(verdict, Refusal)
    assert verdict.reason == f"OutOf{GPU}"
    assert "nobody on this node serves example.com/gpu (its allocators: cpu)" in str(verdict)
    assert str(pickle.loads(pickle.dumps(verdict))) == str(verdict)  # noqa: S301
    assert explain(verdict).feasibility is Feasibility.NEVER_FITS


def test_a_typing_error_in_a_claim_is_refused_with_what_was_meant() -> None:
    """Nothing is granted for a resource that only looks like one."""
    verdict = admit(NODE, workload("job", {"cpus": 2}))
    assert isinstance(verdict, Refusal)
    assert "did you mean cpu?" in str(verdict)


def test_what_every_node_has_is_let_in_without_an_allocator() -> None:
    """Memory and huge pages that nobody pins are the business of the check of what fits."""
    asked = workload("job", {"cpu": 1, "memory": "1Gi", "hugepages-2Mi": "4Mi", "ephemeral-storage": "1Gi"})
    assert isinstance(admit(NODE, asked), Placed)


def test_what_is_checked_elsewhere_is_let_in() -> None:
    """The node says so by name, and goes on saying it after each admission."""
    node = attrs.evolve(NODE, elsewhere=NODE.elsewhere | {GPU})
    first = admit(node, workload("a", {GPU: 4}))
    assert isinstance(first, Placed)
    assert isinstance(admit(first.snapshot, workload("b", {GPU: 4})), Placed)


def test_whatever_nobody_serves_is_let_in_where_the_node_says_so() -> None:
    """As a kubelet does; what somebody serves is counted all the same."""
    node = attrs.evolve(NODE, elsewhere=NODE.elsewhere | {"*"})
    assert isinstance(admit(node, workload("a", {GPU: 4, "example.com/never": 1})), Placed)
    assert isinstance(admit(node, workload("a", {"cpu": 1000})), Refusal)


def test_an_amount_of_nothing_needs_nobody() -> None:
    """A request of 0 is no request."""
    assert isinstance(admit(NODE, workload("job", {GPU: 0, "cpu": 1})), Placed)


def test_an_allocator_that_does_not_say_what_it_serves_is_asked() -> None:
    """Its answer to a claim for that resource alone tells; what it has no room for is its business too."""
    node = attrs.evolve(NODE, allocators=(CPUS, CARDS))
    assert isinstance(admit(node, workload("job", {RESOURCE: 1 << 30})), Placed)
    full = admit(node, workload("job", {RESOURCE: 1 << 40}))
    assert isinstance(full, Refusal)
    assert full.reason != f"OutOf{RESOURCE}"
    other = admit(node, workload("job", {GPU: 1}))
    assert isinstance(other, Refusal)
    assert other.reason == f"OutOf{GPU}"


@pytest.mark.parametrize("resource", ["cpu", "memory", "hugepages-1Gi", GPU, "cpus"])
def test_the_shipped_allocators_say_what_they_serve(resource: str) -> None:
    """Each its own, and nothing else."""
    memory = MemoryAllocator.of(MACHINE)
    serving = [one.name for one in (CPUS, memory, DeviceAllocator()) if one.serves(resource)]
    expected = {"cpu": ["cpu"], "memory": ["memory"], "hugepages-1Gi": ["memory"], GPU: ["devices"]}
    assert serving == expected.get(resource, [])


def test_a_plugin_that_may_still_come_is_waited_for() -> None:
    """Without a time everything may come; a list of what may come is the end of it."""
    asked = workload("job", {GPU: 1})
    assert isinstance(admit(with_devices(DeviceAllocator(nodes=(0, 1))), asked), NotYet)
    waiting = DeviceAllocator(nodes=(0, 1), awaited=frozenset({GPU}))
    assert isinstance(admit(with_devices(waiting), asked), NotYet)
    verdict = admit(with_devices(DeviceAllocator(nodes=(0, 1), awaited=frozenset())), asked)
    assert isinstance(verdict, Refusal)
    assert verdict.reason == f"OutOf{GPU}"


def test_after_a_time_unknown_plugins_are_no_longer_waited_for() -> None:
    """A plugin that comes later than that is served all the same."""
    clock = VirtualClock()
    ledger = DeviceLedger(DeviceAllocator(nodes=(0, 1)))
    plugins = DevicePlugins(ledger, clock=clock, await_s=60.0, look_s=3600.0)
    asked = workload("job", {GPU: 1})
    with plugins:
        clock.advance(59.0)
        plugins.reconcile()
        assert isinstance(admit(with_devices(ledger.current()), asked), NotYet)
        clock.advance(1.0)
        plugins.reconcile()
        wait_until(lambda: isinstance(admit(with_devices(ledger.current()), asked), Refusal))
        devices = DeviceList.of([Device("g0", numa_nodes=1)], nodes=(0, 1))
        come = Inventory(resource=GPU, phase=Phase.SERVING, devices=devices, settled=True)
        ledger.alter(lambda one: one.with_inventory(come))
        assert isinstance(admit(with_devices(ledger.current()), asked), Placed)


def test_plugins_may_be_waited_for_without_an_end() -> None:
    """None as the time puts off for ever."""
    clock = VirtualClock()
    ledger = DeviceLedger(DeviceAllocator(nodes=(0, 1)))
    with DevicePlugins(ledger, clock=clock, await_s=None, look_s=3600.0) as plugins:
        clock.advance(1e6)
        plugins.reconcile()
        assert isinstance(admit(with_devices(ledger.current()), workload("job", {GPU: 1})), NotYet)


def test_a_node_that_remembers_refuses_it_as_well() -> None:
    """Nothing is stored for what was refused."""
    node = NodeAllocator(NODE, MemoryStore(FORMATS))
    node.start()
    verdict = node.admit(workload("job", {GPU: 1}))
    assert isinstance(verdict, Refusal)
    assert not node.records
