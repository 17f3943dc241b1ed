"""What a machine refuses to be, and what it knows of itself."""

from __future__ import annotations

import pickle

import attrs
import pytest

from nodealloc.idset import MAX_ID, CPUSet, NodeSet
from nodealloc.machine import Cpu, Machine, NumaNode, as_kubelet_counts, by_first_cpu, machine_from_text

FINGERPRINT = "b1b6b069d7ee4dd8cd35fb9e0e14d5e6"


def cpu(number: int, *, core: int | None = None, socket: int = 0, nodes: tuple[int, ...] = (0,)) -> Cpu:
    """A CPU that is a core of its own unless told otherwise."""
    return Cpu(id=number, core=number if core is None else core, socket=socket, numa_nodes=nodes)


def node(number: int, cpus: str) -> NumaNode:
    """A node of these CPUs."""
    return NumaNode(id=number, cpus=CPUSet.parse(cpus))


def test_cpus_stand_once() -> None:
    """A CPU that is described twice is refused."""
    with pytest.raises(ValueError, match="CPU 1 is described twice"):
        Machine(cpus=(cpu(1), cpu(1)), numa_nodes=(node(0, "1"),))


def test_cpus_stand_in_order() -> None:
    """Ids ascend."""
    with pytest.raises(ValueError, match="CPU 0 stands after 1"):
        Machine(cpus=(cpu(1), cpu(0)), numa_nodes=(node(0, "0-1"),))


def test_nodes_stand_once() -> None:
    """The same for NUMA nodes."""
    with pytest.raises(ValueError, match="NUMA node 0 is described twice"):
        Machine(cpus=(cpu(0),), numa_nodes=(node(0, "0"), node(0, "")))


def test_a_node_names_online_cpus_alone() -> None:
    """A node's CPU that is not online is refused."""
    with pytest.raises(ValueError, match="NUMA node 0 names CPUs 7"):
        Machine(cpus=(cpu(0),), numa_nodes=(node(0, "0,7"),))


def test_a_node_names_all_its_cpus() -> None:
    """A CPU that calls a node local is named by it."""
    with pytest.raises(ValueError, match="CPUs 1 are local to NUMA node 0"):
        Machine(cpus=(cpu(0), cpu(1)), numa_nodes=(node(0, "0"),))


def test_a_cpus_node_is_described() -> None:
    """A CPU cannot lie in a node that is not there."""
    with pytest.raises(ValueError, match="NUMA node 3, which is not described"):
        Machine(cpus=(cpu(0, nodes=(3,)),))


@pytest.mark.parametrize("nodes", [(1, 0), (0, 0)])
def test_a_cpus_nodes_stand_once_and_in_order(nodes: tuple[int, ...]) -> None:
    """The first node is the one where a picture puts it."""
    with pytest.raises(ValueError, match="order them by ascending id"):
        Machine(cpus=(cpu(0, nodes=nodes),), numa_nodes=(node(0, "0"), node(1, "0")))


def test_a_core_lies_in_one_socket() -> None:
    """Core ids that repeat between sockets are refused."""
    with pytest.raises(ValueError, match="number the cores apart"):
        Machine(cpus=(cpu(0, core=0), cpu(1, core=0, socket=1)), numa_nodes=(node(0, "0-1"),))


def test_a_cpu_is_online_or_offline() -> None:
    """Not both."""
    with pytest.raises(ValueError, match="online and offline at once"):
        Machine(cpus=(cpu(0),), numa_nodes=(node(0, "0"),), offline=CPUSet.of(0))


def test_isolated_cpus_are_online() -> None:
    """An isolated CPU that is not online is refused."""
    with pytest.raises(ValueError, match="CPUs 1 are isolated but not online"):
        Machine(cpus=(cpu(0),), numa_nodes=(node(0, "0"),), isolated=CPUSet.of(1))


@pytest.mark.parametrize(
    ("distances", "words"),
    [
        ({0: {0: 10, 1: 20}}, "distances are given from nodes"),
        ({0: {0: 10}, 1: {0: 20, 1: 10}}, "distances from node 0 go to"),
        ({0: {0: 10, 1: -1}, 1: {0: 20, 1: 10}}, "distance from node 0 to 1 is -1"),
    ],
)
def test_distances_are_whole_and_not_negative(distances: dict[int, dict[int, int]], words: str) -> None:
    """Each pair of nodes has a distance of 0 or more."""
    with pytest.raises(ValueError, match=words):
        Machine(cpus=(cpu(0),), numa_nodes=(node(0, "0"), node(1, "")), distances=distances)


