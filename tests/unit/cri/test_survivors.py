"""What a command left behind is told from the application's own, from invented processes."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from nodealloc._procfs import ProcessStat, stat_of
from nodealloc.cri._survivors import Survivors, ticks_now
from tests.deep_tree import deepened

FIRST, SHIM = 100, 50


class Box:
    """A container's processes in a procfs and a cgroup of the test's."""

    def __init__(self, folder: Path) -> None:
        self.proc, self.cgroups = folder / "proc", folder / "cgroup"
        self.inside = self.cgroups / "pids" / "box"
        self.inside.mkdir(parents=True)
        self.add(FIRST, SHIM, FIRST, 10)
        (self.proc / str(FIRST) / "cgroup").write_text("4:pids:/box\n0::/\n")
        self.survivors = Survivors(self.proc, self.cgroups)

    def add(self, pid: int, parent: int, session: int, started: int, state: str = "S") -> None:
        """One process more."""
        (self.proc / str(pid)).mkdir(parents=True, exist_ok=True)
        rest = ["0"] * 15 + [str(started)]
        words = [state, str(parent), str(session), str(session), *rest]
        (self.proc / str(pid) / "stat").write_text(f"{pid} (sh (x)) {' '.join(words)} 0 0\n")
        with (self.inside / "cgroup.procs").open("a") as file:
            file.write(f"{pid}\n")

    def end(self, pid: int) -> None:
        """One process fewer."""
        (self.proc / str(pid) / "stat").unlink()

    def left(self, since: int = 200) -> int | None:
        """How many a command left that was begun then."""
        return self.survivors.note("c", FIRST, since)


@pytest.fixture
def box(tmp_path: Path) -> Box:
    """A container with its first process."""
    return Box(tmp_path)


def test_what_forked_away_counts_once(box: Box) -> None:
    """Its session's first process is gone; the next command's is counted by itself."""
    box.add(111, FIRST, 110, 205)
    assert box.left() == 1
    box.add(121, FIRST, 120, 305)
    box.add(122, FIRST, 122, 306)  # it has a session of its own
    assert box.left(300) == 2
    assert dict(box.survivors.counts()) == {"c": 3}
    box.end(111)
    box.add(121, FIRST, 120, 999)  # another process has its number now
    assert dict(box.survivors.counts()) == {"c": 1}
    box.end(122)
    assert dict(box.survivors.counts()) == {}


def test_what_hides_deep_in_cgroups_counts(box: Box) -> None:
    """A container may make cgroups below its own, deeper than a path is long."""
    box.add(111, FIRST, 110, 205)
    with deepened(box.inside, 1_200, "d" * 10) as deepest:
        os.rename(box.inside / "cgroup.procs", "cgroup.procs", dst_dir_fd=deepest)
        (box.inside / "cgroup.procs").write_text(f"{FIRST}\n")
        assert box.left() == 1


@pytest.mark.parametrize(
    ("parent", "session", "started", "state"),
    [
        (FIRST, FIRST, 205, "S"),  # a worker of the application
        (FIRST, 110, 150, "S"),  # there before
        (SHIM, 111, 205, "S"),  # another command, which runs
        (FIRST, 110, 205, "Z"),  # it has ended
    ],
)
def test_what_is_not_the_commands_does_not_count(
    box: Box, parent: int, session: int, started: int, state: str
) -> None:
    """By when it began, its session, its parents and its state."""
    box.add(111, parent, session, started, state)
    assert box.left() == 0


def test_a_child_of_a_command_that_runs_does_not_count(box: Box) -> None:
    """However deep."""
    box.add(111, SHIM, 111, 205)
    box.add(112, 111, 111, 206)
    box.add(113, 112, 113, 207)
    assert box.left() == 0


def test_a_container_that_cannot_be_seen_is_not_counted(box: Box, tmp_path: Path) -> None:
    """Nobody knows is not none."""
    assert box.survivors.note("c", 999, 0) is None
    assert Survivors(box.proc, tmp_path / "elsewhere").note("c", FIRST, 0) is None


def test_a_cgroup_may_have_any_name(box: Box) -> None:
    """Whoever may make cgroups in a container names them: no UTF-8, and what some take for an end of line."""
    name = os.fsdecode(b"b\xff\x0bx")
    box.inside.rename(box.inside.with_name(name))
    (box.proc / str(FIRST) / "cgroup").write_bytes(os.fsencode(f"4:pids:/{name}\n0::/\n"))
    assert box.left() == 0


def test_the_clock_is_that_of_proc() -> None:
    """This very process began before now, and not long ago."""
    began = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    assert 0 <= ticks_now() - began < 100 * 3600


def test_what_has_ended_is_forgotten_though_nobody_counts(box: Box) -> None:
    """A probe that times out each few seconds leaves something each time, in container after container."""
    for number in range(50):
        box.add(110 + number, FIRST, 109, 205 + number)
        assert box.survivors.note(f"c{number}", FIRST, 200) == 1
        box.end(110 + number)
    box.left()
    assert box.survivors._found == {}


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO])
def test_a_process_that_cannot_be_read_now_is_not_taken_for_ended(
    box: Box, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A shortage of descriptors forgot for good what lives on, and counted too few of a new command."""
    fails = True

    def fail(pid: int, /, *, proc: Path) -> ProcessStat:
        if fails and pid == 111:
            raise OSError(number, os.strerror(number))
        return stat_of(pid, proc=proc)

    box.add(111, FIRST, 110, 205)
    monkeypatch.setattr("nodealloc.cri._survivors.stat_of", fail)
    assert box.left() is None
    fails = False
    assert box.left() == 1
    fails = True
    assert dict(box.survivors.counts()) == {"c": 1}
    fails = False
    assert dict(box.survivors.counts()) == {"c": 1}
    box.end(111)
    assert dict(box.survivors.counts()) == {}
