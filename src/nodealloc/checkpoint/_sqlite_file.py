"""An SQLite file as a store finds it: opened, judged, and what its errors say."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sqlite3
import stat
from pathlib import Path

from nodealloc.checkpoint._errors import StoreFailedError
from nodealloc.checkpoint._guard import check_owner

__all__ = [
    "APPLICATION",
    "UnreadableFile",
    "behind",
    "check_content",
    "check_folder",
    "check_regular",
    "connect",
    "flush",
    "identity_of",
    "is_full",
    "is_locked_out",
    "is_passing",
    "is_there",
]

_MAGIC = b"SQLite format 3\0"
"""How each file of SQLite begins; the number of the application stands further on."""
_APPLICATION_AT, _HEAD = 68, 72
APPLICATION = 0x6E6F6465
"""By which a file says whose it is."""


class UnreadableFile(Exception):  # noqa: N818  # caught by the store
    """The file is no store, and will not be one when it is read again."""


def connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA synchronous=FULL")
        # The store folds the log itself, sooner and down to nothing.
        connection.execute("PRAGMA wal_autocheckpoint=0")
    except sqlite3.DatabaseError as error:
        connection.close()
        if is_passing(error):
            raise
        raise UnreadableFile(str(error)) from None
    return connection


def check_content(connection: sqlite3.Connection) -> None:
    try:
        mine = connection.execute("PRAGMA application_id").fetchone()
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
            raise sqlite3.OperationalError(str(found[0]))
        raise UnreadableFile("empty, or no store of this library" if found == ("ok",) else str(found[0]))


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
