"""What somebody at a terminal sees: the version, who holds what, colours where they are wanted."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import cast
from xml.etree import ElementTree as ET

import pytest

from nodealloc._cli import main
from nodealloc._units import bytes_text
from nodealloc.checkpoint import FileStore, JsonCheckpoint
from nodealloc.cpuset import CpuAllocator, CPUSet
from nodealloc.machine import draw_svg, draw_text, machine_from_text
from nodealloc.memblocks import MemoryAllocator
from nodealloc.node import FORMATS, NodeAllocator
from nodealloc.testing.machine import write_sysfs
from nodealloc.testing.topology import workload
from nodealloc.topology import Feasibility, Owner, Placed, Policy, Refusal, Snapshot, admit, explain

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """What a node keeps of two containers with CPUs and memory, one of which runs."""
    machine = machine_from_text("2 sockets x 4 cores, memory=8Gi")
    allocators = (CpuAllocator.of(machine), MemoryAllocator.of(machine))
    with FileStore(tmp_path / "store", FORMATS) as opened:
        node = NodeAllocator(Snapshot.of(machine, allocators=allocators), opened)
        node.start()
        node.admit(workload("web-1", {"cpu": 2, "memory": "1Gi"}, {"cpu": 1, "memory": "64Mi"}))
        node.before_start(Owner("web-1", "app-0"), "pid 7")
    return tmp_path / "store"


def test_show_lists_what_a_record_grants(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row for each container and resource, with the words of who granted it."""
    assert main(["checkpoint", "show", str(store)]) == 0
    rows = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "workload.web-1 web-1/app-0 cpu cpus=0-1" in rows
    assert "workload.web-1 web-1/app-1 cpu cpus=2" in rows
    assert "workload.web-1 web-1/app-0 memory memory: 1 GiB on nodes 0" in rows
    assert "workload.web-1 web-1/app-1 (asked) cpu=1 memory=64Mi" in rows
    assert "workload.web-1 web-1/app-0 (container) pid 7" in rows


def test_show_reads_any_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Devices by member, a record of another kind by its fields, and one that is no mapping."""
    devices = [{"member": "app", "resource": "example.com/gpu", "places": {"1": ["g0", "g1"], "-1": ["x"]}}]
    held = {"workload": {"key": "job", "claims": []}, "grants": {"devices": devices, "own": [1, 2], "odd": 3}}
    values = {
        "workload.job": held,
        "workload.idle": {"workload": {"key": "idle"}, "grants": {}},
        "workload.other": {"level": 3, "names": ["a"]},
        "workload.text": "plain",
    }
    with FileStore(tmp_path, FORMATS) as opened:
        opened.commit(
            {key: JsonCheckpoint(kind="k", version=2, value=cast("str", one)) for key, one in values.items()}
        )
    assert main(["checkpoint", "show", str(tmp_path)]) == 0
    rows = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "workload.job job/app example.com/gpu x on no node, g0 g1 on node 1" in rows
    assert "workload.job job own 1" in rows
    assert "workload.idle idle (nothing held)" in rows
    assert "workload.other (k, version 2) level 3" in rows
    assert 'workload.text (k, version 2) "plain"' in rows


def test_only_a_terminal_has_values_cut_short(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe gets all of it, and so does whoever asks for it."""
    with FileStore(tmp_path, FORMATS) as opened:
        opened.commit({"workload.long": JsonCheckpoint(kind="k", version=1, value="x" * 300)})
    main(["checkpoint", "show", str(tmp_path)])
    assert "x" * 300 in capsys.readouterr().out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    main(["checkpoint", "show", str(tmp_path)])
    assert '"' + "x" * 98 + "…" in capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "150")
    main(["checkpoint", "show", str(tmp_path)])
    assert '"' + "x" * 148 + "…" in capsys.readouterr().out
    main(["checkpoint", "show", "--full", str(tmp_path)])
    assert "x" * 300 in capsys.readouterr().out


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """By `--version`, also from a source tree that nobody installed."""
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("nodealloc ")


@pytest.mark.parametrize(
    ("setting", "coloured"),
    [
        (("NO_COLOR", ""), True),
        (("NO_COLOR", "1"), False),
        (("TERM", "dumb"), False),
        (("TERM", "xterm"), True),
    ],
)
def test_colours_are_left_out_where_nobody_wants_them(
    setting: tuple[str, str],
    coloured: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    captured: Path,
) -> None:
    """On a terminal, unless `NO_COLOR` is set or the terminal is a dumb one."""
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(*setting)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert main(["topology", "--sysfs", str(captured)]) == 0
    assert ("\x1b[1" in capsys.readouterr().out) is coloured


@pytest.fixture
def captured(tmp_path: Path) -> Path:
    """A sysfs tree with two kinds of cores, which have marks."""
    write_sysfs(machine_from_text("1 socket x (1 core + 1 atom cores)"), tmp_path)
    return tmp_path


def test_what_has_no_mark_is_not_painted() -> None:
    """A CPU that nobody holds has no escape sequence around it."""
    assert "\x1b[0m" not in draw_text(machine_from_text("2 cores"), colour=True)


