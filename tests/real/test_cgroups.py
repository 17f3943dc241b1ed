"""The cgroup file system of this machine, whatever its version."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from nodealloc.cgroups import (
    CgroupBusyError,
    CgroupFs,
    CgroupHoldsCallerError,
    CgroupName,
    LimitRefusedError,
    Limits,
    PodOptions,
    ProcessGoneError,
    QosTree,
    QuotaInUseError,
    ReadOnlyError,
    RemovalState,
    Spelling,
    TreeOptions,
    check_requirements,
    container_limits,
    container_name,
    launch,
    pod_name,
)
from nodealloc.idset import CPUSet, NodeSet
from nodealloc.podspec import Container, Pod, Quantity
from nodealloc.testing.cgroups import check_cgroup_driver, check_process_driver, check_tree_reader
from nodealloc.testing.dsw_asw import VirtualClock
from tests.real.cgroups_here import driver_here, own_root, switches_as_before

pytestmark = pytest.mark.real

MIB = 1 << 20
_EAT = "import sys; kept = bytearray(200 << 20); kept[::4096] = b'x' * len(kept[::4096]); sys.exit(3)"


@pytest.fixture(scope="module", autouse=True)
def _switches() -> Iterator[None]:
    with switches_as_before():
        yield


@pytest.fixture(params=list(Spelling), ids=[spelling.value for spelling in Spelling])
def spelled(request: pytest.FixtureRequest) -> Iterator[tuple[CgroupFs, CgroupName]]:
    """A driver in each spelling, with a root of its own."""
    driver = driver_here(request.param)
    with own_root(driver) as name:
        yield driver, name


@pytest.fixture
def tree() -> Iterator[tuple[CgroupFs, CgroupName]]:
    """A driver, with a root of its own."""
    driver = driver_here()
    with own_root(driver) as name:
        yield driver, name


def _pod(uid: str, *, requests: dict[str, str], limits: dict[str, str] | None = None) -> Pod:
    def amounts(texts: dict[str, str]) -> dict[str, Quantity]:
        return {name: Quantity.parse(text) for name, text in texts.items()}

    return Pod(
        uid=uid, containers=(Container(name="app", requests=amounts(requests), limits=amounts(limits or {})),)
    )


def test_driver_keeps_its_promises(spelled: tuple[CgroupFs, CgroupName]) -> None:
    """What the Protocols promise holds on this machine's own cgroups, in both spellings."""
    driver, name = spelled
    check_cgroup_driver(driver, name)
    check_process_driver(driver, name)
    check_tree_reader(driver, name)


def test_unasked_properties_survive_an_update(spelled: tuple[CgroupFs, CgroupName]) -> None:
    """Every property that an update does not ask for reads back unchanged, in every control file."""
    driver, root = spelled
    name = root.child("pod")
    driver.apply(name, Limits(cpu_quota_us=30_000, cpu_period_us=60_000, pids=77, memory_bytes=96 * MIB))
    before = _control_files(driver, name)
    driver.apply(name, Limits(cpu_shares=500))
    after = _control_files(driver, name)
    changed = {path for path in before if before[path] != after[path]}
    assert {path.rpartition("/")[2] for path in changed} <= {"cpu.shares", "cpu.weight", "cpu.weight.nice"}
    assert changed


def _control_files(driver: CgroupFs, name: CgroupName) -> dict[str, str]:
    """All settings of a cgroup; files that count or only take writes are left out."""
    counters = (
        "stat",
        "usage",
        "current",
        "pressure",
        "events",
        "peak",
        "failcnt",
        "numa_stat",
        "slabinfo",
        "reclaim",
    )
    found: dict[str, str] = {}
    for mount in driver.layout.mounts:
        for path in Path(driver.layout.directory(mount, name)).iterdir():
            if not any(counter in path.name for counter in counters):
                with contextlib.suppress(OSError):
                    found[str(path)] = path.read_text()
    return found


