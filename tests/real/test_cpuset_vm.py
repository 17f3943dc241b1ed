"""On four real NUMA nodes: what was granted is what the kernel enforces."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodealloc.cpuset import CgroupV2Writer, CpuAllocator, CpusetReconciler
from nodealloc.dsw_asw import InlineExecutor
from nodealloc.idset import CPUSet, NodeSet
from nodealloc.machine import discover
from nodealloc.podspec import Quantity
from nodealloc.topology import (
    Admitted,
    Claim,
    NumaTopology,
    Owner,
    Policy,
    PolicyName,
    Snapshot,
    Workload,
    admit,
)

pytestmark = [pytest.mark.vm, pytest.mark.real]

ROOT = Path("/sys/fs/cgroup")


def _switch_on(path: Path) -> None:
    (path / "cgroup.subtree_control").write_text("+cpuset")


@pytest.fixture
def containers() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Three sleepers, each in a cgroup of its own."""
    _switch_on(ROOT)
    parent = ROOT / f"nodealloc-cpuset-{os.getpid()}"
    parent.mkdir()
    _switch_on(parent)
    sleepers: list[subprocess.Popen[bytes]] = []
    for name in ("one", "two", "shared"):
        (parent / name).mkdir()
        sleepers.append(subprocess.Popen(["sleep", "600"]))
        (parent / name / "cgroup.procs").write_text(str(sleepers[-1].pid))
    yield sleepers
    for sleeper in sleepers:
        sleeper.kill()
        sleeper.wait()
    for name in ("one", "two", "shared"):
        (parent / name).rmdir()
    parent.rmdir()


def _confined(pid: int) -> tuple[CPUSet, NodeSet]:
    """Where the kernel lets a process run and allocate."""
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return CPUSet.parse(status["Cpus_allowed_list"]), NodeSet.parse(status["Mems_allowed_list"])


def test_processes_run_on_the_granted_cpus_and_nodes(containers: list[subprocess.Popen[bytes]]) -> None:
    """Two jobs go to nodes of their own, the rest shares; an outside write is repaired."""
    machine = discover().machine
    node = Snapshot(
        numa=NumaTopology(nodes=tuple(machine.nodes), distances=machine.distances or {}),
        policy=Policy(name=PolicyName.SINGLE_NUMA_NODE),
        allocators=(CpuAllocator.of(machine, reserved=1),),
    )
    jobs = [Claim(owner=Owner(key, "main"), amounts={"cpu": Quantity.of(2)}) for key in ("one", "two")]
    for job in jobs:
        verdict = admit(node, Workload(key=job.owner.workload, claims=(job,)))
        assert isinstance(verdict, Admitted)
        node = verdict.snapshot
    (cpus,) = node.allocators
    assert isinstance(cpus, CpuAllocator)
    below = f"nodealloc-cpuset-{os.getpid()}"
    keeper = CpusetReconciler(CgroupV2Writer(), executor=InlineExecutor(), allocator=cpus)
    granted: list[tuple[CPUSet, NodeSet]] = []
    for job in jobs:
        held = cpus.exclusive_of(job.owner)
        granted.append((held, NodeSet(cpu.numa_nodes[0] for cpu in machine.cpus if cpu.id in held)))
        keeper.add(f"{below}/{job.owner.workload}", job.owner, mems=granted[-1][1])
    keeper.add(f"{below}/shared", Owner("three", "main"))
    keeper.reconcile()
    seen = [_confined(sleeper.pid) for sleeper in containers]
    assert seen[:2] == granted
    assert seen[0][1] != seen[1][1]
    assert seen[2][0] == cpus.shared
    assert keeper.intruders(f"{below}/one") == ()
    (ROOT / below / "one" / "cpuset.cpus").write_text(str(machine.online))
    keeper.observe()
    keeper.reconcile()
    assert _confined(containers[0].pid) == granted[0]
