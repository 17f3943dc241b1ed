"""Discovery on small trees with one peculiarity each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from nodealloc.idset import CPUSet
from nodealloc.machine import (
    Discovery,
    NotAMachineError,
    by_first_cpu,
    discover,
    draw_text,
    machine_from_text,
)
from nodealloc.testing.machine import sysfs_files, write_sysfs

CPU = "devices/system/cpu"
NODE = "devices/system/node"
TEXT = "2 sockets x 2 cores x 2 threads"
"""Cores are 0,4 1,5 2,6 3,7; sockets 0-1,4-5 and 2-3,6-7."""


def found(root: Path, changes: Mapping[str, str | None], text: str = TEXT) -> Discovery:
    """Discovery of a machine's tree after some files were changed, or removed."""
    files: dict[str, str | None] = {**sysfs_files(machine_from_text(text)), **changes}
    for name, content in files.items():
        if content is not None:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(content)
    return discover(root)


def without(*words: str, text: str = TEXT) -> dict[str, str | None]:
    """Changes that remove every file whose path holds one of these words."""
    files = sysfs_files(machine_from_text(text))
    return {name: None for name in files if any(word in name for word in words)}


def test_a_whole_tree_gives_no_notes(tmp_path: Path) -> None:
    """Nothing is missing, so nothing is said."""
    discovery = found(tmp_path, {})
    assert discovery.notes == ()
    assert by_first_cpu(discovery.machine) == by_first_cpu(machine_from_text(TEXT))


def test_old_kernels_have_other_file_names(tmp_path: Path) -> None:
    """`thread_siblings` and `core_siblings` serve where the new names are not there."""
    discovery = found(tmp_path, without("core_cpus", "package_cpus"))
    assert discovery.notes == ()
    assert discovery.machine.groups("core")[0] == CPUSet.of(0, 4)


def test_lists_serve_where_masks_are_missing(tmp_path: Path) -> None:
    """The list beside an absent mask is read."""
    gone = {name: None for name in without("_cpus", "_siblings") if not name.endswith("_list")}
    discovery = found(tmp_path, gone)
    assert discovery.notes == ()
    assert discovery.machine.groups("socket")[1] == CPUSet.parse("2-3,6-7")


def test_masks_count_before_lists(tmp_path: Path) -> None:
    """A list that says otherwise is not believed."""
    lie = {f"{CPU}/cpu{cpu}/topology/core_cpus_list": "0-7\n" for cpu in range(8)}
    assert found(tmp_path, lie).machine.groups("core")[0] == CPUSet.of(0, 4)


def test_masks_count_before_ids(tmp_path: Path) -> None:
    """Package ids of -1, as on POWER, leave the groups of the masks; these go by their first CPU."""
    odd = {f"{CPU}/cpu{cpu}/topology/physical_package_id": "-1\n" for cpu in range(8)}
    assert [*found(tmp_path, odd).machine.groups("socket")] == [0, 2]


def test_the_kernels_package_ids_are_kept(tmp_path: Path) -> None:
    """Where they name the packages one to one, sockets go by them."""
    ids = {f"{CPU}/cpu{cpu}/topology/physical_package_id": f"{cpu % 4 // 2 * 5}\n" for cpu in range(8)}
    assert [*found(tmp_path, ids).machine.groups("socket")] == [0, 5]


def test_ids_serve_where_no_mask_is_there(tmp_path: Path) -> None:
    """Cores and packages come from their ids, and it is said."""
    discovery = found(tmp_path, without("_cpus", "_siblings"))
    assert by_first_cpu(discovery.machine) == by_first_cpu(machine_from_text(TEXT))
    assert [note.where for note in discovery.notes] == [
        f"{CPU}/cpu{{0-7}}/topology/core_cpus",
        f"{CPU}/cpu{{0-7}}/topology/package_cpus",
    ]
    assert discovery.no_core == CPUSet()


