"""A writing process is killed again and again; its successor reads whole commits, none lost."""

from __future__ import annotations

import itertools
import os
import random
import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nodealloc.checkpoint import (
    Checkpoint,
    FileStore,
    Formats,
    JsonCheckpoint,
    SqliteStore,
    StoreBusyError,
    StoreFailedError,
)
from tests.often import often

FORMATS: Formats = {"row.*": JsonCheckpoint.unmarshal}
ROWS = 5
Opened = Callable[[Path], "FileStore | SqliteStore"]

pytestmark = [pytest.mark.real, pytest.mark.forks]


def rows(number: int) -> dict[str, Checkpoint | None]:
    """One commit: all rows carry its number; every third forgets a row that is its own."""
    bulk = "x" * (number * 37 % 900)
    record = JsonCheckpoint(kind="row", version=1, value={"commit": number, "bulk": bulk})
    changes: dict[str, Checkpoint | None] = {f"row.{n}": record for n in range(ROWS)}
    changes["row.extra"] = None if number % 3 else record
    return changes


def write_for_ever(opened: Opened, path: Path, first: int, report: int) -> None:
    """Commit after commit, each told to the parent once it has returned."""
    store = opened(path)
    number = first
    while True:
        store.commit(rows(number))
        os.write(report, number.to_bytes(4, "big"))
        number += 1


def read_number(opened: Opened, path: Path) -> int:
    """The commit that the rows carry; they have to agree."""
    with opened(path) as store:
        contents = store.read()
    assert contents.is_whole
    numbers: set[int] = set()
    for value in contents.values.values():
        assert isinstance(value, JsonCheckpoint)
        assert isinstance(value.value, dict)
        numbers.add(value.value["commit"])
    if not numbers:
        return 0
    assert len(numbers) == 1, "a commit is mixed"
    number = numbers.pop()
    expected = {key for key, value in rows(number).items() if value is not None}
    assert set(contents.values) == expected, "a commit is not whole"
    return number


