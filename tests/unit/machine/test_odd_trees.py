"""Trees that no kernel shows as they are: cut short, put together by hand, or made to do harm."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from nodealloc.idset import CPUSet
from nodealloc.machine import (
    MachineUnreadableError,
    NotAMachineError,
    discover,
    machine_from_json,
    machine_from_text,
    machine_to_json,
)
from nodealloc.testing.machine import sysfs_files, write_sysfs

CPU = "devices/system/cpu"
NODE = "devices/system/node"
TEXT = "2 sockets x 2 cores x 2 threads"
"""Cores are 0,4 1,5 2,6 3,7; sockets and nodes are 0-1,4-5 and 2-3,6-7."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A whole tree, to poke holes into."""
    tree = tmp_path / "sys"
    tree.mkdir()
    write_sysfs(machine_from_text(TEXT), tree)
    return tree


def notes(root: Path) -> str:
    """All notes of a discovery, a line each."""
    return "\n".join(map(str, discover(root).notes))


def test_a_cpu_without_topology_that_nobody_names_is_offline(tmp_path: Path) -> None:
    """It went offline after the kernel's list was read; the list is older than the missing directory."""
    write_sysfs(machine_from_text(f"{TEXT}, offline=7"), tmp_path)
    (tmp_path / CPU / "online").write_text("0-7\n")
    (tmp_path / CPU / "isolated").write_text("6-7\n")
    discovery = discover(tmp_path)
    assert (discovery.machine.online, discovery.machine.offline) == (CPUSet(range(7)), CPUSet.of(7))
    assert discovery.machine.isolated == CPUSet.of(6)
    assert discovery.no_core == discovery.no_socket == CPUSet()
    assert [str(note) for note in discovery.notes] == [
        f"{CPU}/cpu{{7}}: no topology, and no other CPU names it; taken as offline"
    ]


def test_a_cpu_without_topology_that_others_name_is_online(root: Path) -> None:
    """Somebody cut the capture short; the masks of its siblings know it."""
    shutil.rmtree(root / CPU / "cpu7" / "topology")
    assert discover(root).machine.groups("core")[3] == CPUSet.of(3, 7)
    assert notes(root) == ""


def test_a_file_without_an_end_is_unreadable(root: Path) -> None:
    """A link to a device that never stops; the other thread's mask serves."""
    path = root / CPU / "cpu1" / "topology" / "core_cpus"
    path.unlink()
    path.symlink_to("/dev/zero")
    assert discover(root).machine.groups("core")[1] == CPUSet.of(1, 5)


def test_a_pipe_in_place_of_a_file_hangs_nobody(root: Path) -> None:
    """It is opened without waiting for a writer."""
    path = root / NODE / "node1" / "meminfo"
    path.unlink()
    os.mkfifo(path)
    assert discover(root).machine.node[1].memory_bytes == 0


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (f"{NODE}/node0/meminfo", f"Node 0 MemTotal: {'9' * 5000} kB", "node0/meminfo: no MemTotal"),
        (f"{NODE}/node0/meminfo", f"Node 0 MemTotal: {'9' * 20} kB", "node0/meminfo: no MemTotal"),
        (f"{NODE}/node1/distance", f"{'9' * 5000} 10", "node1/distance: 0 distances"),
        (f"{NODE}/node1/distance", f"{'9' * 20} 10", "node1/distance: 0 distances"),
        (f"{NODE}/node0/hugepages/hugepages-2048kB/nr_hugepages", "9" * 20, "pool is taken as empty"),
        (f"{NODE}/node0/hugepages/hugepages-{'9' * 200}kB/nr_hugepages", "1", ""),
        (f"{CPU}/cpu0/topology/physical_package_id", "9" * 20, ""),
    ],
)
def test_numbers_beyond_64_bits_are_junk(root: Path, name: str, text: str, words: str) -> None:
    """However long they are; what is found can always be written as JSON and read back."""
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)
    assert words in notes(root)
    machine = discover(root).machine
    assert machine_from_json(machine_to_json(machine)) == machine


def test_a_node_names_cpus_that_do_not_exist(root: Path) -> None:
    """They are left out, and said; those that are merely offline are not worth a word."""
    (root / CPU / "online").write_text("0-6\n")
    (root / NODE / "node1" / "cpumap").write_text("00000fcc\n")
    assert discover(root).machine.node[1].cpus == CPUSet.of(2, 3, 6)
    assert notes(root) == f"{NODE}/node1/cpumap: CPUs 8-11 do not exist; they are left out"


def test_a_cache_that_parts_a_core_is_said(root: Path) -> None:
    """Two threads of a core cannot have two caches."""
    for cpu in range(8):
        mask = "0000000f\n" if cpu < 4 else "000000f0\n"
        (root / CPU / f"cpu{cpu}" / "cache" / "index3" / "shared_cpu_map").write_text(mask)
    assert f"{CPU}/cpu{{0-7}}: one core in two caches; that of its first CPU was taken" in notes(root)


