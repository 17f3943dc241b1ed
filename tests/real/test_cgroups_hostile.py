"""The cgroups of this machine while somebody else is at them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from nodealloc.cgroups import (
    CgroupAbsentError,
    CgroupBusyError,
    CgroupFs,
    CgroupName,
    Layout,
    Limits,
    PodOptions,
    ProcessGoneError,
    QosTree,
    TreeOptions,
    launch,
)
from nodealloc.cgroups._files import KernelFiles
from nodealloc.idset import CPUSet
from nodealloc.podspec import Container, Pod, Quantity
from tests.real.cgroups_here import driver_here, own_root, switches_as_before

pytestmark = pytest.mark.real

PAGE = 2 << 20


@pytest.fixture(scope="module", autouse=True)
def _switches() -> Iterator[None]:
    with switches_as_before():
        yield


@pytest.fixture
def tree() -> Iterator[tuple[CgroupFs, CgroupName]]:
    """A driver, with a root of its own."""
    driver = driver_here()
    with own_root(driver) as name:
        yield driver, name


def _pod(uid: str, cpu: str = "1") -> Pod:
    return Pod(uid=uid, containers=(Container(name="app", requests={"cpu": Quantity.parse(cpu)}),))


def _directories(driver: CgroupFs, name: CgroupName) -> list[str]:
    return [driver.layout.directory(mount, name) for mount in driver.layout.mounts]


def test_a_cgroup_that_comes_and_goes_is_absent_or_there(tree: tuple[CgroupFs, CgroupName]) -> None:
    """Whichever call somebody's removal hits, it answers or says that the cgroup is absent."""
    driver, root = tree
    name, done = root.child("x"), threading.Event()

    def remove() -> None:
        while not done.is_set():
            for directory in _directories(driver, name):
                with contextlib.suppress(OSError):
                    Path(directory).rmdir()

    remover = threading.Thread(target=remove)
    remover.start()
    try:
        for _ in range(200):
            with contextlib.suppress(CgroupAbsentError):
                driver.apply(name, Limits(cpu_shares=100, pids=5, cpus=CPUSet(os.sched_getaffinity(0))))
            driver.read(name)
            with contextlib.suppress(CgroupAbsentError):
                driver.stats(name)
            assert driver.kill(name) == ()
            assert driver.children(name) == ()
            driver.remove(name)
    finally:
        done.set()
        remover.join()
    driver.apply(name, Limits(pids=5))


def test_what_others_removed_comes_back(tree: tuple[CgroupFs, CgroupName]) -> None:
    """A pod's cgroup that is gone, or in some hierarchies only, has all its limits after its next change."""
    driver, root = tree
    options = TreeOptions(root=root.child("kubepods"), pods=PodOptions(pids=64))
    manager = QosTree(driver, options)
    name = options.root.child("burstable").child("poda")
    manager.reconcile([_pod("a")])
    for now, gone in enumerate([_directories(driver, name), _directories(driver, name)[:1]]):
        for directory in gone:
            Path(directory).rmdir()
        assert manager.reconcile([_pod("a", str(now + 2))]).is_settled
        assert manager.observe() == ()


def test_a_controller_that_was_switched_off_is_switched_on_again(tree: tuple[CgroupFs, CgroupName]) -> None:
    """The limit that it held is shown as drift; writing it again hands the controller down anew."""
    driver, root = tree
    unified = driver.layout.unified
    if unified is None or "hugetlb" not in unified.controllers or PAGE not in driver.hugepage_sizes():
        pytest.skip("this machine has no huge page controller on cgroup v2")
    name = root.child("a")
    asked = Limits(hugepage_bytes={PAGE: 2 * PAGE})
    driver.apply(name, asked)
    switches = f"{driver.layout.directory(unified, root)}/cgroup.subtree_control"
    KernelFiles().write(switches, "-hugetlb")
    found = driver.read(name)
    assert found is not None
    assert not found.hugepage_bytes
    driver.apply(name, asked)
    found = driver.read(name)
    assert found is not None
    assert found.hugepage_bytes[PAGE] == 2 * PAGE


