"""Stores in directories that others move, write or own: what is not ours is neither believed nor written."""

from __future__ import annotations

import contextlib
import os
import resource
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from typing_extensions import override

from nodealloc.checkpoint import (
    Checkpoint,
    Files,
    FileStore,
    Formats,
    JsonCheckpoint,
    SqliteStore,
    StoreBusyError,
    StoreFailedError,
)

FORMATS: Formats = {"row.*": JsonCheckpoint.unmarshal}
NOBODY = 65534

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def row(number: int, size: int = 10) -> JsonCheckpoint:
    """A record of some size."""
    return JsonCheckpoint(kind="row", version=1, value=[number, "x" * size])


MANY: dict[str, Checkpoint] = {"row.1": row(1), "row.2": row(2)}


@pytest.mark.parametrize("is_link", [False, True], ids=["directory", "link"])
def test_a_store_writes_the_directory_that_it_locked(tmp_path: Path, is_link: bool) -> None:
    """Moved away and replaced: commits go where the lock is, and the other directory is another store."""
    path = tmp_path / "store"
    with FileStore(path, FORMATS) as store:
        store.commit({"row.0": row(0)})
        path.rename(tmp_path / "moved")
        other = tmp_path / "other" if is_link else path
        other.mkdir(mode=0o700)
        if is_link:
            path.symlink_to(other)
        store.commit(MANY)
        store.commit({"row.0": None})
        assert list(other.iterdir()) == []
        with pytest.raises(StoreBusyError):
            FileStore(tmp_path / "moved", FORMATS)
        with FileStore(path, FORMATS) as second:
            assert second.read().values == {}
            second.commit({"row.9": row(9)})
    with FileStore(tmp_path / "moved", FORMATS) as store:
        assert store.read().values == MANY
        assert store.read().is_whole


@pytest.mark.parametrize("replace", [True, False], ids=["replaced", "gone"])
def test_a_database_that_was_moved_takes_no_commit(tmp_path: Path, replace: bool) -> None:
    """SQLite would go on in a file that nobody finds; the commit fails, and works once it is back."""
    (tmp_path / "folder").mkdir(mode=0o700)
    path = tmp_path / "folder" / "store"
    with SqliteStore(path, FORMATS) as store:
        store.commit({"row.1": row(1)})
        (tmp_path / "folder").rename(tmp_path / "moved")
        (tmp_path / "folder").mkdir(mode=0o700)
        if replace:
            SqliteStore(path, FORMATS).close()
        with pytest.raises(StoreFailedError, match="moved away or replaced"):
            store.commit({"row.1": row(2)})
        assert store.read().values == {"row.1": row(1)}
        if replace:
            for one in (tmp_path / "folder").iterdir():
                one.unlink()
        (tmp_path / "folder").rmdir()
        (tmp_path / "moved").rename(tmp_path / "folder")
        store.commit({"row.1": row(3)})
    with SqliteStore(path, FORMATS) as store:
        assert store.read().values == {"row.1": row(3)}


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702, 0o1777])
def test_a_directory_that_others_write_is_refused(tmp_path: Path, mode: int) -> None:
    """Whoever may put files there may put them under any key; nothing is made in it."""
    path = tmp_path / "store"
    path.mkdir()
    path.chmod(mode)
    with pytest.raises(StoreFailedError, match=f"mode is {mode:04o}.*chmod go-w"):
        FileStore(path, FORMATS)
    assert list(path.iterdir()) == []
    path.chmod(0o755)
    FileStore(path, FORMATS).close()


def test_a_folder_of_databases_may_be_as_tmp_is(tmp_path: Path) -> None:
    """Where nobody moves another's files each file is looked at; where anybody may, none is made."""
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(StoreFailedError, match="mode is 0777"):
        SqliteStore(folder / "store", FORMATS)
    assert list(folder.iterdir()) == []
    folder.chmod(0o1777)
    with SqliteStore(folder / "store", FORMATS) as store:
        store.commit(MANY)


