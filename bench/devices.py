"""Device plugins: how fast devices are chosen, listed and counted, and what one costs."""

from __future__ import annotations

import shutil
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import cast

from bench.figure import Figure, best_ns, rows
from nodealloc.checkpoint import KUBELET_FORMATS, FileStore
from nodealloc.devices import (
    Device,
    DeviceAllocator,
    DeviceLedger,
    DeviceList,
    Inventory,
    PluginOptions,
)
from nodealloc.devices.plugins import DevicePlugins
from nodealloc.devices.plugins._codec import (
    decode_list,
    encode_list,
)
from nodealloc.podspec import Json, Quantity
from nodealloc.testing.conformance._devices import device_hints
from nodealloc.testing.device_plugin import DevicePluginServer, numbered
from nodealloc.testing.devices import wait_until
from nodealloc.topology import Claim, Owner, TopologyHint

GPU = "example.com/gpu"
ANYWHERE = TopologyHint(affinity=None, preferred=True)
NODE_0 = TopologyHint(affinity=1, preferred=True)
SIZES = (100, 1_000, 10_000, 100_000)


def _allocator(count: int) -> DeviceAllocator:
    devices = DeviceList.of(numbered(count, numa=(0, 1)), nodes=(0, 1))
    blank = Inventory(resource=GPU).registered(1, now_s=0.0)
    serving = blank.listed(1, devices, PluginOptions(), now_s=0.0)
    return DeviceAllocator(nodes=(0, 1)).with_inventory(serving)


def _claim(workload: str, count: int) -> Claim:
    return Claim(owner=Owner(workload, "c"), amounts={GPU: Quantity.of(count)})


