"""An agent keeps a node, with a runtime of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_type

from nodealloc.checkpoint import MemoryStore
from nodealloc.cpuset import CpuAllocator
from nodealloc.machine import machine_from_text
from nodealloc.memblocks import MemoryAllocator
from nodealloc.node import (
    FORMATS,
    Confinement,
    NodeAllocator,
    RunningContainer,
    Runtime,
    StartReport,
)
from nodealloc.podspec import Quantity
from nodealloc.topology import Admitted, Claim, Owner, Policy, Snapshot, Workload


class Nothing:
    """A `Runtime` in which nothing runs."""

    def running(self) -> Sequence[RunningContainer]:
        """Nothing."""
        return []


machine = machine_from_text("1 socket x 4 cores, memory=8Gi")
empty = Snapshot.of(
    machine,
    policy=Policy.parse("best-effort"),
    allocators=(CpuAllocator.of(machine), MemoryAllocator.of(machine)),
)
runtime: Runtime = Nothing()
node = NodeAllocator(empty, MemoryStore(FORMATS), runtime=runtime)
assert_type(node.start(), StartReport)
claim = Claim(owner=Owner("job", "rank-0"), amounts={"cpu": Quantity.of(2)})
assert isinstance(node.admit(Workload(key="job", claims=(claim,))), Admitted)
confined = node.before_start(Owner("job", "rank-0"), "container-1")
assert_type(confined, Confinement)
assert confined.cpus is not None
assert len(confined.cpus) == 2
assert_type(node.after_stop(Owner("job", "rank-0"), "container-1"), bool)
node.release("job")