def test_without_any_topology_each_cpu_is_a_core(tmp_path: Path) -> None:
    """All that is known is which CPUs are online; the rest is said to be unknown."""
    discovery = found(tmp_path, without("topology", "cache"))
    assert [cpu.core for cpu in discovery.machine.cpus] == [*range(8)]
    assert discovery.no_core == discovery.no_socket == CPUSet(range(8))
    assert any("each stands alone" in note.what for note in discovery.notes)


def test_a_mask_that_vanished_is_told_by_the_others(tmp_path: Path) -> None:
    """A hole in one CPU's files loses nothing."""
    changes = without("cpu0/topology")
    discovery = found(tmp_path, changes)
    assert discovery.machine.groups("core")[0] == CPUSet.of(0, 4)
    assert discovery.no_socket == CPUSet()


def test_most_members_decide(tmp_path: Path) -> None:
    """One CPU whose mask claims another core's CPUs is outvoted, and named."""
    lie = {f"{CPU}/cpu0/topology/package_cpus": "000000ff\n"}
    discovery = found(tmp_path, lie)
    assert discovery.machine.groups("socket")[0] == CPUSet.parse("0-1,4-5")
    assert [str(note) for note in discovery.notes] == [
        f"{CPU}/cpu{{0}}/topology/package_cpus: masks disagree; most members decided"
    ]


def test_a_nul_byte_ends_a_file(tmp_path: Path) -> None:
    """What follows a NUL is left over from something else."""
    mask = f"{CPU}/cpu0/topology/core_cpus"
    discovery = found(tmp_path, {mask: "00000011\n\0", f"{CPU}/online": "0-7\n\0\0junk"})
    assert discovery.notes == ()
    assert discovery.machine.online == CPUSet(range(8))


def test_offline_cpus_are_known_by_their_directory(tmp_path: Path) -> None:
    """They are listed apart and in no group."""
    machine = found(tmp_path, {}, "4 cores, offline=2").machine
    assert (machine.online, machine.offline) == (CPUSet.of(0, 1, 3), CPUSet.of(2))


def test_without_the_list_each_cpu_says_whether_it_is_online(tmp_path: Path) -> None:
    """CPU 0 has no such file where it cannot go; it counts as online by its topology."""
    discovery = found(
        tmp_path, without(f"{CPU}/online", "cpu0/online", text="4 cores, offline=2"), "4 cores, offline=2"
    )
    assert discovery.machine.online == CPUSet.of(0, 1, 3)
    assert [note.where for note in discovery.notes] == [f"{CPU}/online"]


def test_a_cpu_that_says_nothing_of_itself_is_offline(tmp_path: Path) -> None:
    """Neither a state nor a topology, while others have both."""
    discovery = found(
        tmp_path, without(f"{CPU}/online", "cpu3/topology", "cpu3/online", text="4 cores"), "4 cores"
    )
    (tmp_path / CPU / "cpu3").mkdir(exist_ok=True)
    discovery = discover(tmp_path)
    assert discovery.machine.offline == CPUSet.of(3)
    assert any("taken as offline" in note.what for note in discovery.notes)


def test_an_online_cpu_without_a_directory_is_left_out(tmp_path: Path) -> None:
    """The list names it, but there is nothing to know of it."""
    discovery = found(tmp_path, {f"{CPU}/online": "0-9\n"})
    assert discovery.machine.online == CPUSet(range(8))
    assert "CPUs 8-9 have no directory" in str(discovery.notes[0])


def test_isolated_cpus_are_the_online_ones(tmp_path: Path) -> None:
    """The kernel lists possible CPUs there as well."""
    assert found(tmp_path, {f"{CPU}/isolated": "2-3,9\n"}).machine.isolated == CPUSet.of(2, 3)


def test_an_unreadable_list_of_isolated_cpus_is_said(tmp_path: Path) -> None:
    """None counts as isolated then; a list that is not there, or is empty, is an answer."""
    write_sysfs(machine_from_text("1 socket x 2 cores"), tmp_path)
    path = tmp_path / CPU / "isolated"
    path.write_text("\n")
    assert discover(tmp_path).notes == ()
    path.write_text("1-\n")
    found = discover(tmp_path)
    assert found.machine.isolated == CPUSet()
    assert [str(note) for note in found.notes] == [
        f"{CPU}/isolated: unreadable; no CPU was taken as isolated"
    ]
    path.unlink()
    assert discover(tmp_path).notes == ()


