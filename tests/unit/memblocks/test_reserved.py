"""Memory that the system keeps: notation, sums, and what a machine can keep."""

from __future__ import annotations

import pytest

from nodealloc.errors import DecodeError
from nodealloc.machine import Machine, NumaNode
from nodealloc.memblocks import (
    MemoryAllocator,
    ReservationMismatchError,
    check_reserved,
    hugepages,
    parse_reserved,
)
from nodealloc.memblocks._layout import Layout
from nodealloc.podspec import Quantity

MIB = 1 << 20
GIB = 1 << 30

TWO = Machine(
    cpus=(),
    numa_nodes=(
        NumaNode(id=0, memory_bytes=4 * GIB, hugepages={2 * MIB: 512, GIB: 1}),
        NumaNode(id=2, memory_bytes=2 * GIB),
    ),
)


def test_the_kubelet_notation_is_read() -> None:
    """Nodes part at semicolons, resources at commas; blanks do not matter."""
    assert parse_reserved("0:memory=1Gi,hugepages-2Mi=100Mi; 1:memory=500M") == {
        0: {"memory": GIB, "hugepages-2Mi": 100 * MIB},
        1: {"memory": 500_000_000},
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is not <node>:<resource>=<amount>"),
        ("memory=1Gi", "is not <node>:<resource>=<amount>"),
        ("x:memory=1Gi", "is not <node>:<resource>=<amount>"),
        ("9" * 5000 + ":memory=1Gi", "no machine has a NUMA node 9{40};"),
        ("0:memory=1Gi;0:memory=1Gi", "NUMA node 0 stands twice"),
        ("0:cpu=1", "is not memory=<amount> or hugepages-<size>=<amount>"),
        ("0:memory", "is not memory=<amount>"),
        ("0:memory=1Gi,1:memory=1Gi", "write ';' between NUMA nodes"),
        ("0:memory=1Gi,memory=2Gi", "memory stands twice"),
        ("0:memory=lots", "not a quantity"),
        ("0:memory=1500m", "not a whole number of bytes"),
        ("0:memory=-1Gi", "not a whole number of bytes"),
    ],
)
def test_junk_is_named(text: str, told: str) -> None:
    """Each fault says what stands there and what belongs there."""
    with pytest.raises(DecodeError, match=told):
        parse_reserved(text)


def test_all_faults_are_listed() -> None:
    """Not only the first."""
    with pytest.raises(DecodeError) as caught:
        parse_reserved("0:cpu=1;zero;1:memory=x")
    assert len(caught.value.faults) == 3


def test_reserved_memory_adds_up() -> None:
    """Over all nodes it is kube-reserved, system-reserved and the eviction threshold."""
    reserved = parse_reserved("0:memory=1Gi,hugepages-1Gi=1Gi;1:memory=612Mi")
    check_reserved(
        reserved,
        kube_reserved={"cpu": Quantity.of(1), "memory": Quantity.parse("1Gi")},
        system_reserved={"memory": Quantity.parse("512Mi"), "hugepages-1Gi": Quantity.parse("1Gi")},
        eviction_bytes=100 * MIB,
    )


def test_a_sum_that_differs_is_refused_with_both_figures() -> None:
    """The resource, what is reserved, and what should be."""
    with pytest.raises(ReservationMismatchError) as caught:
        check_reserved({0: {"memory": GIB}}, kube_reserved={"memory": Quantity.of(2 * GIB)})
    error = caught.value
    assert (error.resource, error.reserved_bytes, error.expected_bytes) == ("memory", GIB, 2 * GIB)
    assert "1073741824 bytes are reserved" in str(error)
    assert "make 2147483648" in str(error)


def test_huge_pages_count_too() -> None:
    """A page size that only one side names is a difference."""
    with pytest.raises(ReservationMismatchError, match="hugepages-2Mi: 2097152"):
        check_reserved({0: {"memory": GIB, "hugepages-2Mi": 2 * MIB}}, eviction_bytes=GIB)


