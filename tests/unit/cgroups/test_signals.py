"""Signals: they reach the process that was meant, also when its number is another's by then."""

from __future__ import annotations

import gc
import os
import resource
import signal
import subprocess
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

import pytest

from nodealloc.cgroups import CgroupFs, CgroupName, Spelling
from nodealloc.cgroups._files import KernelFiles
from nodealloc.cgroups._layout import CgroupMount, Layout
from nodealloc.cgroups._processes import Held, end

NAME = CgroupName.of("a")


@pytest.fixture
def sleeper() -> Generator[subprocess.Popen[bytes]]:
    """A process that nobody means to end."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


class Changing(KernelFiles):
    """A list of processes that is another at each look; the last one stays."""

    def __init__(self, *looks: set[int]) -> None:
        self.looks = [frozenset(look) for look in looks]

    def pids(self, path: str, /) -> frozenset[int]:
        """Who is there at this look."""
        if not path.endswith("/a"):
            return frozenset()
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]


def driver(tmp_path: Path, files: KernelFiles, version: int) -> CgroupFs:
    """A driver over that list."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "cgroup.kill").touch()
    mount = CgroupMount(path=str(tmp_path), version=version, controllers=("pids",))
    return CgroupFs(Layout(mounts=(mount,), spelling=Spelling.CGROUPFS), files=files, kill_wait_s=0.01)


@pytest.mark.parametrize("version", [1, 2])
def test_a_number_that_left_the_cgroup_is_not_signalled(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], version: int
) -> None:
    """Read before `cgroup.kill`, it may be anybody's behind it; who is not there any more is spared."""
    pid = sleeper.pid
    assert driver(tmp_path, Changing({pid}, set()), version).kill(NAME) == ()
    assert is_alive(sleeper)


@pytest.mark.parametrize("version", [1, 2])
def test_who_is_there_at_both_looks_is_signalled(
    tmp_path: Path, sleeper: subprocess.Popen[bytes], version: int
) -> None:
    """A process that `cgroup.kill` did not reach ends by a signal of its own."""
    pid = sleeper.pid
    driver(tmp_path, Changing({pid}, {pid}, {pid}, set()), version).kill(NAME)
    assert sleeper.wait(30) == -signal.SIGKILL


def is_alive(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has not been ended."""
    return process.poll() is None


def test_a_descriptor_is_of_the_process_that_had_the_number(sleeper: subprocess.Popen[bytes]) -> None:
    """Held, ended and reaped: a signal goes to nobody, whoever has the number then."""
    gone = subprocess.Popen(["sleep", "60"])
    with Held([gone.pid]) as held:
        gone.kill()
        gone.wait()
        held.end({gone.pid, sleeper.pid})
    assert is_alive(sleeper)


def test_nothing_is_signalled_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither this process, nor its group by the number 0, nor what it may not see."""

    def forbidden(*_args: object) -> None:
        raise AssertionError("a number is no process")

    monkeypatch.setattr(os, "kill", forbidden)
    end(lambda: frozenset({0, -1, os.getpid(), 2**22 + 5}))


def test_many_are_held_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork bomb takes a bounded number of descriptors, and each of its processes is signalled."""
    read, write = os.pipe()
    opened: list[int] = []
    signalled: list[int] = []
    most = 0

    def opening(pid: int) -> int:
        nonlocal most
        descriptor = os.dup(read)
        opened.append(descriptor)
        most = max(most, len(set(opened)))
        return descriptor

    monkeypatch.setattr(os, "pidfd_open", opening)
    monkeypatch.setattr(signal, "pidfd_send_signal", lambda descriptor, _number: signalled.append(descriptor))
    bomb = frozenset(range(10**6, 10**6 + 1000))
    end(lambda: bomb)
    os.close(read)
    os.close(write)
    assert len(signalled) == 1000
    assert most <= 256


class Living(KernelFiles):
    """Those of some processes that have not ended; a look takes descriptors, as in the kernel's files."""

    def __init__(self, processes: Sequence[subprocess.Popen[bytes]]) -> None:
        self.processes = processes

    def pids(self, path: str, /) -> frozenset[int]:
        """Who is there at this look."""
        with Path("/dev/null").open(), Path("/dev/null").open():
            return frozenset(one.pid for one in self.processes if path.endswith("/a") and is_alive(one))


def is_open(descriptor: int) -> bool:
    """Whether anything is behind a number."""
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


@pytest.fixture
def few_files() -> Generator[Callable[[int], None]]:
    """Leaves so many descriptors free; as many as before afterwards."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)

    def leave(free: int) -> None:
        gc.collect()  # what earlier tests left open
        unused = [one for one in range(4096) if not is_open(one)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (unused[free], before[1]))

    yield leave
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize("free", [24, 40, 62, 90])
@pytest.mark.parametrize("version", [1, 2])
def test_many_are_ended_though_few_files_may_be_open(
    tmp_path: Path, few_files: Callable[[int], None], version: int, free: int
) -> None:
    """Each that is held takes a descriptor; holding all it could, it had none left to see who is there."""
    many = [subprocess.Popen(["sleep", "60"]) for _ in range(60)]
    one = driver(tmp_path, Living(many), version)
    try:
        few_files(free)
        one.kill(NAME)
        assert [process.wait(30) for process in many] == [-signal.SIGKILL] * 60
    finally:
        for process in many:
            process.kill()
            process.wait()


def test_nobody_is_left_out_in_silence_where_no_file_may_be_opened(
    sleeper: subprocess.Popen[bytes], few_files: Callable[[int], None]
) -> None:
    """It may be told as what it is, and tried again."""
    few_files(0)
    with pytest.raises(OSError, match="Too many open files"):
        end(lambda: frozenset({sleeper.pid}))