def test_the_l3_is_found_by_its_level(tmp_path: Path) -> None:
    """Whatever the number of its directory; an instruction cache of level 3 is none."""
    files = sysfs_files(machine_from_text(TEXT))
    changes: dict[str, str | None] = {}
    for name, content in files.items():
        if "index3" in name:
            changes[name] = content if not name.endswith("level") else "2\n"
            changes[name.replace("index3", "index7")] = content
            changes[name.replace("index3", "index1")] = "Instruction\n" if name.endswith("type") else content
    assert [*found(tmp_path, changes).machine.groups("l3").values()] == [
        CPUSet.parse("0-1,4-5"),
        CPUSet.parse("2-3,6-7"),
    ]


def test_an_empty_l3_mask_is_said(tmp_path: Path) -> None:
    """The cache is there, but not who shares it, as on ia64."""
    changes: dict[str, str | None] = {
        name: "00000000\n" if name.endswith("map") else "\n"
        for name in sysfs_files(machine_from_text(TEXT))
        if "shared_cpu" in name
    }
    discovery = found(tmp_path, changes)
    assert discovery.machine.groups("l3") == {}
    assert any("not who shares it" in note.what for note in discovery.notes)


def test_hybrid_cores_have_their_kind(tmp_path: Path) -> None:
    """From the kernel's PMUs of a hybrid x86."""
    machine = found(tmp_path, {}, "1 socket x (2 core cores x 2 threads + 4 atom cores)").machine
    assert [cpu.kind for cpu in machine.cpus] == ["core"] * 2 + ["atom"] * 4 + ["core"] * 2


def test_unlike_capacities_are_kinds(tmp_path: Path) -> None:
    """From `cpu_capacity` of a big.LITTLE arm; alike ones are no kinds."""
    sizes = {f"{CPU}/cpu{cpu}/cpu_capacity": f"{1024 if cpu < 2 else 446}\n" for cpu in range(4)}
    machine = found(tmp_path, sizes, "4 cores").machine
    assert [cpu.kind for cpu in machine.cpus] == ["capacity-1024"] * 2 + ["capacity-446"] * 2


def test_alike_capacities_are_no_kinds(tmp_path: Path) -> None:
    """One capacity for all says nothing."""
    sizes = {f"{CPU}/cpu{cpu}/cpu_capacity": "1024\n" for cpu in range(4)}
    assert {cpu.kind for cpu in found(tmp_path, sizes, "4 cores").machine.cpus} == {""}


def test_lone_dies_and_clusters_are_none(tmp_path: Path) -> None:
    """Kernels print one CPU for each where the architecture has none."""
    lone: dict[str, str | None] = {
        f"{CPU}/cpu{cpu}/topology/{name}": f"{1 << cpu:08x}\n"
        for cpu in range(4)
        for name in ("die_cpus", "cluster_cpus")
    }
    machine = found(tmp_path, lone, "4 cores").machine
    assert {(cpu.die, cpu.cluster) for cpu in machine.cpus} == {(None, None)}


def test_clusters_are_read(tmp_path: Path) -> None:
    """Those that are larger than a core."""
    machine = found(tmp_path, {}, "1 socket x 2 clusters x 2 cores").machine
    assert [*machine.groups("cluster").values()] == [CPUSet.of(0, 1), CPUSet.of(2, 3)]


