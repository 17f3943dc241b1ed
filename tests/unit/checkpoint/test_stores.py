"""One contract, three stores; and what each says when it cannot serve."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from nodealloc.checkpoint import (
    CPU_STATE,
    KUBELET_FORMATS,
    CpuManagerState,
    FileStore,
    Formats,
    Identity,
    JsonCheckpoint,
    MemoryStore,
    Since,
    SqliteStore,
    Store,
    StoreBusyError,
    StoreFailedError,
    inspect,
    this_machine,
)
from nodealloc.testing.checkpoint import FaultyFiles, InjectedFault, SimulatedDisk, check_store

FORMATS: Formats = {"row.*": JsonCheckpoint.unmarshal}
Opener = Callable[..., "FileStore | SqliteStore"]


def row(number: int) -> JsonCheckpoint:
    """A record."""
    return JsonCheckpoint(kind="row", version=1, value=number)


@pytest.fixture(params=[FileStore, SqliteStore])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Opens one store on disk, again and again."""
    kind: type[FileStore | SqliteStore] = request.param

    def opened(formats: Formats = FORMATS, **settings: object) -> FileStore | SqliteStore:
        return kind(tmp_path / "store", formats, **settings)  # type: ignore[arg-type]

    return opened


def test_memory_store_keeps_the_contract() -> None:
    """MemoryStore passes the check of Store, a restart being a store over the same bytes."""
    stores: list[MemoryStore] = []
    extra: dict[str, bytes] = {}

    def reopen(formats: Formats) -> Store:
        data = {**(stores[-1].data() if stores else {}), **extra}
        extra.clear()
        stores.append(MemoryStore(formats, data=data))
        return stores[-1]

    check_store(reopen, damage=extra.__setitem__)


def test_file_store_keeps_the_contract(tmp_path: Path) -> None:
    """FileStore passes the check of Store."""

    def damage(key: str, data: bytes) -> None:
        (tmp_path / "store" / key).write_bytes(data)

    check_store(lambda formats: FileStore(tmp_path / "store", formats), damage=damage)


def test_file_store_keeps_the_contract_on_a_simulated_disk() -> None:
    """The simulated disk behaves as a directory does."""
    disk = SimulatedDisk()
    check_store(lambda formats: FileStore(disk.path, formats, files=disk))


def test_sqlite_store_keeps_the_contract(tmp_path: Path) -> None:
    """SqliteStore passes the check of Store."""
    path = tmp_path / "store"

    def damage(key: str, data: bytes) -> None:
        with sqlite3.connect(path) as connection:
            connection.execute("INSERT OR REPLACE INTO checkpoints VALUES (?, ?)", (key, data))
        connection.close()

    check_store(lambda formats: SqliteStore(path, formats), damage=damage)


def test_second_owner_is_refused_with_the_pid(opener: Opener) -> None:
    """A store that is held names its owner, and opens once it is given back."""
    first = opener()
    with pytest.raises(StoreBusyError) as caught:
        opener()
    assert caught.value.pid == os.getpid()
    assert str(os.getpid()) in str(caught.value)
    first.close()
    opener().close()


def test_files_belong_to_the_owner_alone(opener: Opener, tmp_path: Path) -> None:
    """Whatever a store writes has mode 0600."""
    with opener() as store:
        store.commit({"row.1": row(1), "row.2": row(2)})
        found = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert len(found) > 2
        assert {stat.S_IMODE(path.stat().st_mode) for path in found} == {0o600}


def test_restart_reboot_and_other_hardware(opener: Opener) -> None:
    """The identity of the last commit tells what happened since."""
    here, rebooted = Identity(boot_id="1", machine="a"), Identity(boot_id="2", machine="a")
    moved = Identity(boot_id="3", machine="b")
    found: list[Since] = []
    for identity in (here, here, rebooted, rebooted, moved, None):
        with opener(identity=identity) as store:
            found.append(store.read().since)
            store.commit({"row.1": row(1)})
    assert found == [
        Since.NEW,
        Since.RESTART,
        Since.REBOOT,
        Since.RESTART,
        Since.OTHER_MACHINE,
        Since.NEW,
    ]