@pytest.mark.parametrize("pools", [{0: 1}, {4096: -1}, {-1: 1}])
def test_huge_pages_make_sense(pools: dict[int, int]) -> None:
    """A page has a size and a pool no debts."""
    with pytest.raises(ValueError, match="huge pages of"):
        NumaNode(id=0, hugepages=pools)


@pytest.mark.parametrize("place", range(6))
def test_ids_are_not_negative(place: int) -> None:
    """Every id of a CPU is 0 or more."""
    number, core, socket, l3, die, cluster = (-1 if place == other else 0 for other in range(6))
    with pytest.raises(ValueError, match="expected 0 or more, found -1"):
        Cpu(id=number, core=core, socket=socket, l3=l3, die=die, cluster=cluster)


def test_memory_is_not_negative() -> None:
    """A node has 0 bytes or more."""
    with pytest.raises(ValueError, match="memory_bytes: expected 0 or more, found -1"):
        NumaNode(id=0, memory_bytes=-1)


def test_a_cpu_id_has_a_bound() -> None:
    """Ids above the largest that a set holds are refused."""
    with pytest.raises(ValueError, match="outside 0 to 65535"):
        Machine(cpus=(cpu(65536, nodes=()),))


def test_groups_come_by_level() -> None:
    """Each level has its groups, ascending; a level that the machine lacks has none."""
    machine = machine_from_text("2 sockets x 2 cores x 2 threads")
    assert dict(machine.groups("socket")) == {0: CPUSet.parse("0-1,4-5"), 1: CPUSet.parse("2-3,6-7")}
    assert dict(machine.groups("die")) == {}
    assert machine.nodes == NodeSet.of(0, 1)
    assert machine.memory_bytes == 32 << 30


def test_machines_are_hashable() -> None:
    """Equal machines are one key of a dict."""
    text = "2 sockets x 2 cores, hugepages=2Mi:4"
    assert {machine_from_text(text): 1}[machine_from_text(text)] == 1


def test_the_fingerprint_is_fixed() -> None:
    """It is remembered on disk: the same on every Python and in every release."""
    assert machine_from_text("2 sockets x 2 cores x 2 threads").fingerprint() == FINGERPRINT


def test_the_fingerprint_sees_distances() -> None:
    """Allocation depends on distances, so they count."""
    near, far = (
        machine_from_text(f"2 sockets x 2 cores, distances={steps}") for steps in ("10/12/20", "10/12/32")
    )
    assert near.fingerprint() != far.fingerprint()


def test_a_cache_over_a_whole_node_is_no_uncore_cache_to_the_kubelet() -> None:
    """It is dropped; smaller ones stay."""
    whole = machine_from_text("2 sockets x 2 numa x 2 cores")
    assert as_kubelet_counts(whole).groups("l3") == {}
    split = machine_from_text("1 socket x 1 numa x 2 l3 x 2 cores")
    assert as_kubelet_counts(split) is split


def test_groups_can_go_by_their_first_cpu() -> None:
    """Two numberings of one machine become equal."""
    machine = machine_from_text("2 sockets x 2 cores")
    odd = attrs.evolve(machine, cpus=tuple(attrs.evolve(c, socket=c.socket + 7) for c in machine.cpus))
    assert odd != machine
    assert by_first_cpu(odd) == by_first_cpu(machine)


def test_a_machine_that_was_looked_at_goes_to_another_process() -> None:
    """What was worked out from it stays behind; the machine is the same."""
    machine = machine_from_text("2 sockets x 2 cores x 2 threads")
    fresh = pickle.dumps(machine)
    assert machine.cpu[7].id in machine.online & machine.groups("socket")[1]
    assert pickle.dumps(machine) == fresh
    assert pickle.loads(fresh) == machine  # noqa: S301 - our own bytes


def test_the_largest_ids_have_a_fingerprint() -> None:
    """Python refuses to write a mask of so many bits in decimal digits."""
    far = MAX_ID
    machine = Machine(cpus=(cpu(0), cpu(far)), numa_nodes=(node(0, f"0,{far}"),))
    assert machine.fingerprint() == "de8034744cd0854d17919574f3e5ad13"
