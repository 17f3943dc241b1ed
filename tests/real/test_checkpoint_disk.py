"""Real disks: faults at the real system calls, and a file system that is full."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodealloc.checkpoint import (
    Checkpoint,
    Files,
    FileStore,
    Formats,
    JsonCheckpoint,
    SqliteStore,
    StoreFailedError,
)
from nodealloc.testing.checkpoint import FaultyFiles, InjectedFault

FORMATS: Formats = {"row.*": JsonCheckpoint.unmarshal}

pytestmark = pytest.mark.real


def row(number: int, size: int = 50) -> JsonCheckpoint:
    """A record of some size."""
    return JsonCheckpoint(kind="row", version=1, value=[number, "x" * size])


OLD: dict[str, Checkpoint] = {f"row.{n}": row(n) for n in range(3)}
NEW: dict[str, Checkpoint] = {f"row.{n}": row(n + 10) for n in range(3)}


@pytest.mark.parametrize("changes", [{"row.0": NEW["row.0"]}, NEW], ids=["one", "many"])
@pytest.mark.parametrize("happened", [False, True])
def test_faults_on_a_real_directory(tmp_path: Path, changes: dict[str, Checkpoint], happened: bool) -> None:
    """Each call of a commit fails on a real disk, for good; the next owner reads old or new, whole."""
    new = {**OLD, **changes}
    tried = 0
    for at in range(1, 200):
        path = tmp_path / str(at)
        with FileStore(path, FORMATS) as store:
            store.commit(OLD)
        start = [10**9]
        fault = InjectedFault(code=errno.EIO, happened=happened)
        faulty = FaultyFiles(Files(), lambda n, _: fault if n >= start[0] + at else None)  # noqa: B023
        store = FileStore(path, FORMATS, files=faulty)
        before = len(faulty.log)
        start[0] = before
        returned = True
        try:
            store.commit(changes)
        except StoreFailedError as error:
            assert error.code == errno.EIO  # noqa: PT017
            returned = False
        done = len(faulty.log) - before < at
        assert store.read().values == (new if returned else OLD)
        store.close()
        if not happened:
            # close(2) was refused as well: give the lock back as the end of the process would.
            for descriptor in held_by(path):
                os.close(descriptor)
        with FileStore(path, FORMATS) as store:
            assert store.read().is_whole
            assert store.read().values in ([new] if returned else [OLD, new])
        tried += 1
        if done:
            break
    assert tried > 5


def held_by(path: Path) -> list[int]:
    """Descriptors of this process below a directory."""
    found: list[int] = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            target = str(entry.readlink())
        except OSError:
            continue
        if target.startswith(str(path)):
            found.append(int(entry.name))
    return found


@pytest.fixture
def small_disk(tmp_path: Path, as_root: None) -> Iterator[Path]:
    """A file system of 256 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"mount refused: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.root
@pytest.mark.parametrize("kind", [FileStore, SqliteStore])
def test_full_disk(small_disk: Path, kind: type[FileStore | SqliteStore]) -> None:
    """A full disk refuses commits and opens with what was there; with room again, commits go on."""
    path = small_disk / "store"
    with kind(path, FORMATS) as store:
        store.commit(OLD)
        ballast = small_disk / "ballast"
        with ballast.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError as error:
                assert error.errno == errno.ENOSPC  # noqa: PT017
        big: dict[str, Checkpoint] = {key: row(9, 40_000) for key in NEW}
        refused = 0
        for _ in range(3):
            try:
                store.commit(big)
            except StoreFailedError:
                refused += 1
        assert refused == 3
        assert store.read().values == OLD
    with kind(path, FORMATS) as store:
        assert store.read().is_whole
        assert store.read().values == OLD
        ballast.unlink()
        store.commit(NEW)
    with kind(path, FORMATS) as store:
        assert store.read().values == NEW


@pytest.mark.root
@pytest.mark.parametrize(
    ("kind", "spare"),
    [(FileStore, "store/.nodealloc.spare"), (SqliteStore, "store.spare")],
    ids=["files", "sqlite"],
)
def test_a_disk_that_somebody_fills_takes_small_commits(
    small_disk: Path, kind: type[FileStore | SqliteStore], spare: str
) -> None:
    """That it is to end has to be remembered before who fills it can be ended; one after another is."""
    with kind(small_disk / "store", FORMATS) as store:
        store.commit(OLD)
        with contextlib.suppress(OSError), (small_disk / "ballast").open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        for number in range(20):
            store.commit({"row.0": row(number), "row.1": row(number, 3_000)})
        store.commit({"row.0": None, "row.1": None, "row.2": row(2)})
        for number in range(100, 200):  # until what was kept is used up
            try:
                store.commit({f"row.{number}": row(number)})
            except StoreFailedError as error:
                assert "make room" in str(error)  # noqa: PT017
                break
        assert 105 < number
        (small_disk / "ballast").unlink()
        store.commit(OLD)
    assert (small_disk / spare).stat().st_blocks >= 128


@pytest.mark.root
@pytest.mark.parametrize("kind", [FileStore, SqliteStore])
def test_a_small_disk_takes_as_many_commits_as_one_wants(
    small_disk: Path, kind: type[FileStore | SqliteStore]
) -> None:
    """One key of 60 kB on 256 kB is written again and again: no log fills the disk with what is past."""
    path = small_disk / "store"
    with kind(path, FORMATS) as store:
        for number in range(30):
            store.commit({"row.1": row(number, 60_000)})
    with kind(path, FORMATS) as store:
        assert store.read().values == {"row.1": row(29, 60_000)}


@pytest.mark.root
@pytest.mark.parametrize("kind", [FileStore, SqliteStore])
def test_a_commit_that_was_too_large_keeps_no_room(
    small_disk: Path, kind: type[FileStore | SqliteStore]
) -> None:
    """What did not fit is refused as a full disk, each time; smaller commits and removals work at once."""
    path = small_disk / "store"
    with kind(path, FORMATS) as store:
        store.commit({"row.1": row(1, 60_000)})
        for _ in range(3):
            with pytest.raises(StoreFailedError, match="make room"):
                store.commit({"row.2": row(2, 500_000)})
            assert store.read().values == {"row.1": row(1, 60_000)}
        store.commit({"row.3": row(3)})
        store.commit({"row.1": None})
        store.commit({"row.2": row(2, 60_000)})
    with kind(path, FORMATS) as store:
        assert store.read().values == {"row.3": row(3), "row.2": row(2, 60_000)}


@pytest.mark.root
@pytest.mark.parametrize("kind", [FileStore, SqliteStore])
def test_no_commit_on_a_small_disk_keeps_a_removal_out(
    small_disk: Path, kind: type[FileStore | SqliteStore]
) -> None:
    """Whatever was taken and refused before: a removal works, at once and by the next process."""
    path = small_disk / "store"
    refused = 0
    for seed in range(8):
        numbers = random.Random(seed)
        with kind(path, FORMATS) as store:
            for number in range(30):
                some = {f"row.{numbers.randrange(6)}": numbers.choice([10, 3_000, 60_000]) for _ in range(3)}
                try:
                    store.commit({key: row(number, size) for key, size in some.items()})
                except StoreFailedError as error:
                    assert "the disk is full" in str(error) or "make room" in str(error)  # noqa: PT017
                    refused += 1
                store.commit(dict.fromkeys(sorted(store.read().values)[:1]))
        with kind(path, FORMATS) as store:
            store.commit(dict.fromkeys(store.read().values))
            assert store.read().values == {}
    assert refused > 8