def test_a_store_in_memory_is_told_who_wrote_its_bytes() -> None:
    """Its bytes by themselves do not tell a restart from a reboot."""
    here, rebooted = Identity(boot_id="1", machine="a"), Identity(boot_id="2", machine="a")
    first = MemoryStore(FORMATS, identity=here)
    first.commit({"row.1": row(1)})
    writer = first.read().writer
    assert writer == here
    for identity, since in ((here, Since.RESTART), (rebooted, Since.REBOOT)):
        again = MemoryStore(FORMATS, data=first.data(), identity=identity, writer=writer)
        assert (again.read().since, again.read().values) == (since, {"row.1": row(1)})
    assert MemoryStore(FORMATS, data=first.data(), identity=here).read().since is Since.NEW


def test_damage_outlives_a_crash_before_it_is_rebuilt(opener: Opener, tmp_path: Path) -> None:
    """A key that was lost stays on the list until somebody commits it, whatever else is committed."""
    with opener() as store:
        store.commit({"row.1": row(1), "row.2": row(2)})
    path = tmp_path / "store"
    if path.is_dir():
        (path / "row.1").write_bytes(b"")
    else:
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE checkpoints SET data = x'' WHERE key = 'row.1'")
        connection.close()
    for _ in range(3):
        with opener() as store:
            contents = store.read()
            assert not contents.is_whole
            assert [entry.key for entry in contents.damaged] == ["row.1"]
            assert "nothing is stored" in contents.damaged[0].reason
            store.commit({"row.3": row(3)})
    with opener() as store:
        store.commit({"row.1": None})
        assert store.read().is_whole
    with opener() as store:
        assert store.read().is_whole
        assert set(store.read().values) == {"row.2", "row.3"}


def test_strangers_are_left_alone(tmp_path: Path) -> None:
    """A directory may hold other files, as the kubelet's does."""
    (tmp_path / "config.yaml").write_text("kind: KubeletConfiguration")
    (tmp_path / "pods").mkdir()
    (tmp_path / ".hidden").write_text("x")
    with FileStore(tmp_path, KUBELET_FORMATS) as store:
        assert store.read().values == {}
        assert store.read().is_whole
    assert (tmp_path / "config.yaml").read_text() == "kind: KubeletConfiguration"
    assert (tmp_path / ".hidden").exists()


def test_rows_of_a_later_release_are_left_to_it(opener: Opener) -> None:
    """Whoever goes back to an earlier one, and on again, finds what that one has no format for."""
    both: Formats = {**FORMATS, "later.*": JsonCheckpoint.unmarshal}
    with opener(both) as store:
        store.commit({"row.1": row(1), "later.1": row(7)})
    with opener() as store:
        assert store.read().values == {"row.1": row(1)}
        assert store.read().is_whole
        store.commit({"row.1": row(2)})
    with opener(both) as store:
        assert store.read().values == {"row.1": row(2), "later.1": row(7)}
        assert store.read().is_whole


def test_rows_without_a_format_are_left_alone_in_memory_too() -> None:
    """One contract: they are no damage, and a restart has them still."""
    data = {"row.1": row(1).marshal(), "later.1": b"?"}
    store = MemoryStore(FORMATS, data=data)
    store.commit({"row.1": None})
    assert store.read().is_whole
    assert store.data() == {"later.1": b"?"}


def test_leftovers_are_cleaned_at_start(tmp_path: Path) -> None:
    """New files of a process that died are gone after the next start."""
    with FileStore(tmp_path, FORMATS) as store:
        store.commit({"row.1": row(1)})
    (tmp_path / ".nodealloc.new-7.row.1").write_bytes(b"half")
    FileStore(tmp_path, FORMATS).close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".nodealloc.lock",
        ".nodealloc.spare",
        "row.1",
    ]


def test_a_key_that_is_a_directory_is_damage(tmp_path: Path) -> None:
    """What cannot be read as a file is moved aside like any damage."""
    (tmp_path / "row.1").mkdir()
    (tmp_path / "row.2").symlink_to("/etc/hostname")
    with FileStore(tmp_path, FORMATS) as store:
        assert [entry.key for entry in store.read().damaged] == ["row.1", "row.2"]
        store.commit({"row.1": row(1), "row.2": row(2)})
    with FileStore(tmp_path, FORMATS) as store:
        assert store.read().values == {"row.1": row(1), "row.2": row(2)}


