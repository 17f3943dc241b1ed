"""Keys as rows of an SQLite file: what a commit costs does not grow with what is stored."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

from typing_extensions import override

from nodealloc._arguments import wrong
from nodealloc._typed import typed, typed_methods
from nodealloc.checkpoint._base_store import BaseStore, pack_identity, unpack_identity
from nodealloc.checkpoint._contents import Damaged, Identity
from nodealloc.checkpoint._errors import StoreFailedError
from nodealloc.checkpoint._files import Files
from nodealloc.checkpoint._lock import PidLock
from nodealloc.checkpoint._ports import Formats
from nodealloc.checkpoint._spare import Spare
from nodealloc.checkpoint._sqlite_file import (
    APPLICATION,
    BESIDE,
    LAYOUT,
    UnreadableFile,
    behind,
    check_content,
    check_folder,
    check_readable,
    check_regular,
    claim_log,
    connect,
    flush,
    has_room,
    identity_of,
    is_full,
    is_locked_out,
    is_passing,
    is_short_of_room,
    is_there,
)
from nodealloc.checkpoint._stack import with_room

__all__ = ["SqliteStore"]

_SCHEMA = f"""
PRAGMA journal_mode=WAL;
PRAGMA synchronous=FULL;
BEGIN;
CREATE TABLE checkpoints (key TEXT PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE damaged (
  number INTEGER PRIMARY KEY, key TEXT NOT NULL, reason TEXT NOT NULL,
  data BLOB, kept_as TEXT, settled INTEGER NOT NULL
);
CREATE TABLE facts (name TEXT PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID;
PRAGMA application_id={APPLICATION};
PRAGMA user_version={LAYOUT};
COMMIT;
"""
_LONGEST_LOG = 1 << 22
"""Bytes of the log at which it is folded into the file; a shorter one has pages written more often."""
_SPARE_BYTES = 1 << 17
"""Enough for a small commit, by which something ends: in the log, and in the file."""
_BUSY_MS = 5000
"""How long SQLite waits for somebody else's lock; Python's own default."""
_Stored: TypeAlias = tuple[dict[str, bytes], dict[str, str], bytes | None]
"""Rows that hold bytes, reasons against those that do not, and the identity."""


class _FullError(StoreFailedError):
    """The disk has not the room for a commit."""


@typed_methods
class SqliteStore(BaseStore):
    """One SQLite file in WAL mode, flushed with every commit.

    For agents with thousands of workloads: give each its own key (`row_key`),
    and a commit writes the rows that it names. The file is locked from here to
    `close` by ``NAME.lock`` beside it.

    A full disk takes small commits, from 128 KiB that are kept for them in
    ``NAME.spare``. SQLite's log beside the file is folded into it when it has grown to
    4 MiB, or when the disk has less than 1 MiB beside it. The file, what lies
    beside it and their folder belong to this user or to root, and nobody else may
    write them (a folder as `/tmp` will do); a commit is refused once another file
    has taken the path.

    A file that SQLite cannot read goes into the folder ``NAME.damaged-1``
    beside it, and is reported as the damaged key `*`.

    Args:
        path: The file; made when its folder exists. Of a link, what it leads to:
            everything that belongs to the file stands beside that, and it has to be
            a store already.
        formats: What reads which key.
        identity: This boot of this machine (`this_machine()`), stored beside.
        wait: Whether to wait until another process gives the file back.

    Raises:
        StoreBusyError: Another process holds the file; names its pid.
        StoreFailedError: The file cannot be made, read or written, or others can
            change it.
    """

    @typed
    def __init__(
        self,
        path: str | os.PathLike[str],
        formats: Formats,
        *,
        identity: Identity | None = None,
        wait: bool = False,
    ) -> None:
        if str(path) == ":memory:":
            raise wrong("SqliteStore: path", path, "a file; a MemoryStore keeps nothing on the disk")
        self._path = behind(Path(path))
        super().__init__(str(self._path), formats, identity)
        with self._failing():
            # Before the lock is made there: a folder that is absent has its own words.
            check_folder(self._path.parent)
        self._lock = PidLock(f"{self._path}.lock", Files(), wait=wait)
        try:
            with_room(self._open)
        except BaseException:
            self._let_go()
            self._lock.release()
            raise
        self._spare = Spare(f"{self._path}.spare", _SPARE_BYTES)

    def _open(self) -> None:
        with self._failing():
            self._clean()
            if not is_there(self._path):
                self._create()
            rows = self._readable_rows()
            # By now SQLite has opened all that it goes by; what was put there meanwhile counts too.
            for ending in ("", *BESIDE):
                check_regular(Path(f"{self._path}{ending}"))
            self._file = identity_of(self._path)
            self._note_folders()
            self._load(rows)
            self._fold()

    def _readable_rows(self) -> _Stored:
        """Rows of a file that was checked; one whose bytes are wrong, read twice, is set aside."""
        reason = ""
        for _ in range(2):
            try:
                self._connection = connect(self._path)
                check_content(self._connection, self._path)
                return self._rows()
            except UnreadableFile as error:
                reason = str(error)
            self._let_go()
            check_readable(self._path)
        self._set_all_aside(reason)
        self._connection = connect(self._path)
        return self._rows()

    def _let_go(self) -> None:
        with contextlib.suppress(sqlite3.Error, AttributeError):
            self._connection.close()

    def _rows(self) -> _Stored:
        try:
            stored = self._connection.execute("SELECT key, data FROM checkpoints").fetchall()
            facts = dict(self._connection.execute("SELECT name, data FROM facts").fetchall())
        except sqlite3.DatabaseError as error:
            if is_passing(error):
                raise
            raise UnreadableFile(str(error)) from None
        mine = [(str(key), data) for key, data in stored if self._is_mine(str(key))]
        good = {key: data for key, data in mine if isinstance(data, bytes)}
        bad = {key: "the row holds no bytes" for key, data in mine if not isinstance(data, bytes)}
        identity = facts.get("identity")
        return good, bad, identity if isinstance(identity, bytes) else None

    def _load(self, rows: _Stored) -> None:
        good, broken, identity = rows
        broken.update(self._adopt(good, unpack_identity(identity)))
        with contextlib.suppress(sqlite3.OperationalError), self._transaction():
            # When this fails the rows stay where they are, and are found again at the next start.
            for key, reason in broken.items():
                self._connection.execute(
                    "INSERT INTO damaged (key, reason, data, settled) "
                    "SELECT key, ?, data, 0 FROM checkpoints WHERE key = ?",
                    (reason, key),
                )
                self._connection.execute("DELETE FROM checkpoints WHERE key = ?", (key,))
            # Somebody put a good copy in its place.
            self._connection.execute(
                "UPDATE damaged SET settled = 1 WHERE key IN (SELECT key FROM checkpoints) AND NOT settled"
            )
        listed = self._connection.execute(
            "SELECT number, key, reason, kept_as FROM damaged WHERE NOT settled ORDER BY number"
        ).fetchall()
        for number, key, reason, folder in listed:
            if key not in self._values:
                kept_as = folder or f"{self._path}, table damaged, number {number}"
                self._damaged.append(Damaged(key=key, reason=reason, kept_as=kept_as))
                broken.pop(key, None)
        for key, reason in broken.items():
            self._damaged.append(Damaged(key=key, reason=reason, kept_as=f"{self._path}, table checkpoints"))

    @override
    def _write(
        self, fresh: Mapping[str, bytes | None], settled: Iterable[Damaged], writer: Identity | None
    ) -> None:
        with self._failing():
            self._check_in_place()
            try:
                self._put_again(fresh, settled, writer)
                self._fold_if_due()
            finally:
                self._spare.keep()

    def _put_again(
        self, fresh: Mapping[str, bytes | None], settled: Iterable[Damaged], writer: Identity | None
    ) -> None:
        """Put, and once more where what stood in the way is gone."""
        try:
            self._put(fresh, settled, writer)
        except (sqlite3.Error, _FullError) as error:
            if isinstance(error, sqlite3.Error) and is_locked_out(error):
                self._reopen()
            elif isinstance(error, _FullError) or is_full(error):
                has_given = self._spare.give()
                if isinstance(error, _FullError) and not has_given:
                    raise
                # The log keeps the room that the failed commit took, until it is folded.
                self._fold()
            else:
                raise
            self._put(fresh, settled, writer)

    def _put(
        self, fresh: Mapping[str, bytes | None], settled: Iterable[Damaged], writer: Identity | None
    ) -> None:
        with self._transaction():
            put = [(key, data) for key, data in fresh.items() if data is not None]
            self._connection.executemany("INSERT OR REPLACE INTO checkpoints VALUES (?, ?)", put)
            if not has_room(self._connection, self._path, (data for _, data in put)):
                reason = "too little is free for this commit and its log"
                raise _FullError(str(self._path), "sqlite", sqlite3.SQLITE_FULL, reason)
            gone = [(key,) for key, data in fresh.items() if data is None]
            gone += [(entry.key,) for entry in settled if entry.key not in fresh]
            self._connection.executemany("DELETE FROM checkpoints WHERE key = ?", gone)
            marks = [(entry.key,) for entry in settled]
            self._connection.executemany("UPDATE damaged SET settled = 1 WHERE key = ?", marks)
            if writer is not None:
                fact = ("identity", pack_identity(writer))
                self._connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", fact)

    def _check_in_place(self) -> None:
        """Refuse to write a file that nobody will find: SQLite goes on in one that was moved or replaced."""
        try:
            is_mine = identity_of(self._path) == self._file
        except FileNotFoundError:
            is_mine = False
        if not is_mine:
            reason = "this store's file was moved away or replaced"
            remedy = "put it back, or close this store and open the other"
            raise StoreFailedError(str(self._path), "stat", errno.ENOENT, reason, remedy=remedy)

    def _fold_if_due(self) -> None:
        """Fold the log when it is long, or room is short."""
        try:
            length = os.stat(f"{self._path}-wal").st_size  # noqa: PTH116  # a tenth of the time
            is_due = length >= _LONGEST_LOG or (length and is_short_of_room(self._path, length))
        except OSError:
            return
        if is_due:
            self._fold()

    def _fold(self) -> None:
        """Write the log into the file and give its room back; what stops that may pass, and loses nothing."""
        with contextlib.suppress(sqlite3.Error):
            # Somebody who only looks may hold the log up: that is not waited for.
            self._connection.execute("PRAGMA busy_timeout=0")
            try:
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                self._connection.execute(f"PRAGMA busy_timeout={_BUSY_MS}")

    def _reopen(self) -> None:
        """Drop the locks that the kernel did not take back: the end of the last descriptor drops them all.

        A commit that failed before may stand whole in the log, and come up with
        the file. Then this store stays shut, and the next process finds it so.

        Raises:
            StoreFailedError: What the file holds is not what this store committed.
        """
        self._connection.close()
        self._connection = connect(self._path)
        self._file = identity_of(self._path)
        stored = dict(self._connection.execute("SELECT key, data FROM checkpoints").fetchall())
        unread = {entry.key for entry in self._damaged}
        mine = {key: data for key, data in stored.items() if key not in unread and self._is_mine(str(key))}
        if mine != self._bytes:
            self._connection.close()
            reason = "the file holds something else than was committed; close this store and open it again"
            raise StoreFailedError(str(self._path), "sqlite", sqlite3.SQLITE_BUSY, reason)

    @override
    def _release(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._connection.close()
        self._lock.release()

    def _create(self) -> None:
        """Make the file whole under another name: a file without tables is a damaged one, never a new one."""
        new = self._path.with_name(f"{self._path.name}.new")
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        claim_log(new)
        connection = sqlite3.connect(new, isolation_level=None)
        try:
            connection.executescript(_SCHEMA)
            # `close` folds the log too, but is silent when that fails; the log does not move with the file.
            held_up = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        finally:
            connection.close()
        if held_up:
            raise StoreFailedError(
                str(new), "sqlite", sqlite3.SQLITE_BUSY, "its log cannot be folded into it"
            )
        flush(new)
        new.rename(self._path)
        flush(self._path.parent)

    def _clean(self) -> None:
        for ending in ("", *BESIDE):
            self._path.with_name(f"{self._path.name}.new{ending}").unlink(missing_ok=True)
            check_regular(Path(f"{self._path}{ending}"))
        if not is_there(self._path) and any(is_there(Path(f"{self._path}{ending}")) for ending in BESIDE):
            self._move_all(self._free_folder())

    def _set_all_aside(self, reason: str) -> None:
        folder = self._free_folder()
        self._move_all(folder)
        self._create()
        connection = connect(self._path)
        try:
            connection.execute(
                "INSERT INTO damaged (key, reason, kept_as, settled) VALUES ('*', ?, ?, 0)",
                (reason, str(folder)),
            )
        finally:
            connection.close()

    def _move_all(self, folder: Path) -> None:
        # The folder comes first: whatever is cut off after it, the next start finds it and reports.
        folder.mkdir(mode=0o700)
        flush(folder.parent)
        for ending in (*BESIDE, ""):
            part = Path(f"{self._path}{ending}")
            if is_there(part):
                part.rename(folder / part.name)
        flush(folder)
        flush(folder.parent)

    def _free_folder(self) -> Path:
        number = 1
        while is_there(folder := Path(f"{self._path}.damaged-{number}")):
            number += 1
        return folder

    def _note_folders(self) -> None:
        # By name: the path may have been spelt otherwise, or the folder moved.
        rows = self._connection.execute("SELECT kept_as FROM damaged WHERE kept_as IS NOT NULL").fetchall()
        known = {Path(kept_as).name for (kept_as,) in rows}
        # Not `glob`: from Python 3.13 on, a folder that cannot be read looks empty to it.
        for folder in sorted(self._path.parent.iterdir()):
            if folder.name.startswith(f"{self._path.name}.damaged-") and folder.name not in known:
                self._connection.execute(
                    "INSERT INTO damaged (key, reason, kept_as, settled) VALUES ('*', ?, ?, 0)",
                    ("an earlier start set the whole file aside", str(folder)),
                )

    @contextlib.contextmanager
    def _transaction(self) -> Generator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise

    @contextlib.contextmanager
    def _failing(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0)
            raise StoreFailedError(str(self._path), "sqlite", code, str(error)) from error
        except OSError as error:
            reason = error.strerror or str(error)
            path = error.filename or str(self._path)
            raise StoreFailedError(str(path), "open", error.errno or 0, reason) from error
