"""close(2) that fails: the number is given back all the same, and may be another thread's at once."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nodealloc._walk import deepest_first
from nodealloc.testing.volumes import FakeMounter
from nodealloc.volumes import SafeRoot, SubPaths
from nodealloc.volumes.plugins._atomic_files import FileContent, write_files

pytestmark = pytest.mark.skipif("sys.platform != 'linux'")


def unmounted(top: Path) -> None:
    """A directory reached through no mount."""
    SafeRoot(str(top)).list_unmounted(str(top), "a", "b", "c")


def made(top: Path) -> None:
    """Directories on the way to one."""
    SafeRoot(str(top)).make_directory(f"{top}/new/b/c")


def removed(top: Path) -> None:
    """A whole tree."""
    SafeRoot(str(top)).remove_tree(f"{top}/a")


def written(top: Path) -> None:
    """A configuration with folders in it."""
    directory = os.open(top / "config", os.O_RDONLY | os.O_DIRECTORY)
    with contextlib.ExitStack() as stack:
        stack.callback(os.closerange, directory, directory + 1)
        write_files(directory, {"a/b/key": FileContent(b"x", 0o644)}, folders=["mount/in"])


def listed(top: Path) -> None:
    """What a container has made, from below."""
    assert list(deepest_first(str(top / "a")))


def bound(top: Path) -> None:
    """A part of a volume."""
    parts = SubPaths(SafeRoot(str(top)), FakeMounter(str(top)))
    parts.bind("u", "app", 0, volume="v", folder=str(top / "a"), path="b/c")


def descriptors() -> set[str]:
    """That are open; the listing's own is closed by now."""
    return {one.name for one in Path("/proc/self/fd").iterdir() if one.is_symlink()}


@pytest.mark.parametrize("work", [unmounted, made, removed, written, listed, bound])
def test_no_number_is_closed_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: Callable[[Path], None]
) -> None:
    """Whichever call fails; nor does one stay open."""
    close = os.close
    closed_twice: list[int] = []

    def closing(number: int) -> None:
        try:
            close(number)
        except OSError as error:
            if error.errno == errno.EBADF:
                closed_twice.append(number)
            raise
        if next(calls) == at:
            raise OSError(errno.EIO, "the server of the files is gone")

    for at in range(60):
        top = tmp_path / str(at)
        (top / "a/b/c/d").mkdir(parents=True)
        (top / "config").mkdir()
        calls: Iterator[int] = iter(range(1000))
        before = descriptors()
        with monkeypatch.context() as patch:
            patch.setattr(os, "close", closing)
            with contextlib.suppress(OSError):
                work(top)
        assert (at, closed_twice, descriptors() - before) == (at, [], set())
    assert next(calls) < 60
