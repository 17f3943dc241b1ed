"""Which CPUs are taken, on machines small enough to follow by hand."""

from __future__ import annotations

import pytest

from nodealloc.cpuset import CpuLayout, CPUSet, KubeletPicker, NotEnoughCpusError, PickMode, take_cpus
from nodealloc.cpuset._balance import Split, splits
from nodealloc.cpuset._hints import HintTable
from nodealloc.cpuset._pickers import SortStrategy
from nodealloc.machine import Cpu, Machine, machine_from_text
from nodealloc.testing.cpuset import check_picker
from nodealloc.topology import CountedHints, TopologyHint

DISTRIBUTED = KubeletPicker(mode=PickMode.DISTRIBUTED)
SPREAD = KubeletPicker(strategy=SortStrategy.SPREAD)
CACHES = KubeletPicker(align_caches=True)


def layout(text: str) -> CpuLayout:
    """The layout of a machine in words."""
    return CpuLayout.of(machine_from_text(text))


def taken(text: str, available: str, count: int, picker: KubeletPicker | None = None) -> str:
    """The list of CPUs that are taken."""
    return str(take_cpus(layout(text), CPUSet.parse(available), count, picker=picker))


@pytest.mark.parametrize(
    ("available", "count", "expected"),
    [
        ("0-15", 8, "0-3,8-11"),
        ("0-15", 2, "0,8"),
        ("0-15", 3, "0-1,8"),
        ("1-15", 1, "8"),
        ("0-2,4-15", 8, "4-7,12-15"),
        ("0-10", 2, "0,8"),
        ("0-8", 3, "0-1,8"),
        ("0-15", 0, ""),
        ("0-15", 16, "0-15"),
    ],
)
def test_packed(available: str, count: int, expected: str) -> None:
    """Whole sockets, then whole cores of the fullest socket, then single threads of broken cores."""
    assert taken("2 sockets x 4 cores x 2 threads", available, count) == expected


def test_spread_takes_different_cores() -> None:
    """In the kernel's numbering neighbours are different cores."""
    assert taken("2 sockets x 4 cores x 2 threads", "0-15", 3, SPREAD) == "0-2"
    assert taken("2 sockets x 4 cores x 2 threads", "3-15", 6, SPREAD) == "3-4,8-11"


def test_spread_goes_on_with_the_next_socket() -> None:
    """When a socket is used up, the rest comes from the next one."""
    assert taken("2 sockets x 3 cores", "1-4", 3, SPREAD) == "1-3"


def test_caches_are_filled_or_fitted_into() -> None:
    """A whole cache where it fits, else one that holds all of it, else cores anywhere."""
    text = "1 socket x 4 l3 x 4 cores"
    assert taken(text, "1-15", 4, CACHES) == "4-7"
    assert taken(text, "0-1,4-6,8-15", 3, CACHES) == "4-6"
    assert taken(text, "0-1,4-6,8-15", 6, CACHES) == "0-1,8-11"
    assert taken(text, "0,4,8,12", 2, CACHES) == "0,4"


@pytest.mark.parametrize(("count", "expected"), [(2, "0-1"), (3, "2-4"), (4, "0-3")])
def test_caches_of_different_sizes_are_filled_from_the_average_on(count: int, expected: str) -> None:
    """A request below the average of four stays in one cache that holds it, where there is one."""
    cpus = tuple(Cpu(id=cpu, core=cpu, socket=0, l3=int(cpu > 1)) for cpu in range(8))
    caches = CpuLayout.of(Machine(cpus=cpus))
    assert str(take_cpus(caches, CPUSet(range(8)), count, picker=CACHES)) == expected


def test_of_cores_with_as_many_free_threads_the_lower_one_is_broken() -> None:
    """An offline sibling does not change the order in which threads of used cores are taken."""
    assert taken("1 socket x 3 cores x 4 threads, offline=11", "0-1,4-6,8", 1) == "0"


def test_distributed_takes_as_few_nodes_as_can_serve() -> None:
    """One node where it holds all; else the same from each of two; else with a remainder."""
    text = "4 sockets x 4 cores"
    assert taken(text, "0-15", 4, DISTRIBUTED) == "0-3"
    assert taken(text, "0-15", 6, DISTRIBUTED) == "0-2,4-6"
    assert taken(text, "0-15", 7, DISTRIBUTED) == "0-6"
    assert taken(text, "0,4-15", 9, DISTRIBUTED) == "4-6,8-10,12-14"


def test_distributed_falls_back_to_packing() -> None:
    """Where no even split exists, or the count is no multiple of the group, CPUs are packed."""
    text = "2 sockets x 4 cores"
    assert taken(text, "0-3,4", 5, DISTRIBUTED) == "0-4"
    odd = KubeletPicker(mode=PickMode.DISTRIBUTED, group_size=2)
    assert taken("2 sockets x 2 cores x 2 threads", "0-7", 3, odd) == "0-1,4"
    with pytest.raises(NotEnoughCpusError):
        taken(text, "0-1", 3, DISTRIBUTED)


