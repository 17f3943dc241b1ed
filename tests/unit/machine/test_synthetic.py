"""Machines from one line of text, and the faults of such lines."""

from __future__ import annotations

import pytest

from nodealloc.errors import DecodeError
from nodealloc.idset import CPUSet
from nodealloc.machine import machine_from_text

PARSE = CPUSet.parse


def test_levels_nest_from_left_to_right() -> None:
    """The example of the documentation: 2 × 2 × 8 × 2 is 64 CPUs on four nodes."""
    machine = machine_from_text("2 sockets × 2 numa × 8 cores × 2 threads", name="four")
    assert machine.name == "four"
    assert machine.online == PARSE("0-63")
    assert [node.cpus for node in machine.numa_nodes][:2] == [PARSE("0-7,32-39"), PARSE("8-15,40-47")]
    assert machine.groups("socket")[1] == PARSE("16-31,48-63")


@pytest.mark.parametrize(
    "text", ["2 sockets x 4 cores", "2socket*4core", "2 packages×4 cores", "2 NODES x 4 cores"]
)
def test_spelling_is_free(text: str) -> None:
    """Signs, plurals, blanks and capitals."""
    assert machine_from_text(text).online == PARSE("0-7")


def test_what_is_not_named_is_one() -> None:
    """One socket, a node a socket, a cache a node, a thread a core; no dies, no clusters."""
    machine = machine_from_text("2 cores")
    assert len(machine.groups("socket")) == len(machine.groups("l3")) == len(machine.numa_nodes) == 1
    assert dict(machine.groups("die")) == dict(machine.groups("cluster")) == {}
    assert len(machine_from_text("2 sockets x 2 cores").numa_nodes) == 2


def test_nodes_can_hold_sockets() -> None:
    """Levels take any order: large ia64 machines have several packages a node."""
    machine = machine_from_text("2 numa x 2 sockets x 2 cores")
    assert machine.node[0].cpus == PARSE("0-3")
    assert machine.groups("socket")[1] == PARSE("2-3")


def test_parts_can_differ() -> None:
    """A sum in parentheses makes hybrid sockets; a word before cores is their kind."""
    machine = machine_from_text("1 socket x (2 core cores x 2 threads + 4 atom cores)")
    assert [cpu.kind for cpu in machine.cpus] == [
        "core",
        "core",
        "atom",
        "atom",
        "atom",
        "atom",
        "core",
        "core",
    ]
    assert machine.groups("core")[0] == PARSE("0,6")


def test_a_node_can_lack_cores() -> None:
    """It has memory alone, and each node can have its own."""
    machine = machine_from_text("1 socket x 2 cores + 1 numa x 0 cores, memory=8Gi/1Ti")
    assert [(node.cpus, node.memory_bytes) for node in machine.numa_nodes] == [
        (PARSE("0-1"), 8 << 30),
        (CPUSet(), 1 << 40),
    ]


@pytest.mark.parametrize(
    ("numbering", "core", "socket"),
    [("kernel", "0,4", "0-1,4-5"), ("adjacent", "0-1", "0-3"), ("interleaved", "0,4", "0,2,4,6")],
)
def test_cpus_are_numbered_as_asked(numbering: str, core: str, socket: str) -> None:
    """As kernels on x86, threads in a row, or round over the sockets."""
    machine = machine_from_text(f"2 sockets x 2 cores x 2 threads, numbering={numbering}")
    assert machine.groups("core")[0] == PARSE(core)
    assert machine.groups("socket")[0] == PARSE(socket)


def test_distances_have_three_steps() -> None:
    """Inside a node, inside a socket, beyond."""
    machine = machine_from_text("2 sockets x 2 numa x 1 core, distances=10/11/20")
    assert machine.distances is not None
    assert [machine.distances[0][node] for node in range(4)] == [10, 11, 20, 20]


def test_distances_can_be_a_matrix() -> None:
    """Row by row."""
    machine = machine_from_text("2 sockets x 1 core, distances=10 20/30 10")
    assert machine.distances == {0: {0: 10, 1: 20}, 1: {0: 30, 1: 10}}