@pytest.mark.parametrize("name", ["row.1", ".nodealloc.identity", ".nodealloc.lock"])
def test_a_file_that_others_write_is_not_believed(tmp_path: Path, name: str) -> None:
    """Opening is refused until somebody has looked at it; nothing is set aside for that."""
    with FileStore(tmp_path / "store", FORMATS) as store:
        store.commit(MANY)
    path = tmp_path / "store" / name
    path.touch()
    path.chmod(0o666)
    with pytest.raises(StoreFailedError, match=f"{name}.*mode is 0666"):
        FileStore(tmp_path / "store", FORMATS, identity=None)
    path.chmod(0o600)
    with FileStore(tmp_path / "store", FORMATS) as store:
        assert store.read().values == MANY


@needs_root
@pytest.mark.parametrize("name", ["", "row.1", ".nodealloc.lock"])
def test_what_belongs_to_another_user_is_not_believed(tmp_path: Path, name: str) -> None:
    """A directory, a key or a lock of somebody else's is refused by the owner's number."""
    with FileStore(tmp_path / "store", FORMATS) as store:
        store.commit(MANY)
    os.chown(tmp_path / "store" / name, NOBODY, NOBODY)
    with pytest.raises(StoreFailedError, match=f"belongs to user {NOBODY}"):
        FileStore(tmp_path / "store", FORMATS)


@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-journal", ".lock"])
def test_a_part_of_a_database_that_others_write_is_not_believed(tmp_path: Path, ending: str) -> None:
    """The file, its log and its lock are looked at before SQLite goes by them."""
    path = tmp_path / "store"
    with SqliteStore(path, FORMATS) as store:
        store.commit(MANY)
    part = Path(f"{path}{ending}")
    part.touch()
    part.chmod(0o666)
    with pytest.raises(StoreFailedError, match=f"store{ending}: .*mode is 0666"):
        SqliteStore(path, FORMATS)


def file_store(folder: Path) -> tuple[Callable[[], object], Path]:
    """How a file store is opened, and its lock."""
    return lambda: FileStore(folder, FORMATS), folder / ".nodealloc.lock"


def sqlite_store(folder: Path) -> tuple[Callable[[], object], Path]:
    """The same of a database."""
    return lambda: SqliteStore(folder / "store", FORMATS), folder / "store.lock"


@pytest.mark.parametrize("kind", [file_store, sqlite_store])
def test_a_lock_with_a_second_name_is_not_written(
    tmp_path: Path, kind: Callable[[Path], tuple[Callable[[], object], Path]]
) -> None:
    """What is hard-linked to the place of the lock keeps its content."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "store").mkdir()
    opened, lock = kind(tmp_path / "store")
    lock.hardlink_to(victim)
    with pytest.raises(StoreFailedError, match="2 names lead to it"):
        opened()
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("ending", ["-wal", "-shm", ".new-wal", ".new-shm"])
def test_a_log_with_a_second_name_is_not_written(tmp_path: Path, ending: str, is_new: bool) -> None:
    """What is hard-linked to the place of a database's log, or of a new one's, keeps its content."""
    if not is_new:
        SqliteStore(tmp_path / "store", FORMATS).close()
    victim = tmp_path / "victim"
    victim.write_text("precious")
    victim.chmod(0o600)
    (tmp_path / f"store{ending}").hardlink_to(victim)
    with contextlib.suppress(StoreFailedError), SqliteStore(tmp_path / "store", FORMATS) as store:
        store.commit(MANY)
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("ending", ["-wal", "-shm", ".new-wal", ".new-shm"])
def test_a_log_that_is_planted_while_a_database_is_opened_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """Between the look at what is there and SQLite's own."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    victim.chmod(0o600)
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect

    def planting(*args: object, **options: object) -> sqlite3.Connection:
        with contextlib.suppress(FileExistsError):
            (tmp_path / f"store{ending}").hardlink_to(victim)
        return connect(*args, **options)

    monkeypatch.setattr(sqlite3, "connect", planting)
    with contextlib.suppress(StoreFailedError), SqliteStore(tmp_path / "store", FORMATS) as store:
        store.commit(MANY)
    assert victim.read_text() == "precious"


