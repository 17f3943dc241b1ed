"""A scheduler asks what a node would answer."""

from __future__ import annotations

from typing import assert_type

from nodealloc.cpuset import CpuAllocator, CPUSet
from nodealloc.machine import Machine, machine_from_text
from nodealloc.podspec import Pod
from nodealloc.topology import (
    Admitted,
    Explanation,
    NotYet,
    Owner,
    Placed,
    Policy,
    Refusal,
    Snapshot,
    admit,
    explain,
    release,
    workload_of,
)

machine = machine_from_text("2 sockets x 4 cores x 2 threads")
assert_type(machine, Machine)
cpu = CpuAllocator.of(machine, reserved=CPUSet.of(0))
empty = Snapshot.of(
    machine,
    policy=Policy.parse("single-numa-node"),
    allocators=(cpu,),
)
limits = {"cpu": 4, "memory": "1Gi"}
pod = Pod.from_manifest(
    {
        "metadata": {"name": "db", "uid": "u"},
        "spec": {"containers": [{"name": "app", "resources": {"limits": limits}}]},
    }
)
verdict = admit(empty, workload_of(pod))
assert_type(verdict, Placed | Refusal | NotYet)
match verdict:
    case Admitted():
        assert_type(verdict.snapshot, Snapshot)
        after = verdict.snapshot[CpuAllocator]
        assert_type(after, CpuAllocator)
        assert_type(after.cpus_of(Owner("u", "app")), CPUSet)
        assert len(after.cpus_of(Owner("u", "app"))) == 4
        assert release(verdict.snapshot, "u").allocators == empty.allocators
    case Refusal():
        assert_type(explain(verdict), Explanation)
        raise AssertionError(explain(verdict).text)
    case NotYet():
        raise AssertionError(str(verdict))