def test_the_system_needs_some_memory() -> None:
    """The kubelet's static policy does not start without."""
    with pytest.raises(ReservationMismatchError, match="the system needs some"):
        check_reserved({})


def test_a_layout_counts_what_is_left() -> None:
    """Huge pages and reserved bytes come off the memory of their node; the total keeps them."""
    layout = Layout.of(TWO, {0: {"memory": GIB, "hugepages-2Mi": 24 * MIB}})
    assert layout.nodes == (0, 2)
    assert layout.resources == ("hugepages-1Gi", "hugepages-2Mi", "memory")
    assert layout.allocatable == ((GIB, 0), (1000 * MIB, 0), (GIB, 2 * GIB))
    assert layout.total == ((GIB, 0), (GIB, 0), (4 * GIB, 2 * GIB))
    assert layout.holders == (0b001, 0b001, 0b101)
    assert layout.mask == 0b101


def test_tables_list_what_a_node_lists() -> None:
    """A node without a pool of huge pages has no table for it."""
    allocator = MemoryAllocator.of(TWO, reserved={0: {"memory": GIB}})
    first, second = allocator.recorded().nodes
    assert sorted(first.tables) == ["hugepages-1Gi", "hugepages-2Mi", "memory"]
    assert sorted(second.tables) == ["memory"]
    table = first.tables["memory"]
    assert (table.total, table.system_reserved, table.allocatable) == (4 * GIB, GIB, GIB)
    assert (table.reserved, table.free) == (0, GIB)


@pytest.mark.parametrize(
    ("reserved", "told"),
    [
        ({1: {"memory": GIB}}, "there is no NUMA node 1; the machine has 0,2"),
        ({0: {"memory": 3 * GIB}}, "reserve at most 2147483648"),
        ({2: {"memory": 2 * GIB + 1}}, "reserve at most 2147483648"),
        ({0: {"hugepages-1Gi": 2 * GIB}}, "exceed the node's 1073741824 bytes"),
        ({0: {"hugepages-2Mi": 3 * MIB}}, "not a multiple of the page of 2097152 bytes; use 2097152"),
        ({2: {"hugepages-2Mi": 2 * MIB}}, "NUMA node 2 has no hugepages-2Mi; leave it out"),
        ({0: {"cpu": 1}}, "not a memory resource"),
        ({0: {"memory": -1}}, "-1 bytes are below 0"),
    ],
)
def test_what_a_machine_cannot_keep_is_refused(reserved: dict[int, dict[str, int]], told: str) -> None:
    """Each fault with node, resource and figures; nothing is made."""
    with pytest.raises(DecodeError, match=told):
        MemoryAllocator.of(TWO, reserved=reserved)


def test_huge_pages_beyond_the_memory_are_refused() -> None:
    """A machine that contradicts itself is no machine."""
    odd = Machine(cpus=(), numa_nodes=(NumaNode(id=0, memory_bytes=GIB, hugepages={GIB: 2}),))
    with pytest.raises(DecodeError, match="2147483648 bytes of huge pages exceed the node's 1073741824"):
        MemoryAllocator.of(odd)


def test_a_machine_without_numa_nodes_is_refused() -> None:
    """There would be no memory to grant."""
    with pytest.raises(DecodeError, match="no NUMA node"):
        MemoryAllocator.of(Machine(cpus=()))


@pytest.mark.parametrize(
    ("page", "name"),
    [
        (2 * MIB, "hugepages-2Mi"),
        (GIB, "hugepages-1Gi"),
        (64 << 10, "hugepages-64Ki"),
        (512 * MIB, "hugepages-512Mi"),
        (16 * GIB, "hugepages-16Gi"),
    ],
)
def test_page_sizes_are_named_as_kubernetes_names_them(page: int, name: str) -> None:
    """In the largest binary unit that divides them."""
    assert hugepages(page) == name
