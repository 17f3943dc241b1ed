"""GPU memory goes with CPUs to one NUMA node, and no byte is given out twice."""

from examples.custom.gpu_memory import RESOURCE, GpuMemory
from nodealloc.cpuset import CpuAllocator
from nodealloc.machine import machine_from_text
from nodealloc.testing.topology import check_allocator, workload
from nodealloc.topology import Admitted, NumaTopology, Owner, Policy, Refusal, Snapshot, admit

NUMA = NumaTopology(nodes=(0, 1))
CARDS = GpuMemory(cards={"gpu0": (0, 16 << 30), "gpu1": (1, 24 << 30)})


def test_it_is_an_allocator() -> None:
    """Held to what admission relies on."""
    check_allocator(CARDS, workload("job", {RESOURCE: 8 << 30}, {RESOURCE: 16 << 30}), NUMA)


def test_it_pulls_the_cpus_to_its_node() -> None:
    """20 GiB fit on the card of node 1 only, so the CPUs are taken there."""
    machine = machine_from_text("2 sockets x 4 cores")
    allocators = (CpuAllocator.of(machine), CARDS)
    node = Snapshot.of(machine, policy=Policy.parse("single-numa-node"), allocators=allocators)
    answer = admit(node, workload("job", {"cpu": 2, RESOURCE: 20 << 30}))
    assert isinstance(answer, Admitted)
    assert str(answer.snapshot[CpuAllocator].cpus_of(Owner("job", "app-0"))) == "4-5"
    assert isinstance(admit(answer.snapshot, workload("next", {RESOURCE: 20 << 30})), Refusal)
