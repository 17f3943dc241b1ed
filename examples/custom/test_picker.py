"""The picker keeps its promise, and the promises of every picker."""

import pytest

from examples.custom.picker import OneThreadPerCore
from nodealloc.cpuset import CpuAllocator, CpuLayout, CPUSet, StaticPolicy
from nodealloc.machine import machine_from_text
from nodealloc.testing.cpuset import check_picker
from nodealloc.testing.topology import workload
from nodealloc.topology import Admitted, Owner, Policy, Snapshot, admit

MACHINE = machine_from_text("2 sockets x 4 cores x 2 threads")


@pytest.mark.parametrize("spare", [True, False])
def test_it_is_a_picker(spare: bool) -> None:
    """Exactly as many CPUs as asked for, out of the available ones, or None."""
    check_picker(OneThreadPerCore(spare), CpuLayout.of(MACHINE))


def test_no_two_cpus_share_a_core() -> None:
    """Four CPUs are four cores of one NUMA node; five do not fit there."""
    policy = StaticPolicy.of(MACHINE, picker=OneThreadPerCore())
    allocators = [CpuAllocator(policy=policy)]
    node = Snapshot.of(MACHINE, policy=Policy.parse("restricted"), allocators=allocators)
    answer = admit(node, workload("job", {"cpu": 4}))
    assert isinstance(answer, Admitted)
    assert answer.snapshot[CpuAllocator].cpus_of(Owner("job", "app-0")) == CPUSet.parse("0-3")
