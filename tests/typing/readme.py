"""README's first example, for type checkers; a test compares the two."""

from __future__ import annotations

from typing import assert_type

from nodealloc.cpuset import CpuAllocator, CPUSet
from nodealloc.machine import machine_from_text
from nodealloc.podspec import Pod
from nodealloc.topology import Admitted, Owner, Policy, Snapshot, TopologyHint, admit

machine = machine_from_text("2 sockets x 2 numa x 8 cores x 2 threads")
node = Snapshot.of(
    machine,
    policy=Policy.parse("restricted"),
    allocators=[CpuAllocator.of(machine, reserved=CPUSet.of(0))],
)
pod = Pod.from_manifest(
    {
        "metadata": {"name": "db", "uid": "db-1"},
        "spec": {
            "containers": [{"name": "server", "resources": {"limits": {"cpu": 6, "memory": "8Gi"}}}],
        },
    }
)
answer = admit(node, pod)
assert isinstance(answer, Admitted)
assert_type(answer.snapshot[CpuAllocator].cpus_of(Owner("db-1", "server")), CPUSet)
assert_type(answer.affinity["server"], TopologyHint)
