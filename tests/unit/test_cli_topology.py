"""`python -m nodealloc topology`, as a person or a script calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nodealloc.machine import machine_from_text
from nodealloc.testing.machine import write_sysfs

TEXT = "2 sockets x 2 l3 x 2 cores x 2 threads, offline=15, isolated=3, hugepages=2Mi:4"


def topology(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command's end, with what it printed."""
    return subprocess.run(
        [sys.executable, "-m", "nodealloc", "topology", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A sysfs root with a machine of 16 CPUs."""
    write_sysfs(machine_from_text(TEXT), tmp_path)
    return tmp_path


def test_json_names_groups_by_their_smallest_cpu(tree: Path) -> None:
    """Keys are ids; a group that the machine lacks is null."""
    done = topology("--sysfs", str(tree), "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    got = json.loads(done.stdout)
    assert set(got) == {"cpus", "numa_nodes", "distances", "offline_cpus", "isolated_cpus"}
    assert got["cpus"]["6"] == {
        "socket": 4,
        "core": 6,
        "l3": 6,
        "die": None,
        "cluster": None,
        "numa_nodes": [1],
    }
    assert got["numa_nodes"]["1"] == {
        "cpus": [4, 5, 6, 7, 12, 13, 14],
        "memory_bytes": 16 << 30,
        "hugepages": {"2097152": 4},
    }
    assert got["distances"] == {"nodes": [0, 1], "matrix": [[10, 32], [32, 10]]}
    assert (got["offline_cpus"], got["isolated_cpus"]) == ([15], [3])


def test_text_is_a_picture(tree: Path) -> None:
    """Sockets, nodes, caches and cores; isolated and offline CPUs are marked."""
    done = topology("--sysfs", str(tree))
    assert done.returncode == 0
    assert "socket 1\n  NUMA node 1 · 16 GiB · 4 × 2 MiB\n" in done.stdout
    assert "3 A" in done.stdout
    assert "A  isolated" in done.stdout
    assert "distances between NUMA nodes" in done.stdout


def test_holes_are_said_beside_the_answer(tree: Path) -> None:
    """What cannot be known is null in JSON, and standard error says why."""
    for path in tree.glob("devices/system/cpu/cpu*/topology/*"):
        path.unlink()
    done = topology("--sysfs", str(tree), "--format", "json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["cpus"]["0"]["core"] is None
    assert json.loads(done.stdout)["cpus"]["0"]["socket"] is None
    assert "note: devices/system/cpu/cpu{0-14}/topology/core_cpus: no core told" in done.stderr


def test_without_distances_json_has_null(tree: Path) -> None:
    """And text says so."""
    for path in tree.glob("devices/system/node/node*/distance"):
        path.unlink()
    assert json.loads(topology("--sysfs", str(tree), "--format", "json").stdout)["distances"] is None
    assert "distances: none told" in topology("--sysfs", str(tree)).stdout


def test_the_json_is_a_machine(tree: Path) -> None:
    """What the command prints can be loaded again."""
    from nodealloc.machine import by_first_cpu, machine_from_json

    done = topology("--sysfs", str(tree), "--format", "json")
    assert machine_from_json(json.loads(done.stdout)) == by_first_cpu(machine_from_text(TEXT))


@pytest.mark.parametrize("root", ["empty", "absent"])
def test_a_junk_root_is_refused(tmp_path: Path, root: str) -> None:
    """Exit status 2, one line that says where and what to give instead, nothing printed."""
    (tmp_path / "empty").mkdir()
    done = topology("--sysfs", str(tmp_path / root))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"nodealloc topology: {tmp_path / root}: ")
    assert "give a sysfs mount such as /sys" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_terminal_without_signs_gets_the_numbers(tree: Path) -> None:
    """ASCII output replaces what it cannot show."""
    done = subprocess.run(
        [sys.executable, "-m", "nodealloc", "topology", "--sysfs", str(tree)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0
    assert "NUMA node 1 ? 16 GiB" in done.stdout


def test_an_unknown_format_is_refused() -> None:
    """By the argument parser, with exit status 2."""
    assert topology("--format", "yaml").returncode == 2


def test_looking_at_a_machine_loads_no_codec_and_no_grpc() -> None:
    """Neither cattrs, nor gRPC, nor protobuf."""
    script = (
        "import sys; from nodealloc._cli import main; main(['topology']); "
        "sys.exit(sorted({'cattrs', 'grpc', 'google'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_has_seen_enough_gets_no_traceback(tree: Path) -> None:
    """As under `| head`: the status is a shell's own for that."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "nodealloc", "topology", "--sysfs", str(tree)],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")