def test_a_pods_quota_follows_those_of_its_containers(spelled: tuple[CgroupFs, CgroupName]) -> None:
    """v2 lowers it at once; v1 takes none below a container's, and all else is written meanwhile."""
    driver, top = spelled
    root = top.child("kubepods")
    cpu = driver.layout.mount_of("cpu")
    assert cpu is not None
    clock = VirtualClock()
    manager = QosTree(driver, TreeOptions(root=root), clock=clock)
    before = _pod("b-1", requests={"cpu": "2"}, limits={"cpu": "2"})
    lowered = _pod("b-1", requests={"cpu": "1"}, limits={"cpu": "1"})
    manager.reconcile([before])
    of_pod, of_container = pod_name(root, before), container_name(root, before, before.containers[0])
    driver.apply(of_container, container_limits(before.containers[0]))
    report = manager.reconcile([lowered])
    assert [type(one) for one in report.failed.values()] == [QuotaInUseError] * (cpu.version == 1)
    found = driver.read(of_pod)
    assert found is not None
    assert (found.cpu_quota_us == 100_000) is (cpu.version == 2)
    assert (found.cpu_shares or 0) <= 1024  # v2 keeps a weight
    driver.apply(of_container, container_limits(lowered.containers[0]))
    clock.advance(60.0)
    assert manager.reconcile([lowered]).is_settled
    found = driver.read(of_pod)
    assert found is not None
    assert found.cpu_quota_us == 100_000


def test_pods_live_where_their_class_says(tree: tuple[CgroupFs, CgroupName]) -> None:
    """A tree is created, its limits read back, it follows the pods, and everything goes."""
    driver, top = tree
    root = top.child("kubepods")
    manager = QosTree(driver, TreeOptions(root=root, pods=PodOptions(pids=64)))
    guaranteed = _pod(
        "g-1", requests={"cpu": "500m", "memory": "64Mi"}, limits={"cpu": "500m", "memory": "64Mi"}
    )
    burstable = _pod("b-1", requests={"cpu": "250m"})
    assert manager.reconcile([guaranteed, burstable]).is_settled
    found = driver.read(root.child("podg-1"))
    assert found is not None
    assert (found.cpu_quota_us, found.memory_bytes, found.pids) == (50_000, 64 * MIB, 64)
    assert manager.observe() == ()
    shares = driver.read(root.child("burstable"))
    report = manager.reconcile([guaranteed, burstable, _pod("b-2", requests={"cpu": "2"})])
    assert set(report.applied) == {root.child("burstable"), root.child("burstable").child("podb-2")}
    grown = driver.read(root.child("burstable"))
    assert shares is not None
    assert grown is not None
    assert (grown.cpu_shares or 0) > 4 * (shares.cpu_shares or 0)
    report = manager.reconcile([])
    assert report.is_settled
    assert driver.children(root) == (root.child("besteffort"), root.child("burstable"))
    assert driver.children(root.child("burstable")) == ()


def test_pods_of_an_earlier_life_are_removed_with_their_processes(tree: tuple[CgroupFs, CgroupName]) -> None:
    """A manager that starts anew writes nothing that is right already and clears what nobody wants."""
    driver, top = tree
    options = TreeOptions(root=top.child("kubepods"))
    stays, goes = _pod("stays", requests={"cpu": "100m"}), _pod("goes", requests={"cpu": "100m"})
    QosTree(driver, options).reconcile([stays, goes])
    left = container_name(options.root, goes, goes.containers[0])
    driver.apply(left, Limits())
    process = launch(driver, left, ["sleep", "60"])
    report = QosTree(driver, options).reconcile([stays])
    assert [removal.state for removal in report.removals] == [RemovalState.REMOVED]
    assert process.wait(5) == -9
    assert set(report.applied) == {options.root.child("burstable")}


def test_too_much_memory_is_killed_inside_the_pod(tree: tuple[CgroupFs, CgroupName]) -> None:
    """A process that exceeds its pod's memory limit is ended by the kernel; the pod counts it."""
    driver, root = tree
    pod = root.child("pod")
    driver.apply(pod, Limits(memory_bytes=48 * MIB))
    driver.apply(pod.child("app"), Limits())
    process = launch(driver, pod.child("app"), [sys.executable, "-I", "-S", "-c", _EAT])
    assert process.wait(60) == -9
    assert any(driver.stats(each).oom_kills for each in (pod, pod.child("app")))
    assert (driver.stats(pod).memory_bytes or 0) <= 48 * MIB


