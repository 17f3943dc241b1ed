"""What a writer of cpusets says to targets and files that are none."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from nodealloc.cpuset import (
    AffinityWriter,
    CgroupV1Writer,
    CgroupV2Writer,
    CPUSet,
    CpusetBusyError,
    CpusetWriteError,
    TargetGoneError,
    process_target,
)
from nodealloc.errors import DecodeError


@pytest.mark.parametrize("target", ["", "/", "../up", "a/../../b", "nul\0byte"])
def test_a_target_that_is_no_cgroup_is_refused(tmp_path: Path, target: str) -> None:
    """Nothing outside the root is looked at, whatever the target is called."""
    with pytest.raises(CpusetWriteError, match="no cgroup below the root"):
        CgroupV2Writer(tmp_path).read(target)


def test_a_root_that_is_no_directory_is_not_taken_for_a_container_that_went(tmp_path: Path) -> None:
    """A wrong root is told as such; below a right one, a target that is not there is gone."""
    with pytest.raises(CpusetWriteError, match="name the folder where the cpuset hierarchy is mounted"):
        CgroupV2Writer(tmp_path / "none").read("pod")
    with pytest.raises(TargetGoneError):
        CgroupV2Writer(tmp_path).read("pod")


@pytest.mark.parametrize("content", [b"junk", b"\xff\xfe", b"0" * 5000 + b"x"])
def test_a_file_that_is_no_list_is_named(tmp_path: Path, content: bytes) -> None:
    """The error says which file it was, and where in it."""
    (tmp_path / "pod").mkdir()
    (tmp_path / "pod" / "cpuset.cpus").write_bytes(content)
    with pytest.raises(DecodeError, match=r"pod/cpuset\.cpus: expected a decimal id"):
        CgroupV2Writer(tmp_path).read("pod")


@pytest.mark.parametrize("target", ["", "one", "-1", "\u0661", "1 ", "9" * 5000])
def test_a_target_that_is_no_process_is_refused(target: str) -> None:
    """Process numbers are short and decimal."""
    with pytest.raises(CpusetWriteError, match="expected PID or PID@START"):
        AffinityWriter().read(target)


def test_a_number_that_was_given_to_another_process_is_gone(tmp_path: Path) -> None:
    """A process is known by its number and start time; one that ends while it is looked at is gone too."""
    pid = os.getpid()
    (tmp_path / f"{pid}/task/{pid}").mkdir(parents=True)
    stat = tmp_path / str(pid) / "stat"
    stat.write_text(f"{pid} (a) b) S {'0 ' * 18}4711 0")
    target, writer = process_target(pid, proc=tmp_path), AffinityWriter(tmp_path)
    assert target == f"{pid}@4711"
    assert writer.read(target)[0]
    for content in (f"{pid} (a) b) S {'0 ' * 18}4712 0", ""):
        stat.write_text(content)
        with pytest.raises(TargetGoneError):
            writer.read(target)


@pytest.mark.parametrize("kind", [CgroupV1Writer, CgroupV2Writer, AffinityWriter])
@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO])
def test_what_the_system_does_not_give_now_is_not_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[CgroupV1Writer | AffinityWriter]
) -> None:
    """A shortage passes: it is to be tried again, as the port promises, and no target counts as gone."""
    writer = AffinityWriter() if kind is AffinityWriter else kind(tmp_path)

    def fail(self: object, *_: object, **__: object) -> str:
        raise OSError(number, os.strerror(number), str(self))

    for name in ("read_text", "iterdir"):
        monkeypatch.setattr(Path, name, fail)
    for module in ("open", "listdir", "scandir"):
        monkeypatch.setattr(os, module, fail)
    with pytest.raises(CpusetBusyError, match=os.strerror(number)):
        writer.read(str(os.getpid()))


@pytest.mark.parametrize("at", ["target", "root"])
def test_a_target_that_cannot_be_looked_for_now_is_not_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """Whether it is there is asked once its file is not; that question may fail, too."""
    folder = tmp_path / "target" if at == "target" else tmp_path
    real = Path.stat

    def fail(self: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if self == folder:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(self))
        return real(self, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(Path, "stat", fail)
    with pytest.raises(CpusetBusyError, match="Input/output error"):
        CgroupV2Writer(tmp_path).write("target", CPUSet.of(0), None)
