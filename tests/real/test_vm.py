"""The virtual machine: four real NUMA nodes at unequal distances, and cgroup v2 with all controllers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodealloc.cgroups import (
    NO_LIMIT,
    CgroupFs,
    CgroupName,
    LimitRefusedError,
    Limits,
    PodOptions,
    QosTree,
    TreeOptions,
    check_requirements,
    check_swap,
    container_limits,
    container_name,
    detect,
    launch,
)
from nodealloc.idset import CPUSet, NodeSet
from nodealloc.machine import discover
from nodealloc.podspec import Container, Pod, Quantity
from tests.vm.guest import HUGEPAGES
from tests.vm.hardware import CPUS_PER_NODE, DISTANCES, MEMORY_MIB

pytestmark = [pytest.mark.vm, pytest.mark.real]

MIB = 1 << 20


@pytest.fixture
def tree() -> Iterator[tuple[CgroupFs, CgroupName]]:
    """The driver, with a root of its own."""
    driver, name = detect(), CgroupName.of(f"nodealloc-vm-{os.getpid()}")
    driver.apply(name, Limits())
    yield driver, name
    driver.kill(name)
    driver.remove(name)


def _status(command: str) -> list[str]:
    """A program that shows how it is confined."""
    return ["sh", "-c", f"grep -E '^(Cpus|Mems)_allowed_list' /proc/self/status; {command}"]


def test_four_nodes_are_discovered() -> None:
    """Nodes, their CPUs, memory, huge pages and distances are those that the machine was built with."""
    found = discover().machine
    assert list(found.nodes) == [0, 1, 2, 3]
    for node in found.numa_nodes:
        first = node.id * CPUS_PER_NODE
        assert node.cpus == CPUSet(range(first, first + CPUS_PER_NODE))
        assert 0.7 * MEMORY_MIB[node.id] * MIB < node.memory_bytes <= MEMORY_MIB[node.id] * MIB
        assert node.hugepages.get(2 * MIB, 0) == HUGEPAGES[node.id]
    assert found.distances is not None
    assert [[found.distances[a][b] for b in range(4)] for a in range(4)] == [list(row) for row in DISTANCES]
    assert {found.cpu[cpu].socket for cpu in (0, 1)} != {found.cpu[cpu].socket for cpu in (2, 3)}


def test_all_controllers_are_on_v2() -> None:
    """Nothing is missing: the layout is v2, with every controller that pods need."""
    driver = detect()
    assert driver.layout.kind == "v2"
    assert set(driver.layout.mounts[0].controllers) == {"cpu", "cpuset", "hugetlb", "memory", "pids"}
    assert check_requirements(driver.layout, ["cpu", "cpuset", "memory", "pids", "hugetlb"]) == ()
    assert check_swap() is None


@pytest.mark.parametrize("node", range(4))
def test_program_is_confined_to_a_node(tree: tuple[CgroupFs, CgroupName], node: int) -> None:
    """CPUs and memory nodes of its cgroup show in `/proc/PID/status` from the first instruction on."""
    driver, root = tree
    name = root.child("pinned")
    first = node * CPUS_PER_NODE
    cpus = CPUSet(range(first, first + CPUS_PER_NODE))
    driver.apply(name, Limits(cpus=cpus, mems=NodeSet.of(node)))
    process = launch(driver, name, _status("exit 0"), stdout=subprocess.PIPE)
    output, _ = process.communicate(timeout=60)
    assert output.decode().split() == ["Cpus_allowed_list:", str(cpus), "Mems_allowed_list:", str(node)]


def test_memory_comes_from_the_node(tree: tuple[CgroupFs, CgroupName]) -> None:
    """What a confined program allocates is on its node, as the kernel counts it."""
    driver, root = tree
    name = root.child("local")
    driver.apply(name, Limits(cpus=CPUSet.of(0), mems=NodeSet.of(2)))
    program = (
        "import time; kept = bytearray(40 << 20); kept[::4096] = b'x' * len(kept[::4096])\n"
        "print('ready', flush=True); time.sleep(60)"
    )
    process = launch(driver, name, [sys.executable, "-I", "-S", "-c", program], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    text = Path(driver.layout.directory(driver.layout.mounts[0], name), "memory.numa_stat").read_text()
    anonymous = next(line for line in text.splitlines() if line.startswith("anon "))
    by_node = dict(part.split("=") for part in anonymous.split()[1:])
    assert int(by_node["N2"]) >= 40 * MIB
    assert int(by_node["N2"]) > 20 * int(by_node["N1"])
    driver.kill(name)
    process.communicate(timeout=10)


def test_whole_tree_with_limits(tree: tuple[CgroupFs, CgroupName]) -> None:
    """The tree of a node with memory QoS and huge pages reads back as it was asked for, and goes."""
    driver, top = tree
    asked = {"cpu": Quantity.of("500m"), "memory": Quantity.of("64Mi"), "hugepages-2Mi": Quantity.of("4Mi")}
    pod = Pod(uid="g-1", containers=(Container(name="app", requests=asked, limits=asked),))
    mild = Pod(uid="b-1", containers=(Container(name="app", requests={"memory": Quantity.of("32Mi")}),))
    options = PodOptions(
        memory_qos=True, pids=50, hugepage_sizes=driver.hugepage_sizes(), allocatable_memory_bytes=512 * MIB
    )
    root = top.child("kubepods")
    manager = QosTree(
        driver, TreeOptions(root=root, root_limits=Limits(memory_bytes=900 * MIB), pods=options)
    )
    assert manager.reconcile([pod, mild]).is_settled
    assert manager.observe() == ()
    found = driver.read(root.child("podg-1"))
    assert found is not None
    assert found.hugepage_bytes == {2 * MIB: 4 * MIB, 1 << 30: 0}
    assert (found.memory_bytes, found.memory_min_bytes) == (64 * MIB, 64 * MIB)
    above = driver.read(root)
    assert above is not None
    assert (above.memory_bytes, above.memory_min_bytes) == (900 * MIB, 96 * MIB)
    leaf = container_name(root, mild, mild.containers[0])
    driver.apply(leaf, container_limits(mild.containers[0], options))
    limits = driver.read(leaf)
    assert limits is not None
    assert limits.memory_high_bytes == (32 * MIB + (512 - 32) * MIB * 9 // 10) // 4096 * 4096
    driver.apply(leaf, Limits(memory_high_bytes=NO_LIMIT))
    assert manager.reconcile([]).is_settled
    assert driver.children(root.child("burstable")) == ()


def test_processes_live_in_leaves(tree: tuple[CgroupFs, CgroupName]) -> None:
    """v2 refuses processes beside children that have controllers; the error says what to do."""
    driver, root = tree
    driver.apply(root.child("inner"), Limits())
    driver.apply(root.child("inner").child("leaf"), Limits(pids=10))
    with pytest.raises(LimitRefusedError, match="leaves only"):
        launch(driver, root.child("inner"), ["true"])


def test_huge_pages_are_confined(tree: tuple[CgroupFs, CgroupName]) -> None:
    """A process gets as many huge pages as its cgroup may have, and no more."""
    driver, root = tree
    program = (
        "import mmap, sys\n"
        "size = int(sys.argv[1]) << 21\n"
        "area = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000)\n"
        "for at in range(0, size, 1 << 21): area[at] = 1\n"
    )
    driver.apply(root.child("huge"), Limits(hugepage_bytes={2 * MIB: 4 * MIB}))
    ends = [
        launch(driver, root.child("huge"), [sys.executable, "-I", "-S", "-c", program, str(pages)]).wait(60)
        for pages in (2, 3)
    ]
    assert ends[0] == 0
    assert ends[1] != 0