def test_new_files_have_names_that_nobody_can_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name is made at random for each, and the file by nobody but this call."""
    made: list[tuple[str, int]] = []
    real = os.open

    def opening(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if ".new-" in str(path):
            made.append((path, flags))
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", opening)
    for folder in ("a", "b"):
        with FileStore(tmp_path / folder, FORMATS) as store:
            store.commit(MANY)
    assert len(made) == 6
    assert len({name for name, _ in made}) == 6
    assert all(flags & os.O_EXCL for _, flags in made)


def test_a_planted_new_file_is_not_written_through(tmp_path: Path) -> None:
    """A hard link under a name that a new file might take keeps its content, and gives its mode to no key."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    with FileStore(tmp_path / "store", FORMATS) as store:
        for number in range(1, 9):
            (tmp_path / "store" / f".nodealloc.new-{number}.row.1").hardlink_to(victim)
        store.commit({"row.1": row(1)})
    assert victim.read_text() == "precious"
    assert stat.S_IMODE((tmp_path / "store" / "row.1").stat().st_mode) == 0o600


def log_bytes(path: Path) -> int:
    """Length of SQLite's log."""
    return Path(f"{path}-wal").stat().st_size


def test_the_log_of_a_database_is_bounded(tmp_path: Path) -> None:
    """One key of 100 kB written again and again: the log stays near 4 MiB, the file near the data."""
    path = tmp_path / "store"
    longest = 0
    with SqliteStore(path, FORMATS) as store:
        for number in range(120):
            store.commit({"row.1": row(number, 100_000)})
            longest = max(longest, log_bytes(path))
        assert longest <= (1 << 22) + 200_000
        assert path.stat().st_size < 500_000