def test_busy_process_is_held_to_its_quota(tree: tuple[CgroupFs, CgroupName]) -> None:
    """A busy loop gets about the part of a CPU that its quota says, and the throttling is counted."""
    driver, root = tree
    name = root.child("busy")
    driver.apply(name, Limits(cpu_quota_us=20_000, cpu_period_us=100_000))
    process = launch(driver, name, ["sh", "-c", "while :; do :; done"])
    used, started = driver.stats(name), time.monotonic()
    time.sleep(1.5)
    later, passed_ns = driver.stats(name), (time.monotonic() - started) * 1e9
    driver.kill(name)
    process.wait(5)
    assert used.cpu_ns is not None
    assert later.cpu_ns is not None
    # 20 % is asked for. The machine may be busy, so that less is no fault of the quota.
    assert 0.02 < (later.cpu_ns - used.cpu_ns) / passed_ns < 0.40
    assert (later.throttled_periods or 0) > 0
    assert (later.throttled_ns or 0) > 0


def test_cpuset_confines_the_first_instruction(tree: tuple[CgroupFs, CgroupName]) -> None:
    """A launched program sees only its CPUs from its very start."""
    driver, root = tree
    name = root.child("pinned")
    last = max(os.sched_getaffinity(0))
    driver.apply(name, Limits(cpus=CPUSet.of(last), mems=NodeSet.of(0)))
    process = launch(
        driver,
        name,
        ["grep", "Cpus_allowed_list", "/proc/self/status"],
        stdout=subprocess.PIPE,
        oom_score_adj=500,
    )
    output, _ = process.communicate(timeout=10)
    assert output.split() == [b"Cpus_allowed_list:", str(last).encode()]


def test_launch_into_an_absent_cgroup_leaves_nothing(
    tree: tuple[CgroupFs, CgroupName], tmp_path: Path
) -> None:
    """The command never runs if its cgroup is not there."""
    driver, root = tree
    with pytest.raises(ValueError, match="absent"):
        launch(
            driver,
            root,
            ["touch", str(tmp_path / "ran")],
            before_start=lambda _pid: (_ for _ in ()).throw(ValueError("absent")),
        )
    assert not (tmp_path / "ran").exists()
    assert driver.pids(root) == frozenset()


def test_kernel_refusals_are_named(tree: tuple[CgroupFs, CgroupName]) -> None:
    """Absent CPUs, absent nodes and processes that have ended are told apart in words."""
    driver, root = tree
    with pytest.raises(LimitRefusedError, match=r"cpuset\.cpus"):
        driver.apply(root.child("a"), Limits(cpus=CPUSet.of(4000)))
    with pytest.raises(LimitRefusedError, match=r"cpuset\.mems"):
        driver.apply(root.child("a"), Limits(mems=NodeSet.of(60)))
    ended = subprocess.Popen(["true"])
    ended.wait()
    with pytest.raises(ProcessGoneError, match=str(ended.pid)):
        driver.attach(root.child("a"), ended.pid)


def test_quota_within_the_parents_share_is_reached_in_either_order(tree: tuple[CgroupFs, CgroupName]) -> None:
    """Shorter and longer periods are set under a parent with a quota, whichever must be written first."""
    driver, root = tree
    driver.apply(root.child("a"), Limits(cpu_quota_us=50_000, cpu_period_us=100_000))
    child = root.child("a").child("b")
    for quota_us, period_us in ((50_000, 100_000), (25_000, 50_000), (400_000, 1_000_000), (2_000, 5_000)):
        driver.apply(child, Limits(cpu_quota_us=quota_us, cpu_period_us=period_us))
        found = driver.read(child)
        assert found is not None
        assert (found.cpu_quota_us, found.cpu_period_us) == (quota_us, period_us)


def test_occupied_cgroup_names_who_is_in_it(tree: tuple[CgroupFs, CgroupName]) -> None:
    """Removal without killing is refused, and says which process is in the way."""
    driver, root = tree
    driver.apply(root.child("a"), Limits())
    process = launch(driver, root.child("a"), ["sleep", "60"])
    with pytest.raises(CgroupBusyError) as refused:
        driver.remove(root.child("a"))
    assert [each.pid for each in refused.value.processes] == [process.pid]
    driver.kill(root.child("a"))
    process.wait(5)


def test_forking_processes_are_all_ended(tree: tuple[CgroupFs, CgroupName]) -> None:
    """Processes that keep starting others do not escape."""
    driver, root = tree
    driver.apply(root.child("a"), Limits(pids=40))
    process = launch(
        driver,
        root.child("a"),
        ["sh", "-c", "while :; do sleep 30 & done 2>/dev/null"],
        stderr=subprocess.DEVNULL,
    )
    time.sleep(0.3)
    assert driver.kill(root.child("a")) == ()
    process.wait(5)


