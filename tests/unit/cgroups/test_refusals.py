"""What the kernel refuses, told apart; files that come and go under the reader."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest

from nodealloc.cgroups import (
    CgroupBusyError,
    CgroupFs,
    CgroupHoldsCallerError,
    CgroupMount,
    CgroupName,
    Layout,
    LimitRefusedError,
    Limits,
    ProcessGoneError,
    ReadOnlyError,
    detect,
    stand_in,
)
from nodealloc.cgroups._errors import Process, refusal
from nodealloc.cgroups._files import KernelFiles
from nodealloc.cgroups._launch import _set_score
from nodealloc.cgroups._processes import Held, describe
from nodealloc.errors import NodeallocError, PermanentError
from tests.deep_tree import deepened

NAME = CgroupName.of("a")
V2 = Layout(mounts=(CgroupMount(path="/c", version=2, controllers=("cpu", "memory", "pids")),))


class Refusing(KernelFiles):
    """Files on which one operation fails with one number."""

    def __init__(self, number: int, *, children: tuple[str, ...] = ()) -> None:
        self.number = number
        self.names = children

    def _fail(self) -> OSError:
        return OSError(self.number, os.strerror(self.number))

    def read(self, _path: str, /) -> str | None:
        """Refuse."""
        raise self._fail()

    def write(self, _path: str, _text: str, /) -> None:
        """Refuse."""
        raise self._fail()

    def make(self, _path: str, /) -> None:
        """Refuse."""
        raise self._fail()

    def remove(self, _path: str, /) -> None:
        """Refuse."""
        raise self._fail()

    def exists(self, path: str, /) -> bool:
        """Everything is there but `/c/new`."""
        return path != "/c/new"

    def children(self, path: str, /) -> list[str]:
        """What was given, below `/c`."""
        return list(self.names) if path == "/c" else []


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (errno.EROFS, ReadOnlyError, "read-only"),
        (errno.ESRCH, ProcessGoneError, "17 has ended"),
        (errno.EINVAL, LimitRefusedError, "within the parent's"),
        (errno.ERANGE, LimitRefusedError, "does not have"),
        (errno.ENOSPC, LimitRefusedError, "without a CPU"),
        (errno.EACCES, LimitRefusedError, "subset"),
        (errno.EPERM, LimitRefusedError, "delegated"),
        (errno.EBUSY, LimitRefusedError, "leaves only"),
        (errno.EOPNOTSUPP, LimitRefusedError, "threaded"),
        (errno.ENOENT, LimitRefusedError, "no such control file"),
        (errno.EIO, LimitRefusedError, "EIO"),
    ],
)
def test_each_number_has_its_words(number: int, kind: type[NodeallocError], words: str) -> None:
    """The kernel's answer is told in words, with the file and what was written."""
    error = refusal(OSError(number, ""), name=NAME, path="/c/a/x", text="17", controllers=("cpu",))
    assert type(error) is kind
    assert words in str(error)
    assert isinstance(error, PermanentError)


def test_refusals_come_through_the_driver() -> None:
    """Making, removing, writing and reading each end in a named error, or in nothing to read."""
    closed = CgroupFs(V2, files=Refusing(errno.EACCES))
    with pytest.raises(LimitRefusedError):
        closed.apply(NAME, Limits(pids=5))
    with pytest.raises(ReadOnlyError, match="may not be written by this user"):
        closed.remove(NAME)
    assert closed.read(NAME) == Limits()
    assert closed.pids(NAME) == frozenset()
    with pytest.raises(CgroupBusyError, match="cannot be seen"):
        CgroupFs(V2, files=Refusing(errno.EBUSY)).remove(NAME)


def test_directory_that_cannot_be_made_is_named() -> None:
    """A read-only hierarchy and a user without rights are told apart."""

    class NotMade(Refusing):
        """Controllers are handed down; the directory cannot be made."""

        def read(self, _path: str, /) -> str | None:
            """All controllers."""
            return "cpu memory pids"

    for number, words in ((errno.EROFS, "read-only"), (errno.EPERM, "this user")):
        with pytest.raises(ReadOnlyError, match=words):
            CgroupFs(V2, files=NotMade(number)).apply(CgroupName.of("new"), Limits())


def test_foreign_directories_are_no_children() -> None:
    """Directories that no name stands for are left out, and left alone."""
    driver = CgroupFs(V2, files=Refusing(errno.EIO, children=("a", "b_c", "x.slice", "tasks")))
    assert [child.parts for child in driver.children(CgroupName())] == [("a",), ("x.slice",)]


def test_caller_is_never_killed(tmp_path: Path) -> None:
    """A cgroup that holds this very process is not killed."""
    driver = stand_in(tmp_path)
    driver.apply(NAME, Limits())
    driver.attach(NAME, os.getpid())
    with pytest.raises(CgroupHoldsCallerError) as refused:
        driver.kill(NAME)
    assert refused.value.pid == os.getpid()
    driver.attach(CgroupName(), os.getpid())