def test_the_log_is_folded_at_once_where_room_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk with less than a mebibyte left keeps no log between commits."""
    path = tmp_path / "store"
    with SqliteStore(path, FORMATS) as store:
        store.commit(MANY)
        assert log_bytes(path) > 0
        short = os.statvfs(tmp_path)
        few = os.statvfs_result([1, 1, *list(short)[2:4], 100_000, *list(short)[5:]])
        monkeypatch.setattr(os, "statvfs", lambda _path: few)
        store.commit({"row.1": row(3)})
        assert log_bytes(path) == 0


def test_a_log_that_an_earlier_life_left_is_folded_at_start(tmp_path: Path) -> None:
    """What a killed program left in the log is in the file when the next one has opened it."""
    path = tmp_path / "store"
    SqliteStore(path, FORMATS).close()
    store = SqliteStore(path, FORMATS)
    store.commit(MANY)
    killed = tmp_path / "killed"
    for ending in ("", "-wal"):
        Path(f"{killed}{ending}").write_bytes(Path(f"{path}{ending}").read_bytes())
    store.close()
    with SqliteStore(killed, FORMATS) as again:
        assert log_bytes(killed) == 0
        assert again.read().values == MANY


def test_a_commit_waits_for_nobody_who_looks(tmp_path: Path) -> None:
    """A reader that holds the log up keeps it from being folded, and no commit from being made."""
    path = tmp_path / "store"
    with SqliteStore(path, FORMATS) as store:
        store.commit(MANY)
        reader = sqlite3.connect(path)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM checkpoints").fetchall()
        for number in range(50):
            store.commit({"row.1": row(number, 100_000)})
        assert log_bytes(path) > 1 << 22
        reader.close()
        store.commit({"row.1": row(21)})
        assert log_bytes(path) == 0


@pytest.mark.parametrize(
    ("step", "code", "remedy"),
    [
        ("sqlite", sqlite3.SQLITE_FULL, "the disk is full: make room"),
        ("write", 13, "readable and writable"),
        ("sqlite", sqlite3.SQLITE_READONLY, "readable and writable"),
        ("sqlite", sqlite3.SQLITE_IOERR, "make room or mend the disk"),
    ],
)
def test_codes_of_sqlite_are_not_those_of_the_system(step: str, code: int, remedy: str) -> None:
    """13 is a full disk to SQLite and a missing permission to the kernel."""
    assert remedy in str(StoreFailedError("store", step, code, "reason"))


@pytest.mark.parametrize(
    "content",
    [b"root:x:0:0:root:/root:/bin/bash\n", b"", b"SQLite format 3\0" + b"\0" * 500],
    ids=["text", "nothing", "somebody's database"],
)
def test_a_link_to_what_is_no_store_is_refused(tmp_path: Path, content: bytes) -> None:
    """It was moved away as damaged, and a database put in its place: who made a link chose which."""
    others, mine = tmp_path / "others", tmp_path / "mine"
    others.mkdir()
    mine.mkdir()
    precious = others / "precious"
    precious.write_bytes(content)
    (mine / "state.db").symlink_to(precious)
    with pytest.raises(StoreFailedError, match="which is no store"):
        SqliteStore(mine / "state.db", FORMATS)
    assert precious.read_bytes() == content
    assert sorted(one.name for one in others.iterdir()) == ["precious"], "nothing is left beside it"


def test_a_link_to_a_store_is_followed(tmp_path: Path) -> None:
    """A disk of its own for the state is an ordinary thing."""
    (tmp_path / "disk").mkdir()
    with SqliteStore(tmp_path / "disk" / "state.db", FORMATS) as store:
        store.commit(MANY)
    (tmp_path / "state.db").symlink_to("disk/state.db")
    for _ in range(2):
        with SqliteStore(tmp_path / "state.db", FORMATS) as store:
            assert store.read().values == MANY
            store.commit({"row.1": row(1)})


def test_a_database_of_a_later_release_is_left_as_it_is(tmp_path: Path) -> None:
    """Its tables may be others: it would be taken for damaged, and all that it holds for lost."""
    path = tmp_path / "store"
    with SqliteStore(path, FORMATS) as store:
        store.commit(MANY)
    with contextlib.closing(sqlite3.connect(path)) as later:
        later.execute("ALTER TABLE checkpoints RENAME TO keys")
        later.execute("PRAGMA user_version=2")
    with pytest.raises(StoreFailedError, match=r"its layout is 2, and 1 is known here.*take the release"):
        SqliteStore(path, FORMATS)
    with contextlib.closing(sqlite3.connect(path)) as later:
        assert later.execute("SELECT count(*) FROM keys").fetchone() == (2,)
    assert not list(tmp_path.glob("*damaged*"))


def test_a_file_that_cannot_be_replaced_is_named_the_same_each_time(tmp_path: Path) -> None:
    """Whoever passes on what is new about a fault passed on each try: the new file has another name."""
    with FileStore(tmp_path / "store", FORMATS) as store:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        try:
            for _ in range(2):
                with pytest.raises(StoreFailedError) as refused:
                    store.commit({"row.1": JsonCheckpoint(kind="a", version=1, value="x" * 2000)})
                assert refused.value.path == str(tmp_path / "store" / "row.1")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.skipif("sys.platform != 'linux'")
@pytest.mark.parametrize("kind", [stat.S_IFIFO, stat.S_IFCHR])
def test_what_is_no_file_is_not_opened(tmp_path: Path, kind: int) -> None:
    """That of a device may do what the device is for, that of a pipe lets its writer go on."""
    opened: list[str] = []

    class Watching(Files):
        """Notes what is opened for more than to look."""

        @override
        def open(self, path: str, flags: int, mode: int = 0o600, *, dir_fd: int | None = None) -> int:
            """Open."""
            if not flags & os.O_PATH:
                opened.append(path)
            return super().open(path, flags, mode, dir_fd=dir_fd)

    if kind == stat.S_IFCHR and os.geteuid() != 0:
        pytest.skip("only root makes devices")
    os.mknod(tmp_path / "row.1", kind | 0o600, os.makedev(1, 5))
    with FileStore(tmp_path, FORMATS, files=Watching()) as store:
        (damage,) = store.read().damaged
    assert (damage.key, damage.reason) == ("row.1", "unreadable: no regular file")
    assert "row.1" not in opened