def pipe(path: Path) -> None:
    """A name that waits for a writer."""
    os.mkfifo(path)


def link(path: Path) -> None:
    """A name that leads nowhere."""
    path.symlink_to("/nonexistent")


def full_folder(path: Path) -> None:
    """A name that cannot simply be removed."""
    path.mkdir()
    (path / "x").write_text("x")


def bound(path: Path) -> None:
    """A name that answers to `connect` only."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


STRANGERS = [pipe, link, full_folder, bound]


@pytest.mark.parametrize("put", STRANGERS)
@pytest.mark.parametrize(
    ("name", "lost"),
    [
        ("row.1", "row.1"),
        (".nodealloc.identity", ""),
        (".nodealloc.commit", "*"),
        (".nodealloc.new-1.row.2", ""),
        (".nodealloc.damaged-1.row.7", "row.7"),
    ],
)
def test_what_is_no_file_stops_no_start(
    name: str, lost: str, put: Callable[[Path], None], tmp_path: Path
) -> None:
    """Under a key, or a name of the store's own: set aside, and the next commit works."""
    here = Identity(boot_id="1", machine="a")
    with FileStore(tmp_path, FORMATS, identity=here) as store:
        store.commit({"row.1": row(1), "row.2": row(2)})
    (tmp_path / name).unlink(missing_ok=True)
    put(tmp_path / name)
    with FileStore(tmp_path, FORMATS, identity=here) as store:
        assert [one.key for one in store.read().damaged] == ([lost] if lost else [])
        assert store.read().get("row.2", JsonCheckpoint) == row(2)
        store.commit({"row.1": row(3), "row.2": row(4), "row.7": row(7)})
    with FileStore(tmp_path, FORMATS, identity=here) as store:
        assert store.read().is_whole
        assert store.read().since is Since.RESTART
        assert store.read().values == {"row.1": row(3), "row.2": row(4), "row.7": row(7)}


@pytest.mark.parametrize("put", STRANGERS)
@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-journal"])
def test_sqlite_is_kept_from_what_is_no_file(
    put: Callable[[Path], None], ending: str, tmp_path: Path
) -> None:
    """Refused by name, before SQLite waits for a pipe or writes through a link."""
    path = tmp_path / "store"
    with SqliteStore(path, FORMATS) as store:
        store.commit({"row.1": row(1)})
    Path(f"{path}{ending}").unlink(missing_ok=True)
    put(Path(f"{path}{ending}"))
    with pytest.raises(StoreFailedError, match=f"store{ending}: ") as caught:
        SqliteStore(path, FORMATS)
    assert "move it away" in str(caught.value) or "mount" in str(caught.value)


def test_links_to_one_database_share_its_lock(tmp_path: Path) -> None:
    """Whoever comes by another name is refused; what belongs to the file stands beside it."""
    for name in ("real", "first", "second"):
        (tmp_path / name).mkdir()
    SqliteStore(tmp_path / "real" / "store", FORMATS).close()
    for name in ("first", "second"):
        (tmp_path / name / "link").symlink_to("../real/store")
    with SqliteStore(tmp_path / "first" / "link", FORMATS) as store:
        with pytest.raises(StoreBusyError):
            SqliteStore(tmp_path / "second" / "link", FORMATS)
        store.commit({"row.1": row(1)})
    with SqliteStore(tmp_path / "second" / "link", FORMATS) as store:
        assert store.read().values == {"row.1": row(1)}
    assert [path.name for path in (tmp_path / "first").iterdir()] == ["link"]


def test_damage_that_was_settled_stays_so_by_another_spelling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path and an absolute one name the same folders of damage."""
    monkeypatch.chdir(tmp_path)
    Path("store").write_bytes(b"garbage")
    with SqliteStore("store", FORMATS) as store:
        assert [one.key for one in store.read().damaged] == ["*"]
        store.commit({"row.1": row(1)})
    with SqliteStore(tmp_path / "store", FORMATS) as store:
        assert store.read().is_whole


def test_a_store_stays_where_it_was_opened(
    opener: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that goes elsewhere, and a link that is turned meanwhile, take no commit along."""
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    opener().close()
    (tmp_path / "store").rename(tmp_path / "old" / "store")
    (tmp_path / "store").symlink_to("old/store")
    kind = FileStore if (tmp_path / "old" / "store").is_dir() else SqliteStore
    monkeypatch.chdir(tmp_path)
    with kind("store", FORMATS) as store:
        monkeypatch.chdir(tmp_path / "new")
        (tmp_path / "store").unlink()
        (tmp_path / "store").symlink_to("new")
        store.commit({"row.1": row(1), "row.2": row(2)})
        if isinstance(store, SqliteStore):
            store._connection.close()
        store.commit({"row.1": row(3)})
    with kind(tmp_path / "old" / "store", FORMATS) as store:
        assert store.read().values == {"row.1": row(3), "row.2": row(2)}
    assert not list((tmp_path / "new").iterdir())