def test_pools_memory_and_cpu_lists() -> None:
    """Huge pages per node, CPUs offline and isolated; a core goes by its smallest online CPU."""
    text = "2 cores x 2 threads, hugepages=1Gi:2/2Mi:5, memory=4GiB, offline=0, isolated=0-1"
    machine = machine_from_text(text)
    assert machine.node[0].hugepages == {2 << 20: 5, 1 << 30: 2}
    assert machine.node[0].memory_bytes == 4 << 30
    assert (machine.online, machine.offline, machine.isolated) == (PARSE("1-3"), PARSE("0"), PARSE("1"))
    assert machine.cpu[2].core == 2


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("", 0, "expected a count"),
        ("4", 1, "expected a level after 4, found the end"),
        ("4 foos", 2, "'foos' is no level"),
        ("2 sockets x", 11, "found the end"),
        ("2 sockets 4 cores", 10, "left over"),
        ("4 cores)", 7, "left over"),
        ("(4 cores", 8, "closing parenthesis"),
        ("2 sockets x (4 cores) x 2 threads", 22, "nothing can follow"),
        ("4 cores x 2 cores", 10, "inside another of its kind"),
        ("4 cores x 2 sockets", 10, "inside a core"),
        ("2 threads x 2 cores", 0, "innermost level"),
        ("0 sockets x 2 cores", 0, "only cores can be 0"),
        ("0 cores", 0, "1 to 8192 CPUs"),
        ("2 sockets x 4097 cores", 0, "allow more with `max_cpus`"),
        ("99999 cores", 0, "too many"),
        ("60000 sockets x 60000 cores", 0, "1 to 8192 CPUs"),
        ("4 cores ! 2 threads", 8, "makes no sense"),
        ("(" * 40 + "1 core", 16, "parentheses inside each other"),
        ("4 cores, speed=9", 9, "unknown"),
        ("4 cores, memory=1Gi, memory=2Gi", 21, "given twice"),
        ("4 cores, memory=16G", 9, "is no size"),
        ("2 sockets x 1 core, memory=1Gi/1Gi/1Gi", 20, "3 sizes for 2 NUMA nodes"),
        ("4 cores, hugepages=2Mi", 9, "is no pool"),
        ("4 cores, memory=1Gi, hugepages=1Gi:2", 21, "give less"),
        ("2 sockets x 1 core, distances=10", 20, "expected 2 rows"),
        ("4 cores, distances=10/20", 9, "three steps"),
        ("4 cores, distances=a/b/c", 9, "is no distance"),
        ("4 cores, numbering=random", 9, "expected kernel"),
        ("4 cores, offline=x", 9, "decimal id"),
        ("4 cores, offline=4", 7, "CPUs 4 are named"),
        ("4 cores, offline=0-3", 7, "every CPU is offline"),
    ],
)
def test_faults_are_named_with_their_place(text: str, place: int, words: str) -> None:
    """The error says what is wrong, and at which character."""
    with pytest.raises(DecodeError, match=words) as caught:
        machine_from_text(text)
    assert [fault.path for fault in caught.value.faults] == [f"character {place}"]


def test_a_slip_in_a_count_does_not_fill_the_memory() -> None:
    """Distances grow with the square of the nodes."""
    with pytest.raises(
        DecodeError, match="2000 NUMA nodes, one a socket unless named; Linux has at most 1024"
    ):
        machine_from_text("2000 sockets x 4 cores")


@pytest.mark.parametrize("text", ["1e9 cores", "4atom cores", "2 sockets x 3e2 cores"])
def test_a_count_is_digits_alone(text: str) -> None:
    """What follows them at once was taken for a kind of core, and 1e9 cores were one."""
    with pytest.raises(DecodeError, match="is no count; write digits, and a blank before a kind"):
        machine_from_text(text)
    assert len(machine_from_text("4 atom cores + 2cores").cpus) == 6