def test_links_out_of_the_tree_are_said(root: Path, tmp_path: Path) -> None:
    """What they lead to may be another machine: this one, inside a capture of that."""
    shutil.move(root / CPU / "cpu1", tmp_path / "elsewhere")
    (root / CPU / "cpu1").symlink_to(tmp_path / "elsewhere")
    assert notes(root) == f"{CPU}/cpu{{1}}: a link out of the tree; what it leads to was read"
    shutil.move(root / NODE, tmp_path / "nodes")
    (root / NODE).symlink_to(tmp_path / "nodes")
    assert f"{NODE}: a link out of the tree" in notes(root)


def test_links_inside_the_tree_are_as_good_as_what_they_lead_to(root: Path, tmp_path: Path) -> None:
    """As is a link to the tree as a whole."""
    shutil.move(root / CPU / "cpu1", root / "first")
    (root / CPU / "cpu1").symlink_to(root / "first")
    (tmp_path / "link").symlink_to(root)
    assert notes(tmp_path / "link") == ""


def test_links_in_a_circle_lead_nowhere(root: Path) -> None:
    """A node that is a link to itself is there, and nothing is known of it."""
    shutil.rmtree(root / NODE / "node1")
    (root / NODE / "node1").symlink_to("node1")
    (root / CPU / "cpu1" / "topology" / "core_cpus").unlink()
    (root / CPU / "cpu1" / "topology" / "core_cpus").symlink_to("core_cpus")
    machine = discover(root).machine
    assert machine.node[1].cpus == CPUSet()
    assert machine.groups("core")[1] == CPUSet.of(1, 5)


def test_sparse_nodes_with_memory_alone(tmp_path: Path) -> None:
    """As on POWER with graphics memory: nodes 0, 8 and 252 to 255."""
    write_sysfs(machine_from_text("2 sockets x 4 cores x 4 threads, numbering=adjacent"), tmp_path)
    (tmp_path / NODE / "node1").rename(tmp_path / NODE / "node8")
    ids = [0, 8, *range(252, 256)]
    for node in ids:
        there = tmp_path / NODE / f"node{node}"
        there.mkdir(exist_ok=True)
        (there / "distance").write_text(" ".join("10" if node == other else "80" for other in ids))
        if node > 8:
            (there / "cpumap").write_text("00000000\n")
            (there / "meminfo").write_text(f"Node {node} MemTotal: 16515072 kB\n")
    (tmp_path / NODE / "online").write_text("0,8,252-255\n")
    machine = discover(tmp_path).machine
    assert [*machine.nodes] == ids
    assert (machine.node[8].cpus, machine.node[255].cpus) == (CPUSet(range(16, 32)), CPUSet())
    assert machine.distances is not None
    assert machine.distances[252] == {0: 80, 8: 80, 252: 10, 253: 80, 254: 80, 255: 80}


def test_distances_differ_by_direction(root: Path) -> None:
    """They are kept as the kernel gives them."""
    (root / NODE / "node0" / "distance").write_text("10 12\n")
    (root / NODE / "node1" / "distance").write_text("40 10\n")
    assert discover(root).machine.distances == {0: {0: 10, 1: 12}, 1: {0: 40, 1: 10}}


def test_junk_in_every_file_still_tells_which_cpus_there_are(root: Path) -> None:
    """All else is stand-ins, each with its note."""
    for name in sysfs_files(machine_from_text(TEXT)):
        (root / name).write_bytes(bytes(range(128, 256)))
    discovery = discover(root)
    assert discovery.machine.online == CPUSet(range(8))
    assert discovery.no_core == discovery.no_socket == CPUSet(range(8))


def test_a_root_that_may_not_be_read_says_so(root: Path) -> None:
    """The reason is the kernel's."""
    shutil.rmtree(root / CPU)
    (root / CPU).symlink_to("cpu")
    with pytest.raises(NotAMachineError, match=r"no directory devices/system/cpu to read .*symbolic links"):
        discover(root)


@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE, errno.ESTALE])
@pytest.mark.parametrize("call", ["open", "read", "listdir", "scandir"])
def test_a_call_that_fails_makes_no_other_machine(
    root: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    """Whichever one: what the system does not give now is not missing, and who looks hears of it."""
    whole, real, calls, failing = discover(root), getattr(os, call), 0, -1

    def fail(*given: object, **more: object) -> object:
        nonlocal calls
        calls += 1
        if calls - 1 == failing:
            raise OSError(number, os.strerror(number))
        return real(*given, **more)

    monkeypatch.setattr(os, call, fail)
    assert discover(root) == whole
    assert calls > 0
    for failing in range(calls):  # noqa: B007 - read by what stands in the place of the call
        calls = 0
        with pytest.raises(MachineUnreadableError, match=rf"^{root}.*cannot be read now") as caught:
            discover(root)
        assert caught.value.reason == os.strerror(number)