def test_a_file_without_end_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gap of a terabyte under a key takes neither the memory nor the start; no commit makes one."""
    monkeypatch.setattr("nodealloc.checkpoint._directory.LARGEST", 1 << 20)
    with FileStore(tmp_path, FORMATS) as store:
        store.commit({"row.1": row(1)})
    with (tmp_path / "row.2").open("wb") as file:
        file.truncate(1 << 40)
    with FileStore(tmp_path, FORMATS) as store:
        assert [one.key for one in store.read().damaged] == ["row.2"]
        with pytest.raises(StoreFailedError, match="store less under one key"):
            store.commit({"row.2": JsonCheckpoint(kind="row", version=1, value="x" * (1 << 20))})
        assert store.read().values == {"row.1": row(1)}


def test_looking_waits_for_no_pipe(tmp_path: Path) -> None:
    """An operator sees the name and why it is not read."""
    os.mkfifo(tmp_path / CPU_STATE)
    (finding,) = inspect(tmp_path)
    assert finding.reason == "unreadable: no regular file"
    with pytest.raises(StoreFailedError, match="no regular file"):
        inspect(tmp_path / CPU_STATE)


def test_a_damaged_record_of_a_commit_is_everybodys_damage(tmp_path: Path) -> None:
    """When the record cannot be read, any key may be older than it should be."""
    with FileStore(tmp_path, FORMATS) as store:
        store.commit({"row.1": row(1)})
    (tmp_path / ".nodealloc.commit").write_bytes(b"{}")
    with FileStore(tmp_path, FORMATS) as store:
        assert [entry.key for entry in store.read().damaged] == ["*"]
        store.commit({"row.1": row(2)})
        assert store.read().is_whole
    with FileStore(tmp_path, FORMATS) as store:
        assert store.read().is_whole


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\x00" + bytes(4096)])
def test_an_unreadable_database_is_set_aside_whole(tmp_path: Path, content: bytes) -> None:
    """A file that SQLite cannot read, an empty one included, is never taken for an empty store."""
    path = tmp_path / "store"
    with SqliteStore(path, FORMATS) as store:
        store.commit({"row.1": row(1)})
    path.write_bytes(content)
    for _ in range(2):
        with SqliteStore(path, FORMATS) as store:
            contents = store.read()
            assert [entry.key for entry in contents.damaged] == ["*"]
            assert (Path(contents.damaged[0].kept_as) / "store").read_bytes() == content
    with SqliteStore(path, FORMATS) as store:
        store.commit({"row.1": row(2)})
    with SqliteStore(path, FORMATS) as store:
        assert store.read().is_whole
        assert store.read().values == {"row.1": row(2)}


def test_a_database_cut_in_the_middle_is_reported(tmp_path: Path) -> None:
    """A database that lost its end, or pages in its middle, is damage, or whole; never silently less."""
    path = tmp_path / "store"
    rows = {f"row.{n}": row(n) for n in range(500)}
    with SqliteStore(path, FORMATS) as store:
        store.commit(rows)
    whole = path.read_bytes()
    assert len(whole) > 8 * 4096
    for cut in range(1, len(whole) // 4096):
        for damaged in (
            whole[: cut * 4096 + 100],
            whole[: cut * 4096] + bytes(4096) + whole[(cut + 1) * 4096 :],
        ):
            path.write_bytes(damaged)
            with SqliteStore(path, FORMATS) as store:
                contents = store.read()
                assert not contents.is_whole or contents.values == rows
                store.commit({})
            path.unlink()


def test_unchanged_bytes_are_not_written_again(tmp_path: Path) -> None:
    """A commit of what is stored already touches nothing."""
    with FileStore(tmp_path, FORMATS) as store:
        store.commit({"row.1": row(1)})
        before = (tmp_path / "row.1").stat().st_ino
        store.commit({"row.1": row(1)})
        assert (tmp_path / "row.1").stat().st_ino == before


def test_kubelet_file_is_the_kubelets(tmp_path: Path) -> None:
    """A state that is committed stands in the kubelet's file, under the kubelet's name."""
    with FileStore(tmp_path, KUBELET_FORMATS) as store:
        store.commit({"cpu_manager_state": CpuManagerState(policy_name="none", default_cpuset="0-1")})
    found = (tmp_path / "cpu_manager_state").read_bytes()
    assert found == b'{"policyName":"none","defaultCpuSet":"0-1","checksum":3328944622}'


def test_a_missing_parent_is_an_error_that_may_be_retried(tmp_path: Path) -> None:
    """A store in a folder that is not there says what and where."""
    with pytest.raises(StoreFailedError, match="absent"):
        FileStore(tmp_path / "absent" / "store", FORMATS)
    with pytest.raises(StoreFailedError, match="absent"):
        SqliteStore(tmp_path / "absent" / "store", FORMATS)


def test_wrong_kinds_are_named(tmp_path: Path) -> None:
    """Asking for another kind than the formats give is the caller's fault."""
    with FileStore(tmp_path, FORMATS) as store:
        store.commit({"row.1": row(1)})
        contents = store.read()
    assert contents.get("row.1", JsonCheckpoint) == row(1)
    assert contents.get("row.2", JsonCheckpoint) is None
    assert contents.rows("row.", JsonCheckpoint) == {"row.1": row(1)}
    with pytest.raises(TypeError, match="CpuManagerState"):
        contents.get("row.1", CpuManagerState)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO])
