"""Programs that really get their memory from the nodes that were granted to them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodealloc.cgroups import CgroupFs, CgroupName, Limits, detect, launch
from nodealloc.errors import NodeallocError
from nodealloc.idset import CPUSet, NodeSet
from nodealloc.machine import Machine, discover
from nodealloc.memblocks import MemoryAllocator
from nodealloc.memblocks._codec import from_kubelet
from nodealloc.podspec import Quantity
from nodealloc.testing.memblocks import check_books
from nodealloc.topology import (
    Admitted,
    Claim,
    NumaTopology,
    Owner,
    Policy,
    PolicyName,
    Snapshot,
    TopologyHint,
    Workload,
    admit,
)

pytestmark = pytest.mark.real

MIB = 1 << 20
ONLINE = CPUSet.parse(Path("/sys/devices/system/cpu/online").read_text().strip())

SHOW = ["sh", "-c", "grep Mems_allowed_list /proc/self/status"]
HOLD = (
    "import sys, time; size = int(sys.argv[1]); kept = bytearray(size)\n"
    "kept[::4096] = b'x' * len(kept[::4096]); print('ready', flush=True); time.sleep(60)"
)
HUGE = (
    "import mmap, sys\n"
    "size = int(sys.argv[1])\n"
    "area = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000)\n"
    "for at in range(0, size, 1 << 21): area[at] = 1\n"
)


@pytest.fixture
def cgroup(as_root: None) -> Iterator[tuple[CgroupFs, CgroupName]]:
    """A cgroup of our own that memory nodes can be given to."""
    driver, name = detect(), CgroupName.of(f"nodealloc-memory-{os.getpid()}")
    try:
        driver.apply(name, Limits(cpus=ONLINE, mems=discover().machine.nodes))
    except NodeallocError as reason:
        pytest.skip(f"cpuset.mems cannot be written here: {reason}")
    yield driver, name
    driver.kill(name)
    driver.remove(name)


def claim(key: str, **amounts: int) -> Claim:
    """A claim of `memory`, or of `huge` pages of 2 MiB, in bytes."""
    names = {"memory": "memory", "huge": "hugepages-2Mi"}
    return Claim(
        owner=Owner(key, "app"),
        amounts={names[name]: Quantity.of(size) for name, size in amounts.items()},
    )


def snapshot(machine: Machine) -> Snapshot:
    """A node with that memory, aligned by the restricted policy."""
    return Snapshot(
        numa=NumaTopology(nodes=tuple(machine.nodes), distances=machine.distances or {}),
        policy=Policy(name=PolicyName.RESTRICTED),
        allocators=(MemoryAllocator.of(machine),),
    )


def with_claim(node: Snapshot, asked: Claim) -> Snapshot:
    """The node with a workload of one claim."""
    verdict = admit(node, Workload(key=asked.owner.workload, claims=(asked,)))
    assert isinstance(verdict, Admitted), verdict
    return verdict.snapshot


def memory(node: Snapshot) -> MemoryAllocator:
    """Its memory."""
    (allocator,) = node.allocators
    assert isinstance(allocator, MemoryAllocator)
    check_books(allocator)
    return allocator


def test_a_program_is_confined_to_what_it_was_granted(cgroup: tuple[CgroupFs, CgroupName]) -> None:
    """From the discovered machine to `/proc/PID/status`, on whatever runs the tests."""
    driver, name = cgroup
    node = with_claim(snapshot(discover().machine), claim("job", memory=16 * MIB))
    mems = str(memory(node).mems_of(Owner("job", "app")))
    driver.apply(name, Limits(cpus=ONLINE, mems=NodeSet.parse(mems)))
    process = launch(driver, name, SHOW, stdout=subprocess.PIPE)
    output, _ = process.communicate(timeout=60)
    assert output.decode().split() == ["Mems_allowed_list:", mems]


def test_a_real_machine_restarts_from_its_state_file(tmp_path: Path) -> None:
    """Discovered again, nothing has shifted, and everybody stays."""
    machine = discover().machine
    before = memory(with_claim(snapshot(machine), claim("job", memory=16 * MIB)))
    path = tmp_path / "memory_manager_state"
    path.write_bytes(before.to_kubelet().marshal())
    record = type(before.to_kubelet()).unmarshal(path.read_bytes())
    plan = MemoryAllocator.of(discover().machine).plan_restore(from_kubelet(record))
    assert plan.is_clean
    assert plan.allocator == before
    assert plan.beyond == ()


@pytest.mark.vm
def test_two_jobs_have_their_memory_on_two_nodes(cgroup: tuple[CgroupFs, CgroupName]) -> None:
    """Each too large to share a node; the kernel counts their pages where they were granted."""
    driver, name = cgroup
    node = snapshot(discover().machine)
    for key in ("one", "two"):
        node = with_claim(node, claim(key, memory=260 * MIB))
    granted = {key: str(memory(node).mems_of(Owner(key, "app"))) for key in ("one", "two")}
    assert len(set(granted.values())) == 2
    for key, mems in granted.items():
        child = name.child(key)
        driver.apply(child, Limits(cpus=ONLINE, mems=NodeSet.parse(mems)))
        command = [sys.executable, "-I", "-S", "-c", HOLD, str(40 * MIB)]
        process = launch(driver, child, command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        text = Path(driver.layout.directory(driver.layout.mounts[0], child), "memory.numa_stat").read_text()
        anonymous = next(line for line in text.splitlines() if line.startswith("anon "))
        by_node = dict(part.split("=") for part in anonymous.split()[1:])
        assert int(by_node[f"N{mems}"]) >= 40 * MIB
        driver.kill(child)
        process.communicate(timeout=10)


@pytest.mark.vm
def test_huge_pages_are_where_the_books_say(cgroup: tuple[CgroupFs, CgroupName]) -> None:
    """More pages than a node has need a group of two; in it they can be had, on one node they cannot."""
    driver, name = cgroup
    machine = discover().machine
    pages = {node.id: node.hugepages.get(2 * MIB, 0) for node in machine.numa_nodes}
    wanted = (max(pages.values()) + 4) * 2 * MIB
    node = with_claim(snapshot(machine), claim("wide", memory=8 * MIB, huge=wanted))
    mems = memory(node).mems_of(Owner("wide", "app"))
    assert len(mems) == 2
    assert sum(pages[one] for one in mems) * 2 * MIB >= wanted
    ends: list[int] = []
    for where in (mems, NodeSet.of(next(iter(mems)))):
        child = name.child(f"on-{'-'.join(map(str, where))}")
        driver.apply(child, Limits(cpus=ONLINE, mems=where))
        ends.append(launch(driver, child, [sys.executable, "-I", "-S", "-c", HUGE, str(wanted)]).wait(60))
    assert ends[0] == 0
    assert ends[1] != 0


@pytest.mark.vm
def test_a_node_without_huge_pages_is_not_hinted(as_root: None) -> None:
    """Discovered pools decide: the fourth node has none."""
    machine = discover().machine
    allocator = MemoryAllocator.of(machine)
    assert isinstance(allocator, MemoryAllocator)
    hints = allocator.hints([claim("job", memory=MIB, huge=2 * MIB)])["hugepages-2Mi"] or ()
    single = [hint.affinity for hint in hints if hint.preferred]
    having = [1 << one.id for one in machine.numa_nodes if one.hugepages.get(2 * MIB)]
    assert single == having
    hint = TopologyHint(1 << 3, preferred=False)
    assert isinstance(allocator.allocate(claim("job", memory=MIB, huge=2 * MIB), hint), MemoryAllocator)
