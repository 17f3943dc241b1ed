"""Plugins that hang, over real sockets: who is no longer wanted waits for none of them."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path

import pytest

from nodealloc.agent import AGENT_FORMATS, DevicePreparer, GrantedConfiguration
from nodealloc.checkpoint import MemoryStore
from nodealloc.cpuset import CpuAllocator
from nodealloc.devices import Capacity, DeviceAllocator, DeviceLedger, Launch
from nodealloc.devices.plugins import DevicePlugins
from nodealloc.dsw_asw import Group
from nodealloc.machine import machine_from_text
from nodealloc.node import NodeAllocator
from nodealloc.podlife import PodLives, Preparation
from nodealloc.podspec import Container, Pod, Quantity
from nodealloc.runtime import RuntimeWatch
from nodealloc.testing.devices import PluginProcess, wait_until
from nodealloc.testing.dsw_asw import ManualCancel
from nodealloc.testing.podlife import PlainConfiguration
from nodealloc.testing.runtime import FakeContainerRuntime
from nodealloc.topology import Claim, Owner, Snapshot, TopologyHint

pytestmark = pytest.mark.real

GPU = "example.com/gpu"
OWNER = Owner("u", "app")


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory with a path short enough for sockets."""
    path = Path(tempfile.mkdtemp(prefix="na-"))
    yield path / "dp"
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def ledger() -> DeviceLedger:
    """Of a node without devices so far."""
    return DeviceLedger(DeviceAllocator())


@pytest.fixture
def plugins(place: Path, ledger: DeviceLedger) -> Iterator[DevicePlugins]:
    """Served, with the deadlines of a kubelet: an answer may take a minute."""
    with DevicePlugins(ledger, directory=place, look_s=0.05) as serving:
        yield serving


def listed(plugins: DevicePlugins, count: int) -> None:
    """Wait for so many devices."""
    wait_until(lambda: plugins.capacity().get(GPU, Capacity(0, 0)).allocatable == count, what=f"{count}")


def granted(ledger: DeviceLedger, plugins: DevicePlugins) -> frozenset[str]:
    """Two devices, once the plugin has listed its four."""
    listed(plugins, 4)

    def change(allocator: DeviceAllocator) -> DeviceAllocator:
        answer = allocator.allocate(
            Claim(owner=OWNER, amounts={GPU: Quantity.of(2)}), TopologyHint(None, True)
        )
        assert isinstance(answer, DeviceAllocator), answer
        return answer

    return ledger.alter(change)[1].grants["u"]["app", GPU].ids


@pytest.mark.parametrize("stopped", [False, True], ids=["hangs", "is stopped by the kernel"])
def test_a_call_that_hangs_ends_when_nobody_wants_it(
    place: Path, ledger: DeviceLedger, plugins: DevicePlugins, stopped: bool
) -> None:
    """Its devices stay granted, and the next plugin is asked for the same ones."""
    cancel = ManualCancel()
    with PluginProcess("--directory", str(place), "--devices", "4", "--hang", "Allocate") as hanging:
        ids = granted(ledger, plugins)
        if stopped:
            os.kill(hanging.pid, signal.SIGSTOP)
        with ThreadPoolExecutor() as pool:
            preparing = pool.submit(plugins.prepare, "u", cancel=cancel)
            if not stopped:
                wait_until(lambda: ("called", "Allocate") in hanging.events)
            assert not preparing.done()
            cancel.set()
            with pytest.raises(CancelledError):
                preparing.result(timeout=20)
    assert ledger.current().grants["u"]["app", GPU].ids == ids
    listed(plugins, 0)
    with PluginProcess("--directory", str(place), "--devices", "4") as answering:
        listed(plugins, 4)
        plugins.prepare("u", cancel=ManualCancel())
        assert answering.wait_for("allocated") == ",".join(sorted(ids))
    assert isinstance(plugins.launch(OWNER), Launch)


@pytest.mark.parametrize("call", ["Allocate", "PreStartContainer"])
def test_a_pod_that_is_deleted_waits_for_no_plugin(
    place: Path, ledger: DeviceLedger, plugins: DevicePlugins, call: str
) -> None:
    """It is gone long before the call would have ended by itself."""
    machine = machine_from_text("4 cores")
    snapshot = Snapshot.of(machine, allocators=[CpuAllocator.of(machine, reserved=1)])
    node = NodeAllocator(snapshot, MemoryStore(AGENT_FORMATS))
    node.start()
    runtime = FakeContainerRuntime()
    watch = RuntimeWatch(runtime)
    preparing = Preparation(name="devices", why="plugins allocate first", by=DevicePreparer(plugins))
    inner = GrantedConfiguration(whole=PlainConfiguration(), node=node, plugins=plugins)
    granting = GrantedConfiguration(whole=inner, node=node)  # one that only hands on what it is asked
    lives = PodLives(runtime, watch=watch, configuring=granting, preparations=[preparing])
    options = ("--directory", str(place), "--devices", "4", "--pre-start", "--hang", call)
    with PluginProcess(*options) as hanging:
        granted(ledger, plugins)
        with Group(watch, lives):
            lives.heard()
            lives.put(Pod(uid="u", name="u", containers=(Container(name="app", image="busybox"),)))
            wait_until(lambda: ("called", call) in hanging.events)
            lives.remove("u")
            wait_until(lambda: not lives.pods.snapshot(), what="the end of the pod")
