"""Room that a store of files keeps for commits on a full disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from nodealloc.checkpoint import Files, FileStore, Formats, JsonCheckpoint, StoreFailedError

FORMATS: Formats = {"row.*": JsonCheckpoint.unmarshal}


def row(number: int) -> JsonCheckpoint:
    """A record."""
    return JsonCheckpoint(kind="row", version=1, value=[number])


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_commit_on_a_full_disk_takes_the_room_that_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """A disk that is full as long as the spare file is there takes every small commit."""
    spare = tmp_path / ".nodealloc.spare"

    def write(_files: Files, descriptor: int, data: bytes | memoryview) -> int:
        if spare.exists():
            raise OSError(code, os.strerror(code))
        return os.write(descriptor, data)

    with FileStore(tmp_path, FORMATS) as store:
        monkeypatch.setattr(Files, "write", write)
        for number in range(3):
            store.commit({"row.1": row(number), "row.2": row(number)})
            assert spare.stat().st_blocks == 128
        spare.unlink()
        spare.mkdir()
        with pytest.raises(StoreFailedError, match="make room"):
            store.commit({"row.1": row(9)})
    monkeypatch.undo()
    with FileStore(tmp_path, FORMATS) as store:
        assert store.read().values == {"row.1": row(2), "row.2": row(2)}


def test_another_fault_leaves_the_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fails is no full one: nothing is tried twice."""
    tries: list[int] = []

    def write(_files: Files, descriptor: int, _data: bytes | memoryview) -> int:
        tries.append(descriptor)
        raise OSError(errno.EIO, "error")

    with FileStore(tmp_path, FORMATS) as store:
        monkeypatch.setattr(Files, "write", write)
        with pytest.raises(StoreFailedError, match="error"):
            store.commit({"row.1": row(1)})
    assert len(tries) == 1
