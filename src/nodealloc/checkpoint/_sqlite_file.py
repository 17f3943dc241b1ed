"""An SQLite file as a store finds it: opened, judged, and what its errors say."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sqlite3
import stat
from collections.abc import Iterable
from pathlib import Path

from nodealloc.checkpoint._errors import StoreFailedError
from nodealloc.checkpoint._ownership import check_alone, check_owner

__all__ = [
    "APPLICATION",
    "BESIDE",
    "LAYOUT",
    "UnreadableFile",
    "behind",
    "check_content",
    "check_folder",
    "check_readable",
    "check_regular",
    "claim_log",
    "connect",
    "flush",
    "has_room",
    "identity_of",
    "is_full",
    "is_locked_out",
    "is_passing",
    "is_short_of_room",
    "is_there",
]

_MAGIC = b"SQLite format 3\0"
"""How each file of SQLite begins; the number of the application stands further on."""
_APPLICATION_AT, _HEAD = 68, 72
APPLICATION = 0x6E6F6465
"""By which a file says whose it is."""
LAYOUT = 1
"""Of the tables; a later one is not read."""
_LOG = ("-wal", "-shm")
BESIDE = (*_LOG, "-journal")
"""Endings of what SQLite has beside a file."""
_ROOM = 1 << 20
"""Free bytes of the disk below which it is looked at more closely."""
_FOR_REMOVALS = 32 << 10
"""Free bytes that a commit leaves, so that one after it can remove something."""
_PAGE = 4096
_CHUNK_BYTES = 1 << 20
_FRAME = 24
"""Bytes before each page in the log."""


class UnreadableFile(Exception):  # noqa: N818  # caught by the store
    """The file is no store, and will not be one when it is read again."""


def connect(path: Path) -> sqlite3.Connection:
    claim_log(path)
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA synchronous=FULL")
        # The store folds the log itself, sooner and down to nothing.
        connection.execute("PRAGMA wal_autocheckpoint=0")
        # Some builds write every page that is freed once more: a removal then takes room that may be gone.
        connection.execute("PRAGMA secure_delete=FAST")
    except sqlite3.DatabaseError as error:
        connection.close()
        if is_passing(error):
            raise
        raise UnreadableFile(str(error)) from None
    return connection


def check_content(connection: sqlite3.Connection, path: Path) -> None:
    try:
        mine = connection.execute("PRAGMA application_id").fetchone()
        (layout,) = connection.execute("PRAGMA user_version").fetchone()
        found = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        connection.close()
        if is_passing(error):
            raise
        raise UnreadableFile(str(error)) from None
    if mine != (APPLICATION,) or found != ("ok",):
        connection.close()
        # The check puts a page that could not be read into its text, like one that is wrong.
        code = re.search(r"error code=(\d+)", str(found[0]))
        if code is not None and _is_passing_code(int(code[1])):
            check_readable(path)
            raise sqlite3.OperationalError(str(found[0]))
        raise UnreadableFile("empty, or no store of this library" if found == ("ok",) else str(found[0]))
    if layout > LAYOUT:
        reason = f"its layout is {layout}, and {LAYOUT} is known here"
        raise StoreFailedError(
            str(path), "sqlite", 0, reason, remedy="take the release that wrote it, or a later one"
        )


def check_readable(path: Path) -> None:
    """Read all bytes once: where the disk does not give them, SQLite often says that they are wrong.

    By a call as SQLite's own, so that whatever fails one of them fails the other.

    Raises:
        StoreFailedError: Some cannot be read; says of which file.
    """
    for ending in ("", *_LOG[:1]):
        part = Path(f"{path}{ending}")
        try:
            descriptor = os.open(part, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                at = 0
                while read := len(os.pread(descriptor, _CHUNK_BYTES, at)):
                    at += read
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            continue
        except OSError as error:
            reason = error.strerror or str(error)
            raise StoreFailedError(str(part), "read", error.errno or 0, reason) from error


def is_locked_out(error: sqlite3.Error) -> bool:
    """Whether this connection gets no lock on a file that nobody else has open, or was closed for that."""
    mine = {sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
    return isinstance(error, sqlite3.ProgrammingError) or getattr(error, "sqlite_errorcode", 0) & 0xFF in mine


def is_full(error: sqlite3.Error) -> bool:
    """Whether the disk was full; SQLite says so in two ways."""
    code = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF == sqlite3.SQLITE_FULL or code == sqlite3.SQLITE_IOERR_WRITE


def is_passing(error: sqlite3.DatabaseError) -> bool:
    return _is_passing_code(getattr(error, "sqlite_errorcode", 0))


def _is_passing_code(code: int) -> bool:
    """Whether the same file may be read later: a call failed, and nothing was said against the bytes.

    What speaks against the bytes is listed, rather than what passes: a store that
    is opened once more in vain costs a start, a good one set aside costs its content.
    """
    against_the_bytes = {
        0,  # from Python's own reading of a column, say text that is no UTF-8
        sqlite3.SQLITE_ERROR,  # no such table
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_FORMAT,
        sqlite3.SQLITE_EMPTY,
        sqlite3.SQLITE_TOOBIG,
        sqlite3.SQLITE_MISMATCH,
    }
    return code & 0xFF not in against_the_bytes


def behind(path: Path) -> Path:
    """The file itself; a link that leads nowhere is no new store, but a disk that is not mounted.

    What a link leads to has to be a store already: whoever may make one, in a folder as
    `/tmp`, could have any other file taken for a damaged store and moved away.
    """
    try:
        file = Path(os.path.realpath(path, strict=path.is_symlink()))
        if path.is_symlink():
            _check_linked(path, file)
    except OSError as error:
        reason = f"{error.strerror}: {error.filename}"
        raise StoreFailedError(str(path), "readlink", error.errno or 0, reason) from error
    return file


def _check_linked(path: Path, file: Path) -> None:
    check_regular(file)
    with file.open("rb") as opened:
        head = opened.read(_HEAD)
    if head[: len(_MAGIC)] != _MAGIC or head[_APPLICATION_AT:_HEAD] != APPLICATION.to_bytes(4, "big"):
        reason = f"it leads to {file}, which is no store"
        remedy = "look who made the link, and what is there; where that is a damaged store, name it itself"
        raise StoreFailedError(str(path), "readlink", errno.EEXIST, reason, remedy=remedy)


def check_regular(path: Path) -> None:
    """Refuse what SQLite would wait for, as for the writer of a pipe, or write through, as through a link."""
    with contextlib.suppress(FileNotFoundError):
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode):
            raise StoreFailedError(str(path), "lstat", errno.EEXIST, "no regular file")
        check_owner(str(path), found)


def claim_log(path: Path) -> None:
    """Make the files of the log, which SQLite would open through whatever a name leads to.

    Raises:
        StoreFailedError: One that is there has a second name, or is no regular file.
    """
    for ending in _LOG:
        part = Path(f"{path}{ending}")
        with contextlib.suppress(FileExistsError):
            os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        check_alone(str(part), part.lstat())


def has_room(connection: sqlite3.Connection, path: Path, put: Iterable[bytes]) -> bool:
    """Whether the disk takes what a transaction puts twice: into the log, and by folding that into the file.

    A log that fills the disk and cannot be folded would let nothing follow it, not even a removal.
    """
    sizes = [len(data) for data in put]
    disk = os.statvfs(path)
    free = disk.f_bavail * disk.f_frsize
    if not sizes or free > _ROOM + 4 * sum(sizes):
        return True
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    grows = pages * _PAGE - path.stat().st_size
    log = (sum(sizes) // _PAGE + 3 * len(sizes) + 4) * (_PAGE + _FRAME)
    return bool(free >= log + max(grows, 0) + _FOR_REMOVALS)


def is_short_of_room(path: Path, log_bytes: int) -> bool:
    """Whether a log of this length should not wait to be folded."""
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize < _ROOM + log_bytes


def check_folder(path: Path) -> None:
    """Refuse a folder in which others could replace the file, or what lies beside it."""
    check_owner(str(path), path.stat(), may_be_shared=True)


def identity_of(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def is_there(path: Path) -> bool:
    """Whether a name exists; unlike `Path.exists` on any Python, a failing disk is no answer."""
    try:
        path.stat()
    except FileNotFoundError:
        return False
    return True


def flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
