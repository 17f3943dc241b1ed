"""Files that change all at once, on a disk that is full: nothing of a failed change stays."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from pathlib import Path

import pytest

from nodealloc.volumes.plugins._atomic_files import FileContent, write_files


@pytest.fixture
def directory(tmp_path: Path) -> Generator[int]:
    """Of a config map."""
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def content(text: str) -> dict[str, FileContent]:
    """One key."""
    return {"key": FileContent(text.encode(), 0o644)}


def names(directory: Path) -> list[str]:
    """All that is in a directory."""
    return sorted(one.name for one in directory.iterdir())


def full(*_args: object, **_options: object) -> None:
    """A call on a full disk."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("call", ["fsync", "symlink", "rename", "fchmod", "mkdir"])
def test_a_change_that_failed_leaves_nothing(
    tmp_path: Path, directory: int, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """However often it fails, and whatever it was to write: readers see the old files and no others."""
    write_files(directory, content("old"))
    before = names(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        for number in range(3):
            with pytest.raises(OSError, match="No space left"):
                write_files(directory, content(f"new {number}"))
            assert set(names(tmp_path)) - {"..data_tmp"} == set(before)
    assert (tmp_path / "key").read_text() == "old"
    assert write_files(directory, content("small"))
    assert (tmp_path / "key").read_text() == "small"
    assert len(names(tmp_path)) == len(before)


def test_a_flush_that_fails_behind_the_swap_takes_nothing_away(
    tmp_path: Path, directory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers are in the new files by then; the next try finds them, and what was before goes."""
    write_files(directory, content("old"))
    fsync = os.fsync

    def failing(fd: int) -> None:
        if os.path.samestat(os.fstat(fd), os.fstat(directory)):
            full()
        fsync(fd)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing)
        with pytest.raises(OSError, match="No space left"):
            write_files(directory, content("new"))
    assert (tmp_path / "key").read_text() == "new"
    assert write_files(directory, content("new"))
    assert len(names(tmp_path)) == 3


def test_what_a_crash_left_goes_before_more_is_written(
    tmp_path: Path, directory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its room may be what the new files need; they are not begun before it is given back."""
    write_files(directory, content("old"))
    for name in ("..half", "..other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "key").write_text("x" * 1000)
    seen: list[list[str]] = []
    mkdir = os.mkdir

    def looking(path: str, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        seen.append(names(tmp_path))
        mkdir(path, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "mkdir", looking)
    write_files(directory, content("new"))
    assert {"..half", "..other"}.isdisjoint(seen[0])


def test_a_link_that_cannot_be_read_is_not_taken_for_none(
    tmp_path: Path, directory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nobody can tell which files are read, none are deleted."""
    write_files(directory, content("old"))

    def unreadable(*_args: object, **_options: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "readlink", unreadable)
        with pytest.raises(OSError, match="Input/output error"):
            write_files(directory, content("new"))
    assert (tmp_path / "key").read_text() == "old"


def test_a_link_to_nothing_is_no_content(tmp_path: Path, directory: int) -> None:
    """As where somebody took the files away: the same ones are written again."""
    write_files(directory, content("same"))
    (tmp_path / "..data" / "key").unlink()
    (tmp_path / "..data").resolve().rmdir()
    assert write_files(directory, content("same"))
    assert (tmp_path / "key").read_text() == "same"


def test_a_directory_for_a_mount_takes_the_place_of_a_file_that_is_no_more(
    tmp_path: Path, directory: int
) -> None:
    """And a file that of a directory: all follow what the object has now."""
    write_files(directory, content("old"), folders=["key"])
    assert (tmp_path / "key").read_text() == "old"
    assert write_files(directory, {"other": FileContent(b"new", 0o644)}, folders=["key/deep"])
    assert (tmp_path / "key/deep").is_dir()
    assert (tmp_path / "other").read_text() == "new"
    assert write_files(directory, content("again"), folders=["key/deep"])
    assert (tmp_path / "key").read_text() == "again"