def test_without_nodes_one_stands_for_all(tmp_path: Path) -> None:
    """Memory comes from /proc beside the tree, pools from the kernel's own folder."""
    root = tmp_path / "sys"
    root.mkdir()
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text("MemTotal:    2048 kB\nMemFree: 1 kB\n")
    pools = {"kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "3\n"}
    discovery = found(root, {**without(NODE), **pools})
    (node,) = discovery.machine.numa_nodes
    assert (node.id, node.memory_bytes, node.hugepages) == (0, 2 << 20, {2 << 20: 3})
    assert node.cpus == discovery.machine.online
    assert discovery.machine.distances is None


def test_a_node_without_cpus_is_a_node(tmp_path: Path) -> None:
    """It has memory alone."""
    machine = found(tmp_path, {}, "1 socket x 2 cores + 1 numa x 0 cores").machine
    assert machine.node[1].cpus == CPUSet()
    assert machine.node[1].memory_bytes == 16 << 30


def test_nodes_that_share_cpus_keep_them(tmp_path: Path) -> None:
    """As under numa=fake; it is said."""
    shared = {f"{NODE}/node1/cpumap": "000000ff\n"}
    discovery = found(tmp_path, shared)
    assert discovery.machine.cpu[0].numa_nodes == (0, 1)
    assert any("shares CPUs" in note.what for note in discovery.notes)


def test_links_serve_where_a_node_has_no_map(tmp_path: Path) -> None:
    """The node's `cpuN` entries name its CPUs, links that lead nowhere included."""
    files = without("node1/cpu")
    (tmp_path / NODE / "node1").mkdir(parents=True)
    for cpu in (2, 3, 6, 7):
        (tmp_path / NODE / "node1" / f"cpu{cpu}").symlink_to(f"../nowhere/cpu{cpu}")
    discovery = found(tmp_path, files)
    assert discovery.machine.node[1].cpus == CPUSet.parse("2-3,6-7")
    assert any("from its links" in note.what for note in discovery.notes)


def test_memory_that_is_not_told_is_said(tmp_path: Path) -> None:
    """A node without `meminfo` has 0 bytes and a note."""
    discovery = found(tmp_path, without("node1/meminfo"))
    assert discovery.machine.node[1].memory_bytes == 0
    assert [note.where for note in discovery.notes] == [f"{NODE}/node1/meminfo"]


def test_a_pool_that_is_not_told_is_empty(tmp_path: Path) -> None:
    """A pool whose count is junk has 0 pages and a note."""
    junk = {f"{NODE}/node0/hugepages/hugepages-2048kB/nr_hugepages": "many\n"}
    discovery = found(tmp_path, junk)
    assert discovery.machine.node[0].hugepages == {2 << 20: 0}
    assert any("pool is taken as empty" in note.what for note in discovery.notes)


@pytest.mark.parametrize("row", ["10 x\n", "10\n", "10 20 30\n", "10 -1\n", None])
def test_distances_are_all_or_none(tmp_path: Path, row: str | None) -> None:
    """A row that does not fit leaves the machine without distances, and is named."""
    discovery = found(tmp_path, {f"{NODE}/node1/distance": row})
    assert discovery.machine.distances is None
    assert [note.where for note in discovery.notes] == [f"{NODE}/node1/distance"]


def test_columns_are_online_nodes(tmp_path: Path) -> None:
    """A node that is listed and has no directory still has its column."""
    text = "3 sockets x 2 cores"
    discovery = found(tmp_path, without("/node1/", text=text), text)
    assert discovery.machine.distances == {0: {0: 10, 2: 32}, 2: {0: 32, 2: 10}}
    assert "nodes 1 have no directory" in "\n".join(map(str, discovery.notes))


def test_a_core_over_two_packages_goes_with_its_first_cpu(tmp_path: Path) -> None:
    """Masks that cross do not end in a core of two sockets."""
    crossing: dict[str, str | None] = {f"{CPU}/cpu{cpu}/topology/core_cpus": "00000006\n" for cpu in (1, 2)}
    discovery = found(tmp_path, crossing, "2 sockets x 2 cores")
    assert discovery.machine.cpu[2].socket == 0
    assert any("one core in two packages" in note.what for note in discovery.notes)


def test_a_directory_without_cpus_is_no_machine(tmp_path: Path) -> None:
    """The error says where, what and what to give instead."""
    with pytest.raises(NotAMachineError, match=r"no directory devices/system/cpu .*; give a sysfs mount"):
        discover(tmp_path)


def test_the_directory_above_is_recognised(tmp_path: Path) -> None:
    """Who gives the folder that holds `sys` is told so."""
    (tmp_path / "sys").mkdir()
    write_sysfs(machine_from_text("1 core"), tmp_path / "sys")
    with pytest.raises(NotAMachineError, match=r"did you mean .*/sys"):
        discover(tmp_path)


def test_a_missing_directory_is_no_machine(tmp_path: Path) -> None:
    """Nor is one that is not there, or a file."""
    (tmp_path / "file").write_text("")
    for name in ("absent", "file"):
        with pytest.raises(NotAMachineError, match="cannot be opened as a directory"):
            discover(tmp_path / name)


def test_a_machine_has_an_online_cpu(tmp_path: Path) -> None:
    """A tree whose CPUs are all offline is refused."""
    (tmp_path / CPU).mkdir(parents=True)
    with pytest.raises(NotAMachineError, match="no online CPU"):
        discover(tmp_path)


def test_a_page_of_no_size_is_no_pool(tmp_path: Path) -> None:
    """Nor is a folder of another name."""
    junk = {
        f"{NODE}/node0/hugepages/{name}/nr_hugepages": "3\n"
        for name in ("hugepages-0kB", "hugepages-manykB", "x")
    }
    assert found(tmp_path, junk).machine.node[0].hugepages == {}


def test_a_list_of_other_nodes_is_not_believed(tmp_path: Path) -> None:
    """Where the kernel's list names none of the directories, these count."""
    discovery = found(tmp_path, {f"{NODE}/online": "5\n", f"{NODE}/node0/distance": "10\n"})
    assert [*discovery.machine.nodes] == [0, 1]
    assert discovery.machine.distances is None
    assert "nodes 5 have no directory" in str(discovery.notes[0])


def test_cpus_in_no_node_are_said(tmp_path: Path) -> None:
    """They lie nowhere, and the picture has a place for them."""
    discovery = found(tmp_path, {f"{NODE}/node1/cpumap": "00000000\n"})
    assert discovery.machine.cpu[2].numa_nodes == ()
    assert "CPUs 2-3,6-7 are in no node" in "\n".join(map(str, discovery.notes))
    assert "  no NUMA node\n    2  3\n    6  7" in draw_text(discovery.machine)


def test_without_a_list_of_nodes_the_directories_count(tmp_path: Path) -> None:
    """As on old kernels."""
    machine = found(tmp_path, {f"{NODE}/online": None}).machine
    assert [*machine.nodes] == [0, 1]
    assert machine.distances == {0: {0: 10, 1: 32}, 1: {0: 32, 1: 10}}


def test_a_directory_in_place_of_a_file_is_no_file(tmp_path: Path) -> None:
    """Nor is one that nobody may list a folder."""
    (tmp_path / CPU / "cpu0" / "topology" / "core_cpus").mkdir(parents=True)
    changes = without("cpu0/topology/core_cpus", "cpu0/topology/thread_siblings")
    assert found(tmp_path, changes).machine.groups("core")[0] == CPUSet.of(0, 4)


def test_masks_need_not_be_padded(tmp_path: Path) -> None:
    """A hand that edits a capture may write short groups; a mask beyond all ids is junk."""
    odd = {
        f"{CPU}/cpu0/topology/core_cpus": "0,11\n",
        f"{CPU}/cpu4/topology/core_cpus": ",".join(["1", *["0"] * 2048]) + "\n",
    }
    discovery = found(tmp_path, odd)
    assert discovery.machine.groups("core")[0] == CPUSet.of(0, 4)


def test_long_lists_are_read_whole(tmp_path: Path) -> None:
    """A list of several pages arrives in pieces."""
    padded = "0-7" + ",7" * 5000 + "\n"
    assert found(tmp_path, {f"{CPU}/online": padded}).machine.online == CPUSet(range(8))