def test_stuck_process_is_named(tmp_path: Path) -> None:
    """Who outlives SIGKILL is returned with name and state; nobody waits longer than asked."""

    class Immortal(KernelFiles):
        """Lists a process that no signal reaches, and one of another namespace."""

        def pids(self, path: str, /) -> frozenset[int]:
            """The first process of the machine is never this test's to end."""
            return frozenset({0, 2**22 + 5}) if path.endswith("/a") else frozenset()

    (tmp_path / "a").mkdir()
    layout = Layout(mounts=(CgroupMount(path=str(tmp_path), version=1, controllers=("pids",)),))
    left = CgroupFs(layout, files=Immortal(), kill_wait_s=0.01).kill(NAME)
    assert left == (Process(0), Process(2**22 + 5))


def test_processes_are_described_and_waited_for() -> None:
    """A running process has a name and a state; waiting ends when time is up."""
    with subprocess.Popen(["sleep", "60"]) as process:
        found = describe(process.pid)
        assert (found.pid, found.state in "SRD") == (process.pid, True)
        with Held([process.pid]) as held:
            held.wait(0.01)
            process.kill()
            held.wait(30)
    assert describe(process.pid) == Process(process.pid)


def test_kernel_files_forgive_what_is_gone(tmp_path: Path) -> None:
    """Absent files, directories and made ones are answers, not errors."""
    files = KernelFiles()
    assert files.read(str(tmp_path / "x")) is None
    files.make(str(tmp_path / "d"))
    files.make(str(tmp_path / "d"))
    files.remove(str(tmp_path / "d"))
    files.remove(str(tmp_path / "d"))
    assert files.children(str(tmp_path / "d")) == []
    assert files.pids(str(tmp_path)) == frozenset()


@pytest.mark.parametrize(("depth", "name"), [(1_050, "d"), (20, "d" * 250)])
def test_a_tree_deeper_than_a_path_is_long_is_gone_through(tmp_path: Path, depth: int, name: str) -> None:
    """Whoever may make cgroups in a container keeps it neither from being killed nor from being removed."""
    (tmp_path / "a").mkdir()
    driver = CgroupFs(
        Layout(mounts=(CgroupMount(path=str(tmp_path), version=1, controllers=("pids",)),)),
        files=KernelFiles(),
    )
    with deepened(tmp_path / "a", depth, name) as deepest:
        with os.fdopen(os.open("cgroup.procs", os.O_WRONLY | os.O_CREAT, dir_fd=deepest), "w") as procs:
            procs.write("2\n")
        assert driver.pids(NAME) == {2}
        os.unlink("cgroup.procs", dir_fd=deepest)
        driver.remove(NAME)
        assert not driver.exists(NAME)


def test_what_a_runtime_made_beside_is_removed_as_well(tmp_path: Path) -> None:
    """In hierarchies that are not used here: each pod left a directory in each of them, for good."""
    lines = {"pids": "pids", "blkio": "blkio", "systemd": "xattr,name=systemd"}
    for name in (*lines, "net"):
        (tmp_path / name).mkdir()
    text = "".join(
        f"{at} 24 0:{at} / {tmp_path}/{name} rw - cgroup cgroup rw,{options}\n"
        for at, (name, options) in enumerate(lines.items())
    )
    text += f"9 24 0:9 / {tmp_path}/net ro - cgroup cgroup ro,net_cls\n"
    driver = detect(tmp_path, mountinfo=text)
    assert [one.path for one in driver.layout.mounts] == [f"{tmp_path}/pids"]
    assert [one.path for one in driver.layout.others] == [f"{tmp_path}/blkio", f"{tmp_path}/systemd"]
    for name in ("pids", "blkio", "net"):
        (tmp_path / name / "a" / "made").mkdir(parents=True)
    (tmp_path / "blkio" / "other").mkdir()
    driver.remove(NAME)
    assert not driver.exists(NAME)
    assert sorted(one.name for one in (tmp_path / "blkio").iterdir()) == ["other"]
    assert (tmp_path / "net" / "a" / "made").is_dir()
    (tmp_path / "blkio" / "a").mkdir()
    (tmp_path / "blkio" / "a" / "busy").touch()  # stands for whoever is in it
    driver.remove(NAME)
    assert (tmp_path / "blkio" / "a").is_dir()


def test_hierarchy_without_a_list_of_controllers(tmp_path: Path) -> None:
    """A v2 hierarchy that cannot be read offers nothing, and is still found."""
    text = f"30 24 0:26 / {tmp_path} rw - cgroup2 cgroup rw\n"
    driver = detect(tmp_path, mountinfo=text)
    assert driver.layout.mounts == (CgroupMount(path=str(tmp_path), version=2),)
    (tmp_path / "cgroup.controllers").write_text("cpu memory io\n")
    assert detect(tmp_path, mountinfo=text).layout.mounts[0].controllers == ("cpu", "memory")


def test_a_score_that_is_refused_is_named() -> None:
    """With its file and what to do; a process that has ended is told apart."""
    with pytest.raises(LimitRefusedError, match=r"oom_score_adj: .*CAP_SYS_RESOURCE"):
        _set_score(NAME, os.getpid(), 5000)
    ended = subprocess.Popen(["true"])
    ended.wait()
    with pytest.raises(ProcessGoneError):
        _set_score(NAME, ended.pid, 5)