def kill_one(opened: Opened, path: Path, first: int, after_s: float) -> int:
    """Let a child write and kill it; answers with the last commit that it told of."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            write_for_ever(opened, path, first, writing)
        finally:
            os._exit(1)
    os.close(writing)
    told = os.read(reading, 4)
    assert told, "the child could not open the store"
    time.sleep(after_s)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while part := os.read(reading, 1 << 16):
        told = (told + part)[-4:]
    os.close(reading)
    return int.from_bytes(told[-4:], "big")


def kills(opened: Opened, path: Path, count: int) -> tuple[int, int]:
    """Kill `count` children; answers with the commits made, and how many came up that were not told."""
    rng = random.Random(7)
    last = untold = 0
    for _ in range(count):
        told = kill_one(opened, path, last + 1, rng.random() * 0.004)
        found = read_number(opened, path)
        assert told <= found <= told + 1, "a commit is lost"
        untold += found - told
        last = found
    return last, untold


@pytest.mark.slow
@pytest.mark.parametrize("kind", [FileStore, SqliteStore])
def test_a_thousand_kills(kind: type[FileStore | SqliteStore], tmp_path: Path) -> None:
    """1,000 SIGKILLs for each store: 0 lost, 0 mixed, 0 unreadable."""
    count = often(1000)
    commits, _ = kills(lambda path: kind(path, FORMATS), tmp_path / "store", count)
    assert commits > count


@pytest.mark.parametrize("kind", [FileStore, SqliteStore])
def test_some_kills(kind: type[FileStore | SqliteStore], tmp_path: Path) -> None:
    """The same with 25 kills, for every run."""
    commits, _ = kills(lambda path: kind(path, FORMATS), tmp_path / "store", 25)
    assert commits >= 25


@pytest.mark.parametrize("kind", [FileStore, SqliteStore])
def test_owner_in_another_process(kind: type[FileStore | SqliteStore], tmp_path: Path) -> None:
    """A second process is told the pid of the first, and may open the store once that was killed."""
    path = tmp_path / "store"
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            write_for_ever(lambda at: kind(at, FORMATS), path, 1, writing)
        finally:
            os._exit(1)
    os.close(writing)
    assert os.read(reading, 4)
    with pytest.raises(StoreBusyError) as caught:
        kind(path, FORMATS)
    assert caught.value.pid == child
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reading)
    kind(path, FORMATS).close()


def test_short_transactions_of_several_processes(tmp_path: Path) -> None:
    """Programs that wait for the lock, read, decide and commit lose no update."""
    path = tmp_path / "store"
    children: list[int] = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            try:
                for _ in range(25):
                    with FileStore(path, FORMATS, wait=True) as store:
                        held = store.read().get("row.sum", JsonCheckpoint)
                        value = held.value if held is not None else 0
                        assert isinstance(value, int)
                        record = JsonCheckpoint(kind="sum", version=1, value=value + 1)
                        store.commit({"row.sum": record, "row.twin": record})
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
    with FileStore(path, FORMATS) as store:
        assert store.read().values["row.sum"] == JsonCheckpoint(kind="sum", version=1, value=100)


def test_power_cut_of_a_database(tmp_path: Path) -> None:
    """A WAL that lost any part of what was not flushed is the old or the new content, whole."""
    source = tmp_path / "store"
    rng = random.Random(3)
    store = SqliteStore(source, FORMATS)
    store.commit(rows(1))
    log = Path(f"{source}-wal")
    tried = 0
    for number in range(2, 12):
        before = log.read_bytes()
        store.commit(rows(number))
        after = log.read_bytes()
        database = source.read_bytes()
        assert len(after) >= len(before)
        for _ in range(12):
            image = bytearray(after)
            for page in range(len(before), len(after), 512):
                fate = rng.randrange(4)
                if fate == 0:
                    image[page : page + 512] = bytes(len(image[page : page + 512]))
                elif fate == 1:
                    image[page : page + 512] = rng.randbytes(len(image[page : page + 512]))
            del image[rng.randrange(len(before), len(after) + 1) :]
            copy = tmp_path / f"copy-{tried}"
            copy.write_bytes(database)
            Path(f"{copy}-wal").write_bytes(image)
            assert read_number(lambda path: SqliteStore(path, FORMATS), copy) in {number - 1, number}
            for path in tmp_path.glob(f"{copy.name}*"):
                path.unlink()
            tried += 1
    store.close()
    assert tried == 120


def test_power_cut_while_a_database_folds_its_log(tmp_path: Path) -> None:
    """Pages that were half moved from the WAL into the file are read from the WAL."""
    source = tmp_path / "store"
    store = SqliteStore(source, FORMATS)
    for number in range(1, 20):
        store.commit(rows(number))
    log, old = Path(f"{source}-wal").read_bytes(), source.read_bytes()
    store._connection.execute("PRAGMA wal_checkpoint(FULL)")
    new = source.read_bytes()
    store.close()
    rng = random.Random(5)
    for trial in range(30):
        image = bytearray(old.ljust(len(new), b"\0"))
        for page in range(0, len(new), 512):
            if rng.random() < 0.5:
                image[page : page + 512] = new[page : page + 512]
        copy = tmp_path / f"copy-{trial}"
        copy.write_bytes(image)
        Path(f"{copy}-wal").write_bytes(log)
        assert read_number(lambda path: SqliteStore(path, FORMATS), copy) == 19


def test_database_that_may_not_grow(tmp_path: Path) -> None:
    """A full medium refuses the commit, names it retryable, and changes nothing."""
    path = tmp_path / "store"
    with SqliteStore(path, FORMATS) as store:
        store.commit(rows(1))
        pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count={pages}")
        big = JsonCheckpoint(kind="row", version=1, value="x" * 100_000)
        with pytest.raises(StoreFailedError, match="full") as caught:
            store.commit({**rows(2), "row.big": big})
        assert caught.value.after_s > 0
        assert store.read().values == {k: v for k, v in rows(1).items() if v is not None}
        store._connection.execute(f"PRAGMA max_page_count={pages + 100}")
        store.commit(rows(2))
    assert read_number(lambda at: SqliteStore(at, FORMATS), path) == 2


def test_database_statements_stopped_anywhere(tmp_path: Path) -> None:
    """A commit that SQLite stops at any of its steps leaves the old content."""
    path = tmp_path / "store"
    stopped = 0
    with SqliteStore(path, FORMATS) as store:
        store.commit(rows(1))
        for at in range(1, 4000, 5):
            steps = itertools.count(1)
            store._connection.set_progress_handler(lambda: next(steps) == at, 1)  # noqa: B023
            failure: StoreFailedError | None = None
            try:
                store.commit(rows(2))
            except StoreFailedError as error:
                failure = error
            store._connection.set_progress_handler(None, 0)
            expected = rows(2) if failure is None else rows(1)
            assert store.read().values == {k: v for k, v in expected.items() if v is not None}
            if failure is None:
                break
            assert isinstance(failure.__cause__, sqlite3.Error)
            stopped += 1
    assert stopped > 3
    assert read_number(lambda at: SqliteStore(at, FORMATS), path) == 2