def test_a_machine_that_cannot_be_read_is_no_other_one(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Whoever forgets on another machine, or after a boot, what he granted would do so with all running."""
    real, calls, failing = Path.read_text, 0, -1

    def fail(self: Path, *given: str, **more: str) -> str:
        nonlocal calls
        calls += 1
        if calls - 1 == failing:
            raise OSError(number, os.strerror(number), str(self))
        return real(self, *given, **more)

    monkeypatch.setattr(Path, "read_text", fail)
    here = this_machine()
    assert calls > 2
    for failing in range(calls):  # noqa: B007 - read by what stands in the place of the call
        calls = 0
        with pytest.raises(StoreFailedError, match=os.strerror(number)) as caught:
            this_machine()
        assert caught.value.code == number
        assert ("open more files" in str(caught.value)) is (number == errno.EMFILE)
    failing = -1
    assert this_machine() == here


def test_this_machine_is_the_same_twice(tmp_path: Path) -> None:
    """The identity is stable, and another boot changes the boot id alone."""
    assert this_machine() == this_machine()
    boot = tmp_path / "proc/sys/kernel/random/boot_id"
    boot.parent.mkdir(parents=True)
    boot.write_text("one\n")
    first = this_machine(tmp_path)
    boot.write_text("two\n")
    second = this_machine(tmp_path)
    assert (first.boot_id, second.boot_id) == ("one", "two")
    assert first.machine == second.machine


def test_a_copy_put_back_by_hand_ends_the_damage(opener: Opener, tmp_path: Path) -> None:
    """A good copy under the key's name is taken, and its damage does not come back when the key goes."""
    path = tmp_path / "store"

    def place(data: bytes) -> None:
        if path.is_dir():
            (path / "row.1").write_bytes(data)
            return
        with sqlite3.connect(path) as connection:
            connection.execute("INSERT OR REPLACE INTO checkpoints VALUES ('row.1', ?)", (data,))
        connection.close()

    opener().close()
    place(b"torn")
    with opener() as store:
        assert not store.read().is_whole
    place(row(1).marshal())
    with opener() as store:
        assert store.read().is_whole
        assert store.read().values == {"row.1": row(1)}
        store.commit({"row.1": None})
    with opener() as store:
        assert store.read().is_whole


@pytest.mark.parametrize("value", [None, row(2)])
def test_damage_that_cannot_be_moved_aside_is_still_settled(value: JsonCheckpoint | None) -> None:
    """On a disk that refuses renames at start, the damaged file stays, and goes when its key is committed."""
    disk = SimulatedDisk({"row.1": b"torn", "row.2": row(1).marshal()})
    refusing = [True]
    faulty = FaultyFiles(
        disk, lambda _, name: InjectedFault(code=errno.EROFS) if name == "rename" and refusing[0] else None
    )
    with FileStore(disk.path, FORMATS, files=faulty) as store:
        assert [entry.kept_as for entry in store.read().damaged] == [f"{disk.path}/row.1"]
        refusing[0] = False
        store.commit({"row.1": value})
        assert store.read().is_whole
    with FileStore(disk.path, FORMATS, files=disk) as store:
        assert store.read().is_whole
        assert store.read().get("row.1", JsonCheckpoint) == value


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.EMFILE, errno.EACCES])
@pytest.mark.parametrize("step", ["open", "read"])
def test_a_file_that_cannot_be_read_now_is_no_damage(step: str, code: int) -> None:
    """It may be readable a second later: the start is refused, nothing is moved, and the next one has all."""
    contents = {"row.1": row(1).marshal(), "row.2": row(2).marshal()}
    disk = SimulatedDisk(contents)
    shots = 0

    def fault(_: int, name: str) -> InjectedFault | None:
        nonlocal shots
        # The directory and the lock are opened first.
        shots += name == step
        return InjectedFault(code=code) if name == step and shots == (3 if step == "open" else 1) else None

    with pytest.raises(StoreFailedError, match=r"row\.1: (open|read) failed") as refused:
        FileStore(disk.path, FORMATS, files=FaultyFiles(disk, fault))
    assert (refused.value.step, refused.value.code) == (step, code)
    is_disk = code in {errno.EIO, errno.ESTALE}
    assert ("rename it to .nodealloc.damaged-1.row.1" in str(refused.value)) is is_disk
    with FileStore(disk.path, FORMATS, files=disk) as store:
        assert store.read().is_whole
        assert store.read().values == {"row.1": row(1), "row.2": row(2)}


