"""Options that every other test leaves as they are, each set once to something else."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from nodealloc.cgroups import CgroupMount, CgroupName, Layout, Limits, TreeOptions, launch, pod_view
from nodealloc.cpuset import CpuAllocator, CPUSet, CpusetReconciler
from nodealloc.devices import PluginUnavailableError
from nodealloc.devices.plugins._codec import RegisterRequest
from nodealloc.devices.plugins._registration import introduce
from nodealloc.dsw_asw import BackOff, Cancel, InlineExecutor, Reconciler, ThreadExecutor, World
from nodealloc.errors import DecodeError, RetryableError
from nodealloc.idset import parse_list
from nodealloc.machine import draw_svg, machine_from_json, machine_from_text
from nodealloc.podspec import Pod, Volume
from nodealloc.testing.cgroups import FakeCgroups
from nodealloc.testing.checkpoint import SimulatedDisk
from nodealloc.testing.cpuset import FakeCpusetWriter
from nodealloc.testing.devices import wait_until
from nodealloc.testing.dsw_asw import ManualExecutor, RecordingObserver, VirtualClock
from nodealloc.testing.podfacts import FakePods
from nodealloc.testing.volumes import FakeClaims, FakeHost, FakeMounter, claiming_pod
from nodealloc.topology import Owner
from nodealloc.volumes import LinuxMountTable, SafeRoot, Use, VolumeManager
from nodealloc.volumes.plugins import EmptyDir, HostPath
from tests.unit.test_ports import Counting

POD = Pod(uid="uid", name="pod")
USE = Use(pod_uid="uid", generation=1, volume="v")
V2 = Layout(mounts=(CgroupMount(path="/c", version=2, controllers=("cpu", "cpuset", "memory", "pids")),))


def test_a_command_starts_in_its_directory(tmp_path: Path) -> None:
    """`launch(cwd=)`: where it is told, and nowhere where there is none."""
    tree, name = FakeCgroups(), CgroupName.of("a")
    tree.apply(name, Limits())
    code = "import os, pathlib; pathlib.Path('here').write_text(os.getcwd())"
    with launch(tree, name, [sys.executable, "-c", code], cwd=tmp_path) as process:
        assert process.wait(30) == 0
    assert (tmp_path / "here").read_text() == str(tmp_path)
    with pytest.raises(FileNotFoundError):
        launch(tree, name, ["true"], cwd=tmp_path / "nowhere")


def test_a_view_stands_below_the_root_of_its_options() -> None:
    """`pod_view(options)`: pods may live elsewhere than in `kubepods`."""
    text = pod_view(POD, V2, TreeOptions(root=CgroupName.of("jobs")))
    assert "jobs" in text
    assert "kubepods" not in text


def test_a_reconciler_of_cpusets_waits_and_tells_as_it_is_told() -> None:
    """`CpusetReconciler(back_off=, observer=)`: a failed write is tried again when they say so."""
    writer, clock, observer = FakeCpusetWriter({"web": CPUSet.of(0)}), VirtualClock(), RecordingObserver()
    node = CpuAllocator.of(machine_from_text("4 cores"), reserved=CPUSet.of(0))
    keeper = CpusetReconciler(
        writer,
        executor=InlineExecutor(),
        allocator=node,
        clock=clock,
        back_off=BackOff(initial_s=50.0),
        observer=observer,
    )
    writer.fail("web", RetryableError("busy", after_s=0.0))
    keeper.add("web", Owner("web", "main"))
    keeper.reconcile()
    writer.fail("web", None)
    clock.advance(49.0)
    keeper.reconcile()
    assert writer.sets["web"][0] == CPUSet.of(0)
    clock.advance(2.0)
    keeper.reconcile()
    assert writer.sets["web"][0] == CPUSet.of(0, 1, 2, 3)
    assert len(observer.ends) >= 2


def test_a_reconciler_gives_up_on_what_hangs_when_it_is_told() -> None:
    """`Reconciler(stop_timeout_s=)` and the name of an executor's threads."""
    go_on, names = threading.Event(), list[str]()

    class Hanging(Counting):
        def perform(self, step: object, _cancel: Cancel, /) -> str:
            names.append(threading.current_thread().name)
            go_on.wait(30)
            return str(step)

    desired: World[str, int] = World("desired")
    actual: World[str, int] = World("actual")
    executor = ThreadExecutor("counting")
    reconciler = Reconciler(Hanging(), desired=desired, actual=actual, executor=executor, stop_timeout_s=0.05)
    reconciler.start()
    desired.alter("a", lambda _: 1, by="the test")
    while not names:
        time.sleep(0.001)
    began_s = time.monotonic()
    assert [one.scope for one in reconciler.stop()] == [("count",)]
    assert time.monotonic() - began_s < 5.0
    assert names == ["counting"]
    go_on.set()