def test_a_choice_that_was_written_over_is_not_served_short() -> None:
    """Where the choice that is remembered names too small a node, the one that was meant is served."""
    text = "2 sockets x 2 numa x 6 cores + 1 socket x 8 numa x 2 cores"
    whole = layout(text)
    free = [6, 6, 6, 6, *[2] * 8]
    assert list(splits(free, 16, 4, 1)) == [
        Split(4, (0, 1, 2, 4), ()),
        Split(4, (0, 1, 2, 3), ()),
    ]
    found = take_cpus(whole, CPUSet.from_mask(whole.cpus), 16, picker=DISTRIBUTED)
    assert [(node & found.mask).bit_count() for node in whole.nodes] == [4] * 4 + [0] * 8


def test_a_node_may_give_several_groups() -> None:
    """Where one node has much more left than the others, it alone gives the remainder."""
    (split,) = splits([3, 3, 20], 11, 3, 1)
    assert (split.share, split.donors) == (3, (2,))


def test_donors_that_cannot_serve_are_passed_over() -> None:
    """Nodes without a whole group left are no donors; without donors there is no split."""
    assert list(splits([3, 3], 8, 2, 2)) == []
    assert list(splits([3, 3, 3], 8, 3, 2)) == []


def test_the_last_choice_stays_as_it_was() -> None:
    """Nothing writes over the last combination of all."""
    assert [split.nodes for split in splits([2, 2, 6, 6, 6, 6], 16, 4, 1)] == [(2, 3, 4, 5)]


def test_many_nodes_take_the_emptiest() -> None:
    """Beyond what can be tried, the nodes with the most free CPUs give."""
    free = [*range(1, 21), *range(1, 21)]
    (split, *_) = reversed(list(splits(free, 100, 10, 1)))
    assert {free[rank] for rank in split.nodes} == {16, 17, 18, 19, 20}


def test_every_picker_of_ours_keeps_its_promise() -> None:
    """All combinations of settings pass the check for pickers."""
    for text in ("1 core", "2 sockets x 2 numa x 3 cores x 2 threads", "3 cores x 4 threads, offline=2"):
        for mode in PickMode:
            for strategy in SortStrategy:
                for group in (1, 2):
                    picker = KubeletPicker(mode=mode, strategy=strategy, group_size=group, align_caches=True)
                    check_picker(picker, layout(text))


def test_a_group_of_none_is_refused() -> None:
    """CPUs go in groups of one at least."""
    with pytest.raises(ValueError, match="group_size"):
        KubeletPicker(group_size=0)


def test_layout_counts_what_the_kernel_does_not_name() -> None:
    """Without NUMA nodes there is one; without caches the socket stands in."""
    machine = Machine(cpus=(Cpu(id=3, core=0, socket=0), Cpu(id=5, core=1, socket=1)))
    found = CpuLayout.of(machine)
    assert (found.node_ids, found.nodes) == ((0,), (0b101000,))
    assert found.caches == found.sockets == (0b1000, 0b100000)
    assert found.siblings(0b1000) == 0b1000


def test_more_than_anybody_could_have_fits_nowhere() -> None:
    """A request beyond the width of a lane has no hints."""
    table = HintTable(layout("2 sockets x 2 cores"))
    assert table.hints(0b1111, 1 << 20) == []
    assert table.hints(0b1111, 5) == []


def test_hints_of_many_nodes_are_counted() -> None:
    """With 18 NUMA nodes every set that has the CPUs is a hint, and the narrowest are preferred."""
    many = layout("18 numa x 2 cores")
    hints = HintTable(many).hints(many.cpus, 4)
    assert isinstance(hints, CountedHints)
    assert TopologyHint(1 | 1 << 17, preferred=True) in hints
    assert TopologyHint(1 << 17, preferred=True) not in hints
    assert TopologyHint((1 << 18) - 1, preferred=False) in hints
    assert HintTable(many).hints(0b1111, 5) == []


def test_counted_hints_contain_the_nodes_of_what_is_reused_and_know_sockets() -> None:
    """As listed ones do: reused CPUs fix their nodes, and whole sockets are preferred if asked for."""
    many = layout("2 sockets x 6 numa x 2 cores")
    hints = HintTable(many, align_by_socket=True).hints(many.cpus & ~0b11, 4, reusable=0b11)
    assert isinstance(hints, CountedHints)
    assert TopologyHint(0b11, preferred=True) in hints
    assert TopologyHint(0b110, preferred=True) not in hints
    assert TopologyHint(0b111, preferred=True) in hints
    assert TopologyHint(1 | 0b11 << 6, preferred=False) in hints