def test_a_file_that_is_given_up_by_hand_is_told(tmp_path: Path) -> None:
    """The name that a refusal tells of makes its key a damaged one, not one that never was."""
    with FileStore(tmp_path, FORMATS) as store:
        store.commit({"row.1": row(1), "row.2": row(2)})
    (tmp_path / "row.1").rename(tmp_path / ".nodealloc.damaged-1.row.1")
    with FileStore(tmp_path, FORMATS) as store:
        assert [entry.key for entry in store.read().damaged] == ["row.1"]
        assert store.read().values == {"row.2": row(2)}


def test_thousands_of_damaged_keys_are_one_start(tmp_path: Path) -> None:
    """A directory full of garbage opens in one go, every key reported once, twice in a row."""
    for number in range(2000):
        (tmp_path / f"row.{number}").write_bytes(b"garbage")
    for _ in range(2):
        with FileStore(tmp_path, FORMATS) as store:
            assert len({entry.key for entry in store.read().damaged}) == 2000
            assert len({entry.kept_as for entry in store.read().damaged}) == 2000
            assert len(store.read().damaged) == 2000


def test_a_connection_that_is_locked_out_is_replaced(tmp_path: Path) -> None:
    """Over the file as it was committed, and over no other: then every commit says what to do."""
    path = tmp_path / "store"
    with SqliteStore(path, FORMATS) as store:
        store.commit({"row.1": row(1)})
        store._connection.close()
        store.commit({"row.2": row(2)})
        for data in (row(7).marshal(), b"torn"):
            with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as stranger:
                stranger.execute("UPDATE checkpoints SET data = ? WHERE key = 'row.1'", (data,))
            store._connection.close()
            for _ in range(2):
                with pytest.raises(StoreFailedError, match="close this store and open it again"):
                    store.commit({"row.3": row(3)})
        assert store.read().values == {"row.1": row(1), "row.2": row(2)}
    with SqliteStore(path, FORMATS) as store:
        assert [one.key for one in store.read().damaged] == ["row.1"]
        store._connection.close()
        store.commit({"row.3": row(3)})
        assert not store.read().is_whole
        assert set(store.read().values) == {"row.2", "row.3"}