def _filled(count: int) -> DeviceAllocator:
    """A node of `count` devices with a hundred pods that hold one each."""
    allocator = _allocator(count)
    for number in range(100 if count > 100 else count // 2):
        answer = allocator.allocate(_claim(f"p{number}", 1), ANYWHERE)
        assert isinstance(answer, DeviceAllocator)
        allocator = answer
    return allocator


def _admit(allocator: DeviceAllocator) -> None:
    """Hints, a grant of two devices inside one node, and its release."""
    claim = _claim("new", 2)
    allocator.hints([claim])
    answer = allocator.allocate(claim, NODE_0)
    assert isinstance(answer, DeviceAllocator)
    answer.release("new")


def _listed_ms(count: int) -> float:
    """From the bytes of a list to an inventory, in milliseconds."""
    data = encode_list(numbered(count, numa=(0, 1)))
    return best_ns(lambda: DeviceList.of(decode_list(data), nodes=(0, 1)), rounds=2) / 1e6


def _bytes_per_device(count: int) -> float:
    """What an inventory keeps a device, index included."""
    data = encode_list(numbered(count, numa=(0, 1)))
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    devices = DeviceList.of(decode_list(data), nodes=(0, 1))
    _ = devices.index
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (after - before) / count


def _stream_ms(count: int) -> float:
    """From a change at the plugin to the agent's count, over a Unix socket, in milliseconds."""
    place = Path(tempfile.mkdtemp(prefix="na-"))
    server = DevicePluginServer(GPU, (), place / "dp" / "p.sock")
    ledger = DeviceLedger(DeviceAllocator(nodes=(0, 1)))
    try:
        with DevicePlugins(ledger, directory=place / "dp") as plugins:
            events = plugins.events()
            server.start()
            server.introduce(place / "dp" / "kubelet.sock")
            wait_until(lambda: bool(server.devices) or plugins.status()[0].phase.value == "serving")
            devices = numbered(count, numa=(0, 1))
            best = float("inf")
            for number in range(3):
                events.take()
                sick = Device("dev-0", "Unhealthy" if number % 2 else "Healthy", 1)
                started = time.perf_counter()
                server.set_devices((sick, *devices[1:]))
                while plugins.capacity()[GPU] != (count, count - number % 2):
                    events.take(1.0)
                best = min(best, time.perf_counter() - started)
    finally:
        server.stop()
        shutil.rmtree(place, ignore_errors=True)
    return best * 1e3


def _commit_ms(answer_bytes: int, devices: int = 1_000) -> float:
    """A grant remembered in the kubelet's file beside a large answer and many devices, in milliseconds."""
    place = Path(tempfile.mkdtemp(prefix="na-"))
    try:
        with FileStore(place, KUBELET_FORMATS) as store:
            ledger = DeviceLedger(_allocator(devices), store=store)

            def grant(workload: str, answer: bytes) -> None:
                def change(allocator: DeviceAllocator) -> DeviceAllocator:
                    granted = allocator.allocate(_claim(workload, 1), ANYWHERE)
                    assert isinstance(granted, DeviceAllocator)
                    return granted.with_response(Owner(workload, "c"), GPU, answer)

                ledger.alter(change)

            grant("large", bytes(answer_bytes))
            best = float("inf")
            for number in range(5):
                started = time.perf_counter()
                grant(f"p{number}", b"small")
                best = min(best, time.perf_counter() - started)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return best * 1e3


def figures() -> Iterator[Figure]:
    """Allocations, lists, hints, and how each grows with the number of devices."""
    yield from _allocations()
    yield from _lists()
    yield from _commits()
    recorded = rows("device_hints")
    yield Figure(
        package="devices",
        name="hints of a recorded row, its reading included",
        value=best_ns(lambda: [device_hints(cast("dict[str, Json]", row), {}) for row in recorded[:200]])
        / 200e3,
        unit="µs",
        at_most=500,
        cpu=True,
    )


def _allocations() -> Iterator[Figure]:
    admits = [(float(count), best_ns(partial(_admit, _filled(count))) / 1e3) for count in SIZES]
    yield Figure(
        package="devices",
        name="hint, allocate and release 2 of 1,000 devices beside 100 pods",
        value=1e6 / admits[1][1],
        unit="per s",
        at_least=3_000,
        cpu=True,
    )
    yield Figure(
        package="devices",
        name="hint, allocate and release 2 of 100,000 devices beside 100 pods",
        value=admits[-1][1],
        unit="µs",
        growth=admits,
        growth_of="devices",
    )


def _lists() -> Iterator[Figure]:
    listed = [(float(count), _listed_ms(count)) for count in SIZES]
    yield Figure(
        package="devices",
        name="read a list of 10,000 devices",
        value=listed[2][1],
        unit="ms",
        at_most=150,
        cpu=True,
        growth=listed,
        growth_of="devices",
    )
    yield Figure(
        package="devices",
        name="time a device, a list of 100,000 over one of 1,000",
        value=(listed[3][1] / 100_000) / (listed[1][1] / 1_000),
        unit="×",
        at_most=4,
    )
    yield Figure(
        package="devices",
        name="memory a device in a list of 10,000",
        value=_bytes_per_device(10_000),
        unit="bytes",
        at_most=500,
    )
    yield Figure(
        package="devices",
        name="from a change at the plugin to the count, 10,000 devices over a socket",
        value=_stream_ms(10_000),
        unit="ms",
        at_most=1000,
    )


def _commits() -> Iterator[Figure]:
    commits = [(float(size), _commit_ms(size)) for size in (1 << 10, 1 << 17, 1 << 20, 1 << 22)]
    yield Figure(
        package="devices",
        name="remember a grant beside another plugin's answer of 4 MiB",
        value=commits[-1][1],
        unit="ms",
        at_most=400,
        growth=commits,
        growth_of="bytes",
    )
    beside = [(float(size), _commit_ms(1, size)) for size in SIZES]
    yield Figure(
        package="devices",
        name="remember a grant of one of 100,000 devices",
        value=beside[-1][1],
        unit="ms",
        at_most=30,
        growth=beside,
        growth_of="devices",
    )