def test_an_executor_runs_as_many_calls_at_once_as_it_is_told() -> None:
    """`ThreadExecutor(most=)`: the others wait, in their order, and none is lost."""
    with pytest.raises(ValueError, match="give 1 or more"):
        ThreadExecutor(most=0)
    executor, go_on = ThreadExecutor("few", most=2), threading.Event()
    began: list[int] = []

    def call(number: int) -> int:
        began.append(number)
        go_on.wait(30)
        return number

    futures = [executor.submit(call, number) for number in range(20)]
    wait_until(lambda: len(began) == 2)
    assert sum(one.name == "few" for one in threading.enumerate()) == 2
    assert sorted(began) == [0, 1]
    go_on.set()
    assert [future.result(30) for future in futures] == list(range(20))
    assert executor.submit(call, 20).result(30) == 20


def test_a_volume_manager_waits_as_it_is_told() -> None:
    """`VolumeManager(back_off=)`: a failed mount is tried again when it says so."""
    host, pods, claims, clock = FakeHost(), FakePods(), FakeClaims(), VirtualClock()
    claims.volumes["a"] = host.disk("a", 1 << 20)
    executor = ManualExecutor()
    manager = VolumeManager(
        [host], pods=pods, executor=executor, claims=claims, clock=clock, back_off=BackOff(initial_s=50.0)
    )

    def attempts() -> int:
        for _ in range(20):
            manager.reconcile()
            executor.run_all()
        return len(tried)

    def fault(name: str) -> None:
        if name.startswith("before mount"):
            tried.append(name)
            raise RetryableError("busy", after_s=0.0)

    tried, host.fault = list[str](), fault
    pods.put(claiming_pod("uid", "a"))
    manager.pod_changed("uid")
    assert attempts() == 1
    clock.advance(49.0)
    assert attempts() == 1
    clock.advance(2.0)
    assert attempts() == 2


def test_a_plugin_waits_for_its_agent_as_long_as_it_is_told(tmp_path: Path) -> None:
    """`introduce(timeout_s=)`: somebody listens who never answers."""
    path = tmp_path / "kubelet.sock"
    request = RegisterRequest(version="v1beta1", endpoint="x.sock", resource="example.com/gpu")
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(path))
        silent.listen()
        began_s = time.monotonic()
        with pytest.raises(PluginUnavailableError, match="DEADLINE_EXCEEDED"):
            introduce(path, request, timeout_s=0.2)
        assert time.monotonic() - began_s < 5.0


def test_another_process_table_of_mounts_can_be_read() -> None:
    """`LinuxMountTable(path)`: here that of this process, by its number."""
    here, there = LinuxMountTable(), LinuxMountTable(f"/proc/{os.getpid()}/mountinfo")
    assert there.entries() == here.entries()
    for table in (here, there):
        table.close()


def test_a_simulated_disk_is_where_it_is_told() -> None:
    """`SimulatedDisk(path=)`: its files are below there."""
    disk = SimulatedDisk({"a": b"1"}, path="/elsewhere")
    assert tuple(disk.names(disk.open("/elsewhere", os.O_RDONLY))) == ("a",)


def test_a_faulty_text_is_called_what_it_is() -> None:
    """`source=` of what reads text and JSON stands in the error."""
    with pytest.raises(DecodeError, match="reserved CPUs"):
        parse_list("x", source="reserved CPUs")
    with pytest.raises(DecodeError, match=r"node\.json"):
        machine_from_json({"cpus": 7}, source="node.json")


def test_the_shared_pool_may_be_smaller_than_what_is_left() -> None:
    """`draw_svg(shared=)`: what is in no set has no colour of the pool."""
    machine = machine_from_text("4 cores")
    assert draw_svg(machine, {}, shared=CPUSet.of(1)) != draw_svg(machine, {})


def test_a_tmpfs_is_no_larger_than_the_node_allows(tmp_path: Path) -> None:
    """`EmptyDir(memory_limit_bytes=)` caps the size that a pod asks for."""
    mounter = FakeMounter(str(tmp_path))
    plugin = EmptyDir(SafeRoot(str(tmp_path)), mounter, memory_limit_bytes=1 << 20)
    asked = {"medium": "Memory", "sizeLimit": "1Gi"}
    spec = plugin.spec(POD, Volume(name="v", kind="emptyDir", spec=asked))
    plugin.mount(spec, USE, "")
    (mount,) = mounter.entries()
    assert f"size={1 << 20}" in ",".join(mount.super_options)


def test_a_host_may_be_seen_elsewhere(tmp_path: Path) -> None:
    """`HostPath(host_root)`: an agent in a container looks below the place of the node's root."""
    plugin = HostPath(str(tmp_path))
    there = {"path": "/data", "type": "DirectoryOrCreate"}
    spec = plugin.spec(POD, Volume(name="v", kind="hostPath", spec=there))
    plugin.mount(spec, USE, "")
    assert (tmp_path / "data").is_dir()
    assert plugin.path(spec, USE) == str(tmp_path / "data")