def test_thirty_holders_are_told_apart_without_colour() -> None:
    """Each cell has its holder's letters, which stand in the legend too."""
    machine = machine_from_text("30 cores")
    svg = draw_svg(machine, {f"pod-{number}": CPUSet.of(number) for number in range(30)})
    root = ET.fromstring(svg)  # noqa: S314 - our own
    cells = ["".join(one.itertext()) for one in root.iter() if one.get("class") == "n"]
    letters = [cell.lstrip("0123456789") for cell in cells]
    assert len(set(letters)) == 30
    words = "\n".join(one.text or "" for one in root.iter())
    assert all(f"{letter}  pod-{number}: 1" in words for number, letter in enumerate(letters))


def test_a_title_and_its_detail_stand_apart() -> None:
    """By a distance that every renderer keeps."""
    assert 'NUMA node 0<tspan class="d" dx="4">· ' in draw_svg(machine_from_text("4 cores"))


@pytest.mark.tree
@pytest.mark.parametrize("home", ["own", "none"])
def test_the_checks_are_listed_where_nobody_may_look(home: str, tmp_path: Path) -> None:
    """Somebody else's version manager, no home and no passwd entry keep nobody from running them."""
    closed = tmp_path / "pyenv"
    closed.mkdir()
    environment = {"PATH": "/usr/bin:/bin", "PYENV_ROOT": str(closed / "versions" / ".." / "x")}
    environment |= {"HOME": str(tmp_path)} if home == "own" else {}
    script = (
        "import pathlib, sys, types\n"
        "nox = types.ModuleType('nox')\n"
        f"source = pathlib.Path({str(ROOT / 'noxfile.py')!r}).read_text()\n"
        "start, end = source.index('def _works'), source.index('PYTHONS =')\n"
        "def refuse(*_): raise PermissionError(13, 'no')\n"
        "pathlib.Path.glob = refuse\n"
        "names = {'SUPPORTED': ['3.99']}\n"
        "head = 'import os, shutil, subprocess, sys\\nfrom pathlib import Path\\n'\n"
        "exec('from __future__ import annotations\\n' + head + source[start:end], names)\n"
        "assert names['_managed']('3.99') == []\n"
        "def homeless(): raise RuntimeError('Could not determine home directory.')\n"
        "pathlib.Path.home = homeless\n"
        "import os; os.environ.pop('PYENV_ROOT')\n"
        "assert names['_managed']('3.99') == []\n"
        "print(names['_installed']())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.tree
def test_a_user_without_a_home_gets_one_inside_the_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tools that look for a home find the cache, and write nowhere else."""
    started = runpy.run_path(str(ROOT / "dev.py"))
    monkeypatch.setattr(os.path, "expanduser", lambda _: "~")
    assert started["surroundings"]()["HOME"] == started["CACHE"]
    monkeypatch.setattr(os.path, "expanduser", lambda _: "/home/me")
    monkeypatch.setenv("HOME", "/home/me")
    assert started["surroundings"]()["HOME"] == "/home/me"


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 bytes"),
        (1023, "1023 bytes"),
        (1 << 10, "1 KiB"),
        (1536 << 20, "1.5 GiB"),
        (64 << 30, "64 GiB"),
        ((64 << 30) + 1, "68719476737 bytes"),
        ((64 << 30) - (1 << 20), "65535 MiB"),
        (3 << 40, "3 TiB"),
    ],
)
def test_bytes_are_told_exactly_in_one_manner(size_bytes: int, text: str) -> None:
    """Two amounts that differ never look alike."""
    assert bytes_text(size_bytes) == text


def test_a_refusal_says_one_thing_in_one_unit() -> None:
    """What fits nowhere is possible nowhere, and both lines count in GiB."""
    machine = machine_from_text("2 sockets x 4 cores, memory=16Gi")
    node = Snapshot.of(machine, policy=Policy.parse("best-effort"), allocators=(MemoryAllocator.of(machine),))
    refusal = admit(node, workload("job", {"memory": "64Gi"}))
    assert isinstance(refusal, Refusal)
    text = f"{refusal}\n{explain(refusal).text}"
    assert "68719476736" not in text
    assert "64 GiB asked" in text
    assert "64 GiB wanted" in text
    assert "all nodes together can grant 32 GiB of memory" in text
    assert "possible nodes: none" in text
    assert "possible nodes: any" not in text


def test_waiting_and_a_weaker_policy_are_named_where_they_help() -> None:
    """A node that is full now, for a pod that no single node could ever hold: not "ask for less"."""
    machine = machine_from_text("2 sockets x 4 cores, memory=16Gi")
    policy = Policy.parse("single-numa-node")
    empty = Snapshot.of(machine, policy=policy, allocators=(MemoryAllocator.of(machine),))
    held = admit(empty, workload("held", {"memory": "10Gi"}))
    assert isinstance(held, Placed)
    refusal = admit(held.snapshot, workload("job", {"memory": "20Gi"}))
    assert isinstance(refusal, Refusal)
    assert explain(refusal).feasibility is Feasibility.NEVER_PREFERRED
