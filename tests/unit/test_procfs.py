"""One place that reads `/proc`, one that writes control files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from nodealloc._control_file import write_control_file
from nodealloc._procfs import stat_of, threads_of

ROOT = Path(__file__).parents[2] / "src" / "nodealloc"


def test_a_name_may_hold_what_it_likes(tmp_path: Path) -> None:
    """Parentheses and blanks in a command's name move no field."""
    (tmp_path / "7").mkdir()
    numbers = " ".join(str(number) for number in range(4, 53))
    (tmp_path / "7" / "stat").write_text(f"7 (a) b (c) S {numbers}\n")
    assert stat_of(7, proc=tmp_path) == ("a) b (c", "S", "22", 4, 6)


def test_a_process_that_goes_while_it_is_read_is_gone(tmp_path: Path) -> None:
    """Half a line is no process."""
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "stat").write_text("")
    with pytest.raises(ProcessLookupError, match="7"):
        stat_of(7, proc=tmp_path)
    with pytest.raises(OSError, match="8"):
        stat_of(8, proc=tmp_path)


def test_a_zombie_has_ended() -> None:
    """Nothing of it runs; only its parent has to be told."""
    assert not stat_of(os.getpid()).has_ended
    assert os.getpid() in threads_of(os.getpid())
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert stat_of(child.pid).has_ended
    child.wait()


def test_a_control_file_holds_what_was_written_last(tmp_path: Path) -> None:
    """A shorter text leaves nothing of a longer one; a file that is absent is not made."""
    path = tmp_path / "cpuset.cpus"
    with pytest.raises(FileNotFoundError):
        write_control_file(path, "0-3")
    path.write_text("0-1023")
    write_control_file(path, "1")
    assert path.read_text() == "1"


@pytest.mark.tree
def test_nobody_else_reads_a_processs_line() -> None:
    """The place of a field in `/proc/PID/stat` is known in one file."""
    readers = [
        path.name for path in ROOT.rglob("*.py") if 'rpartition(")")' in path.read_text(encoding="utf-8")
    ]
    assert readers == ["_procfs.py"]
