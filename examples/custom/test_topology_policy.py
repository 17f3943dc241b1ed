"""The storage policy moves what is free to move, and nothing else."""

from examples.custom.topology_policy import NearStorage
from nodealloc.testing.topology import FakeAllocator, workload
from nodealloc.topology import Admitted, NumaTopology, Policy, PolicyName, Snapshot, TopologyHint, admit

POLICY = Policy(name=PolicyName.RESTRICTED, comparison=NearStorage(((0, 0), (1, 4))))


def affinity(free: dict[int, int], wanted: int) -> TopologyHint:
    """Where a workload of one member goes."""
    gpu = FakeAllocator.of("example.com/gpu", free)
    node = Snapshot(numa=NumaTopology(nodes=(0, 1)), policy=POLICY, allocators=(gpu,))
    answer = admit(node, workload("job", {"example.com/gpu": wanted}))
    assert isinstance(answer, Admitted)
    return answer.affinity["app-0"]


def test_the_node_with_drives_is_taken() -> None:
    """The kubelet would take node 0, which has the lower number."""
    assert affinity({0: 2, 1: 2}, 2).affinity == 0b10


def test_a_narrow_place_still_beats_a_wide_one() -> None:
    """Where only node 0 suffices alone, drives do not matter."""
    assert affinity({0: 4, 1: 2}, 4).affinity == 0b01