def test_threads_in_the_way_are_named(tree: tuple[CgroupFs, CgroupName]) -> None:
    """A threaded cgroup lists no process, and SIGKILL is for processes; who is in it is said all the same."""
    driver, _ = tree
    if (unified := driver.layout.unified) is None:
        pytest.skip("this machine has no cgroup v2")
    alone = CgroupFs(Layout(mounts=(attrs.evolve(unified, controllers=()),)))
    with own_root(alone) as top:
        name = top.child("w")
        alone.apply(name, Limits())
        directory = alone.layout.directory(alone.layout.mounts[0], name)
        try:
            KernelFiles().write(f"{directory}/cgroup.type", "threaded")
        except OSError as error:
            pytest.skip(f"this machine has no threaded cgroups: {error.strerror}")
        process = launch(alone, name, ["sleep", "60"])
        assert alone.pids(top) == {process.pid}
        assert [each.pid for each in alone.kill(name)] == [process.pid]
        with pytest.raises(CgroupBusyError, match=str(process.pid)):
            alone.remove(name)
        assert alone.kill(top) == ()
        assert process.wait(5) == -9


def test_a_frozen_or_stopped_pod_goes(tree: tuple[CgroupFs, CgroupName]) -> None:
    """SIGKILL reaches who was frozen by somebody, and who was stopped."""
    driver, root = tree
    freezer = driver.layout.mount_of("freezer")
    for number in range(2):
        name = root.child(f"a{number}")
        driver.apply(name, Limits())
        process = launch(driver, name, ["sleep", "60"])
        if number and freezer is not None:
            KernelFiles().write(f"{driver.layout.directory(freezer, name)}/freezer.state", "FROZEN")
        else:
            os.kill(process.pid, signal.SIGSTOP)
        assert driver.kill(name) == ()
        driver.remove(name)
        assert process.wait(5) == -9


@pytest.mark.parametrize(("depth", "part"), [(1_200, "d"), (20, "d" * 250)])
def test_a_pod_in_cgroups_deeper_than_a_path_is_long_goes(
    tree: tuple[CgroupFs, CgroupName], depth: int, part: str
) -> None:
    """Made by a container that may; what runs in the deepest is killed, and all are removed."""
    driver, root = tree
    name = root.child("deep")
    driver.apply(name, Limits())
    mount = next(one for one in driver.layout.mounts if one.version == 2 or "pids" in one.controllers)
    here = os.open(driver.layout.directory(mount, name), os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(part, dir_fd=here)
        inner = os.open(part, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    with subprocess.Popen(["sleep", "600"]) as process:
        procs = os.open("cgroup.procs", os.O_WRONLY, dir_fd=here)
        os.close(here)
        os.write(procs, str(process.pid).encode())
        os.close(procs)
        assert driver.pids(name) == {process.pid}
        assert driver.kill(name) == ()
        process.wait()
    driver.remove(name)
    assert not driver.exists(name)


def test_a_process_that_forks_while_it_is_moved_arrives_with_its_children(
    tree: tuple[CgroupFs, CgroupName],
) -> None:
    """A few passes move everybody."""
    driver, root = tree
    here, there = root.child("a"), root.child("b")
    for name in (here, there):
        driver.apply(name, Limits(pids=60))
    program = "while :; do sleep 30 & done 2>/dev/null"
    process = launch(driver, here, ["sh", "-c", program], stderr=subprocess.DEVNULL)
    time.sleep(0.1)
    for _ in range(10):
        for pid in driver.pids(here):
            with contextlib.suppress(ProcessGoneError):
                driver.attach(there, pid)
        if not driver.pids(here):
            break
    assert driver.pids(here) == frozenset()
    assert driver.pids(there)
    assert driver.kill(there) == ()
    process.wait(5)


def test_a_process_that_ends_at_the_gate_is_gone(tree: tuple[CgroupFs, CgroupName]) -> None:
    """Whoever killed it, the command did not run; no pipe stays open."""
    driver, root = tree

    def kill(pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

    with pytest.raises(ProcessGoneError):
        launch(driver, root, ["true"], stdout=subprocess.PIPE, before_start=kill)
    assert driver.pids(root) == frozenset()
