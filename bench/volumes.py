"""The volume manager: passes, latency, throughput against the ideal, memory."""

from __future__ import annotations

import gc
import statistics
import threading
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from bench.figure import Figure, best_ns
from nodealloc.dsw_asw import InlineExecutor, ThreadExecutor
from nodealloc.podspec import Container, Pod, Volume, VolumeUse
from nodealloc.testing.podfacts import FakePods
from nodealloc.testing.volumes import FakeHost
from nodealloc.volumes import Use, VolumeManager, VolumeSpec
from nodealloc.volumes._model import ActualVolume, DesiredVolume, PodMount
from nodealloc.volumes._states import MountState

SIZES = (100, 1_000, 10_000, 100_000)
WORKERS, CALL_S = 64, 0.05


def _pod(number: int) -> Pod:
    name = f"pod-{number}"
    return Pod(
        uid=name,
        name=name,
        volumes=(Volume(name="v", kind="disk"),),
        containers=(Container(name="c", volumes=(VolumeUse(name="v", path="/v"),)),),
    )


def _filled(size: int) -> VolumeManager:
    """A manager with mounted volumes, one a pod."""
    manager = VolumeManager(
        [FakeHost(kinds=["disk"])], pods=FakePods(), executor=InlineExecutor(), resync_s=None
    )
    for number in range(size):
        uid = f"pod-{number}"
        spec = VolumeSpec(plugin="example.com/disk", name="v", pod_uid=uid)
        manager.desired.put(spec.id, DesiredVolume(spec=spec, uses={uid: Use(pod_uid=uid, generation=1)}))
        mount = PodMount(state=MountState.MOUNTED, generation=1)
        manager.actual.put(spec.id, ActualVolume(spec=spec, mounts={uid: mount}))
    while not manager.reconcile().is_idle:
        pass
    return manager


def _passes() -> Iterator[tuple[int, float, float]]:
    """For each size: nanoseconds of a pass over unchanged volumes, and of one pod that comes and goes."""
    for size in SIZES:
        manager = _filled(size)
        gc.collect()
        idle = best_ns(manager.reconcile)
        pods = manager._pods
        assert isinstance(pods, FakePods)
        pod = _pod(size + 1)

        def visit(manager: VolumeManager = manager, pods: FakePods = pods, pod: Pod = pod) -> None:
            pods.put(pod)
            manager.pod_changed(pod.uid)
            while manager.has_work:
                manager.reconcile()
            pods.sightings.clear()
            manager.pod_changed(pod.uid)
            while manager.has_work:
                manager.reconcile()

        yield size, idle, best_ns(visit)


def _latency_ms() -> tuple[float, float]:
    """Median and largest milliseconds from a pod's change to the start of its mount, at 10,000 volumes."""
    host, pods = FakeHost(kinds=["disk"]), FakePods()
    manager = VolumeManager([host], pods=pods, executor=ThreadExecutor(), resync_s=None)
    for number in range(10_000):
        uid = f"full-{number}"
        spec = VolumeSpec(plugin=host.name, name="v", pod_uid=uid)
        manager.desired.put(spec.id, DesiredVolume(spec=spec, uses={uid: Use(pod_uid=uid)}))
        manager.actual.put(spec.id, ActualVolume(spec=spec, mounts={uid: PodMount(state=MountState.MOUNTED)}))
    began, began_s = threading.Event(), [0.0]

    def note(name: str) -> None:
        if name.startswith("before mount"):
            began_s[0] = time.perf_counter()
            began.set()

    host.fault = note
    waits: list[float] = []
    with manager:
        time.sleep(0.5)
        for number in range(100):
            time.sleep(0.002)
            began.clear()
            pods.put(_pod(number))
            changed_s = time.perf_counter()
            manager.pod_changed(f"pod-{number}")
            began.wait(10)
            waits.append((began_s[0] - changed_s) * 1000)
    return statistics.median(waits), max(waits)


def _throughput(volumes: int = 10_000) -> float:
    """Time to mount so many volumes by calls of 50 ms on 64 workers, as a ratio to the ideal."""
    host, pods = FakeHost(kinds=["disk"]), FakePods()

    def slow(name: str) -> None:
        if name.startswith("before mount"):
            time.sleep(CALL_S)

    host.fault = slow
    for number in range(volumes):
        pods.put(_pod(number))
    with ThreadPoolExecutor(WORKERS) as pool:
        manager = VolumeManager([host], pods=pods, executor=pool, resync_s=None)
        started_s = time.perf_counter()
        with manager:
            manager.pods_changed()
            for number in range(volumes):
                manager.wait_for_attach_and_mount(f"pod-{number}", timeout_s=60.0)
            took_s = time.perf_counter() - started_s
    assert len(host.mounts) == volumes
    return took_s / (volumes * CALL_S / WORKERS)


def _bytes_per_volume(volumes: int = 3_000) -> float:
    """Memory of both worlds and the engine, for one volume of one pod."""
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    manager = _filled(volumes)
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(manager.actual) == volumes
    return (after - before) / volumes


def figures() -> Iterator[Figure]:
    """Growth of passes, latency, throughput, memory."""
    rows = list(_passes())
    idle = [(size, found / rows[0][1]) for size, found, _ in rows]
    visit = [(size, found / rows[0][2]) for size, _, found in rows]
    yield Figure(
        package="volumes",
        name="pass over unchanged volumes, 100,000 against 100",
        value=idle[-1][1],
        unit="×",
        at_most=2.0,
        growth=idle,
        growth_of="volumes",
    )
    yield Figure(
        package="volumes",
        name="a pod comes and goes, among 100,000 volumes against 100",
        value=visit[-1][1],
        unit="×",
        at_most=2.0,
        growth=visit,
        growth_of="volumes",
    )
    median, largest = _latency_ms()
    yield Figure(
        package="volumes",
        name="change of a pod to start of its mount, 10,000 volumes, median of 100",
        value=median,
        unit="ms",
        at_most=10.0,
    )
    yield Figure(
        package="volumes",
        name="change of a pod to start of its mount, 10,000 volumes, largest of 100",
        value=largest,
        unit="ms",
    )
    yield Figure(
        package="volumes",
        name="10,000 mounts of 50 ms on 64 workers, against the ideal",
        value=_throughput(),
        unit="× ideal",
        at_most=2.0,
    )
    yield Figure(
        package="volumes", name="memory of a mounted volume", value=_bytes_per_volume() / 1024, unit="KiB"
    )
