"""The node's shell: a decision, remembered, beside what the node holds already."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from bench.figure import Figure, best_ns
from nodealloc.checkpoint import FileStore, MemoryStore, Store
from nodealloc.checkpoint import SqliteStore as Sqlite
from nodealloc.cpuset import CpuAllocator, CPUSet
from nodealloc.devices import DeviceAllocator, DeviceList, Inventory, PluginOptions
from nodealloc.machine import machine_from_text
from nodealloc.memblocks import MemoryAllocator
from nodealloc.node import FORMATS, NodeAllocator
from nodealloc.podspec import Pod
from nodealloc.testing.device_plugin import numbered
from nodealloc.topology import NumaTopology, Policy, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

HELD = (10, 100, 1000, 5000)


def figures() -> Iterator[Figure]:
    """A pod that comes and goes, with more and more pods on the node; a restart with all of them."""
    with tempfile.TemporaryDirectory() as folder:
        for words in ("nothing on disk", "on disk"):
            stores: dict[int, Store] = {
                held: Sqlite(Path(folder, f"{held}.db"), FORMATS)
                if words == "on disk"
                else MemoryStore(FORMATS)
                for held in HELD
            }
            growth = [(float(held), _comes_and_goes(store, held)) for held, store in stores.items()]
            yield Figure(
                package="node",
                name=f"a pod comes and goes, {words}, 5,000 held over 10",
                value=growth[-1][1] / growth[0][1],
                unit="×",
            )
            yield Figure(
                package="node",
                name=f"a pod comes and goes, {words}, beside 1,000 pods",
                value=growth[2][1],
                unit="ms",
                growth=growth,
                growth_of="pods held",
            )
    yield Figure(package="node", name="restart with 1,000 pods", value=_restart(1000), unit="ms")
    flips = [(float(count), _device_falls_ill(count)) for count in (1_000, 10_000, 100_000)]
    yield Figure(
        package="node",
        name="one of 100,000 devices falls ill, the kubelet's device file kept",
        value=flips[-1][1],
        unit="ms",
        growth=flips,
        growth_of="devices",
    )


def _node(store: Store) -> NodeAllocator:
    machine = machine_from_text("2 sockets x 64 cores x 2 threads, memory=512Gi")
    empty = Snapshot(
        numa=NumaTopology(nodes=(0, 1)),
        policy=Policy.parse("best-effort"),
        allocators=(
            CpuAllocator.of(machine, reserved=CPUSet.of(0)),
            MemoryAllocator.of(machine, reserved={0: {"memory": 1 << 30}}),
        ),
    )
    node = NodeAllocator(empty, store)
    node.start()
    return node


def _pod(name: str, cpu: str) -> Pod:
    limits = {"cpu": cpu, "memory": "16Mi"}
    containers = [{"name": "app", "resources": {"limits": limits}}]
    return Pod.from_manifest({"metadata": {"name": name}, "spec": {"containers": containers}})


def _comes_and_goes(store: Store, held: int) -> float:
    node = _filled(store, held)
    numbers = itertools.count()

    def once() -> None:
        pod = _pod(f"x{next(numbers)}", "2")
        node.admit(pod)
        node.release(pod.uid)

    took = best_ns(once, seconds=0.2) / 1e6
    store.close()
    return took


def _filled(store: Store, held: int) -> NodeAllocator:
    node = _node(store)
    for number in range(held):
        node.admit(_pod(f"p{number}", "10m"))
    return node


def _device_falls_ill(count: int) -> float:
    healthy = DeviceList.of(numbered(count, numa=(0, 1)), nodes=(0, 1))
    lists = itertools.cycle((attrs.evolve(healthy, healthy=healthy.healthy & ~1), healthy))
    known = Inventory(resource="example.com/gpu").registered(1, now_s=0.0)
    empty = Snapshot(numa=NumaTopology(nodes=(0, 1)), allocators=(DeviceAllocator(nodes=(0, 1)),))
    with tempfile.TemporaryDirectory() as folder, FileStore(Path(folder, "state"), FORMATS) as store:
        node = NodeAllocator(empty, store, kubelet_files=["devices"])
        node.start()
        devices = node.allocator(DeviceAllocator)

        def once() -> None:
            inventory = known.listed(1, next(lists), PluginOptions(), now_s=0.0)
            devices.alter(lambda one: one.with_inventory(inventory))

        once()
        return best_ns(once, seconds=0.2) / 1e6


def _restart(held: int) -> float:
    first = MemoryStore(FORMATS)
    _filled(first, held)
    data = first.data()
    return best_ns(lambda: _node(MemoryStore(FORMATS, data=data)), seconds=0.3) / 1e6
