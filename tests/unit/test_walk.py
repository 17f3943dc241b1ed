"""Walks through directories: what is told, and which descriptors are closed."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodealloc import _walk


def _tree(top: Path) -> None:
    for path in ("a/b/c", "a/d", "e"):
        (top / path).mkdir(parents=True)


def _open_files() -> set[str]:
    return set(os.listdir("/proc/self/fd"))  # noqa: PTH208 - the names alone


def test_the_deepest_come_first_and_the_directory_itself_last(tmp_path: Path) -> None:
    """Each path leads to its directory until the next is asked for, so that all can be removed on the way."""
    _tree(tmp_path)
    for path in _walk.deepest_first(str(tmp_path)):
        os.rmdir(path)  # noqa: PTH106 - as its users do
    assert not tmp_path.exists()
    assert list(_walk.deepest_first(str(tmp_path))) == [str(tmp_path)]


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOMEM])
@pytest.mark.parametrize("after", range(5))
def test_a_walk_that_fails_closes_nobody_elses_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, after: int
) -> None:
    """A directory that cannot be listed now ends the walk; its numbers may be another thread's by then."""
    _tree(tmp_path)
    before, asked, others = _open_files(), 0, list[int]()
    real = os.scandir

    @contextlib.contextmanager
    def scandir(directory: int) -> Iterator[Iterator[os.DirEntry[str]]]:
        nonlocal asked
        asked += 1
        if asked > after:
            others.append(os.open(os.devnull, os.O_RDONLY))  # takes the lowest number that is free
            raise OSError(number, os.strerror(number))
        with real(directory) as entries:
            yield entries

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(OSError, match=os.strerror(number)):
        list(_walk.deepest_first(str(tmp_path)))
    monkeypatch.undo()
    for other in others:
        os.close(other)
    assert _open_files() == before