def test_v1_kills_by_signals_alone(tree: tuple[CgroupFs, CgroupName]) -> None:
    """Where no v2 hierarchy helps, freezing and signalling ends everybody as well."""
    driver, _ = tree
    v1 = tuple(mount for mount in driver.layout.mounts if mount.version == 1)
    if not v1:
        pytest.skip("this machine has cgroup v2 alone")
    only_v1 = CgroupFs(attrs.evolve(driver.layout, mounts=v1))
    assert only_v1.layout.kind == "v1"
    with own_root(only_v1) as root:
        only_v1.apply(root.child("a"), Limits(pids=40))
        process = launch(only_v1, root.child("a"), ["sh", "-c", "while :; do sleep 30 & done 2>/dev/null"])
        time.sleep(0.3)
        assert only_v1.kill(root.child("a")) == ()
        process.wait(5)


def test_the_killer_is_spared(tree: tuple[CgroupFs, CgroupName]) -> None:
    """A process that would kill itself along with a cgroup is told instead."""
    driver, root = tree
    program = (
        "import os, sys; from nodealloc.cgroups import *; d = detect(); n = CgroupName.parse(sys.argv[1])\n"
        "try: d.kill(n)\nexcept CgroupHoldsCallerError as e: sys.exit(7 if e.pid == os.getpid() else 8)"
    )
    driver.apply(root.child("a"), Limits())
    process = launch(driver, root.child("a"), [sys.executable, "-c", program, str(root.child("a"))])
    assert process.wait(60) == 7
    assert issubclass(CgroupHoldsCallerError, Exception)


def test_read_only_controller_is_named(tmp_path: Path, tree: tuple[CgroupFs, CgroupName]) -> None:
    """A hierarchy that is mounted read-only is found at the check, and named when it is written."""
    driver, _ = tree
    mount = driver.layout.mount_of("memory")
    assert mount is not None
    point = tmp_path / "memory"
    point.mkdir()
    bound = subprocess.run(["mount", "--bind", mount.path, str(point)], capture_output=True, check=False)
    if bound.returncode:
        pytest.skip(f"this machine refuses bind mounts: {bound.stderr.decode().strip()}")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(point)], check=True)
        layout = attrs.evolve(driver.layout, mounts=(attrs.evolve(mount, path=str(point)),))
        assert [each.what for each in check_requirements(layout, ["memory"])] == ["memory"]
        with pytest.raises(ReadOnlyError, match="memory") as refused:
            CgroupFs(layout).apply(CgroupName.of(f"nodealloc-never-{os.getpid()}"), Limits())
        assert "memory" in refused.value.controllers
    finally:
        subprocess.run(["umount", str(point)], check=True)


def test_a_mount_whose_name_is_no_text_disturbs_nobody(tmp_path: Path) -> None:
    """Whoever may mount chooses names of any bytes; cgroups are found beside them."""
    point = os.fsencode(tmp_path) + b"/\xff \x0c"
    os.mkdir(point)  # noqa: PTH102 - no text, so no Path
    mounted = subprocess.run([b"mount", b"-t", b"tmpfs", b"odd", point], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"this machine refuses mounts: {mounted.stderr.decode().strip()}")
    try:
        kind = driver_here().layout.kind
    finally:
        subprocess.run([b"umount", point], check=True)
    assert kind == driver_here().layout.kind


def test_container_in_its_pod(tree: tuple[CgroupFs, CgroupName]) -> None:
    """A container's own cgroup has its own limits, below its pod's."""
    driver, root = tree
    pod = _pod("c-1", requests={"cpu": "200m", "memory": "32Mi"}, limits={"cpu": "400m", "memory": "64Mi"})
    QosTree(driver, TreeOptions(root=root.child("kubepods"))).reconcile([pod])
    name = container_name(root.child("kubepods"), pod, pod.containers[0])
    driver.apply(name, container_limits(pod.containers[0]))
    found = driver.read(name)
    assert found is not None
    assert (found.cpu_quota_us, found.memory_bytes) == (40_000, 64 * MIB)
    process = launch(driver, name, ["sleep", "60"])
    assert driver.pids(name.parent) == {process.pid}
    assert driver.stats(name).pids == 1
    driver.kill(name.parent)
    process.wait(5)
