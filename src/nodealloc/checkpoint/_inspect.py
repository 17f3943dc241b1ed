"""Look at stored state without holding it: no lock, no change, no repair."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Generator, Iterator
from pathlib import Path

from nodealloc import _attrs as attrs
from nodealloc._plain_file import NoPlainFileError, open_plain
from nodealloc._typed import typed
from nodealloc.checkpoint._base_store import unpack_identity
from nodealloc.checkpoint._contents import Identity
from nodealloc.checkpoint._device_state import DEVICE_STATE
from nodealloc.checkpoint._directory import IDENTITY, LARGEST, MARK
from nodealloc.checkpoint._errors import CorruptCheckpointError, StoreFailedError
from nodealloc.checkpoint._keys import check_formats, check_key, reader_for
from nodealloc.checkpoint._kubelet import KUBELET_FORMATS
from nodealloc.checkpoint._lock import PidLock
from nodealloc.checkpoint._ports import Checkpoint, Formats, Reader
from nodealloc.checkpoint._record import JsonCheckpoint
from nodealloc.errors import DecodeError

__all__ = ["Finding", "inspect", "stored_identity"]


@attrs.frozen(kw_only=True)
class Finding:
    """One key as it was found.

    Attributes:
        place: The file, or the file and the row.
        key: The key; `*` for something that concerns all keys.
        value: What the bytes say; None when they say nothing.
        reason: What is wrong; empty when the value is verified.
        stored: The checksum in the bytes, as text; empty when there is none.
        computed: The checksum of the content, as text; empty when there is none.
        is_set_aside: Whether a store moved it aside earlier.
        is_cut_off: Whether it is a commit that was cut off: keys beside it may be of before and after it.
    """

    place: str
    key: str
    value: Checkpoint | None = None
    reason: str = ""
    stored: str = ""
    computed: str = ""
    is_set_aside: bool = False
    is_cut_off: bool = False

    @property
    def is_good(self) -> bool:
        """Whether the value may be believed."""
        return not self.reason


@typed
def inspect(path: str | Path) -> tuple[Finding, ...]:
    """Everything that is stored at a path, verified, damaged keys included.

    Args:
        path: A store (directory or SQLite file), a single state file, or the
            kubelet's root directory, whose `device-plugins` is looked into.

    Raises:
        StoreFailedError: There is nothing that can be read.
    """
    at = Path(path)
    with _told(at):
        if at.is_dir():
            return tuple(_directory(at))
        if _is_database(at):
            return tuple(_database(at))
        return (_file(at, _key_of(at.name)),)


@typed
def stored_identity(path: str | Path) -> Identity | None:
    """Who made the last commit to what is stored at a path; None where that is not known.

    Args:
        path: As in `inspect`. A kubelet leaves no identity, a single state file has none, and one that
            is damaged says nothing.

    Raises:
        StoreFailedError: There is nothing that can be read.
    """
    at = Path(path)
    with _told(at):
        if at.is_dir():
            try:
                return unpack_identity(_bytes(at / IDENTITY))
            except (FileNotFoundError, NoPlainFileError):
                return None
        rows = _selected(at, "SELECT data FROM facts WHERE name = 'identity'") if _is_database(at) else []
        return next((unpack_identity(data) for (data,) in rows if isinstance(data, bytes)), None)


@contextlib.contextmanager
def _told(at: Path) -> Generator[None]:
    """Have what the system says of a path told with what to name instead."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        remedy = "name a store, a state file or a kubelet's root directory that may be read"
        raise StoreFailedError(str(at), "read", error.errno or 0, reason, remedy=remedy) from error


def _directory(at: Path) -> Iterator[Finding]:
    formats = _formats_of(at)
    for path in sorted(at.iterdir()):
        name = path.name
        if name in KUBELET_FORMATS or (_is_key(name) and reader_for(name, formats) is not None):
            yield _file(path, name)
        elif name.startswith(f"{MARK}damaged-"):
            key = name.removeprefix(f"{MARK}damaged-").partition(".")[2]
            yield attrs.evolve(_file(path, "*" if key == "@commit" else key), is_set_aside=True)
        elif name == f"{MARK}commit":
            reason = "a commit was cut off: it is finished or dropped when the store is opened"
            yield Finding(place=str(path), key="*", reason=reason, is_cut_off=True)
    devices = at / "device-plugins" / DEVICE_STATE
    if devices.is_file():
        yield _file(devices, DEVICE_STATE)


def _is_database(at: Path) -> bool:
    return _bytes(at, 16) == b"SQLite format 3\0"


def _selected(at: Path, statement: str) -> list[tuple[object, ...]]:
    """The rows that a statement gives of an SQLite file, which stays as it is."""
    import sqlite3  # noqa: PLC0415 - a MiB, which who has no such file spares

    try:
        with contextlib.closing(sqlite3.connect(f"{at.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            rows: list[tuple[object, ...]] = connection.execute(statement).fetchall()
            return rows
    except sqlite3.Error as error:
        # Where the disk does not give the bytes, SQLite says that they are wrong.
        with os.fdopen(open_plain(at), "rb", buffering=0) as file:
            while file.read(1 << 20):
                pass
        raise StoreFailedError(str(at), "sqlite", 0, str(error)) from error


def _database(at: Path) -> Iterator[Finding]:
    rows = _selected(at, "SELECT key, data FROM checkpoints ORDER BY key")
    lost = _selected(at, "SELECT number, key, reason, kept_as FROM damaged WHERE NOT settled")
    for key, data in rows:
        yield judge_bytes(f"{at}:{key}", str(key), data if isinstance(data, bytes) else b"")
    for number, key, reason, kept_as in lost:
        place = str(kept_as or f"{at}, table damaged, number {number}")
        yield Finding(place=place, key=str(key), reason=str(reason), is_set_aside=True)


def _file(path: Path, key: str) -> Finding:
    try:
        return judge_bytes(str(path), key, _bytes(path))
    except OSError as error:
        return Finding(place=str(path), key=key, reason=f"unreadable: {error.strerror}")


def _bytes(path: Path, size: int = LARGEST + 1) -> bytes:
    """The first bytes of a file; of one that no store would take not all are read."""
    with os.fdopen(open_plain(path), "rb") as file:
        data = file.read(size)
    if len(data) > LARGEST:
        raise OSError(errno.EFBIG, f"more than {LARGEST >> 20} MiB are no checkpoint", str(path))
    return data


def judge_bytes(place: str, key: str, data: bytes) -> Finding:
    """The finding on some bytes under a key."""
    reader: Reader = KUBELET_FORMATS.get(key, JsonCheckpoint.unmarshal)
    try:
        value = reader(data)
    except DecodeError as error:
        return Finding(place=place, key=key, reason=str(error))
    try:
        value.verify()
    except CorruptCheckpointError as error:
        return Finding(
            place=place,
            key=key,
            value=value,
            reason="content and checksum disagree",
            stored=error.stored,
            computed=error.computed,
        )
    stored = str(getattr(value, "checksum", ""))
    return Finding(place=place, key=key, value=value, stored=stored, computed=stored)


def _formats_of(at: Path) -> Formats:
    """The formats that the last owner of a directory declared; none where there was no owner."""
    lock = at / f"{MARK}lock"
    if not lock.exists():
        return {}
    try:
        names = json.loads(PidLock.note_in(_bytes(lock)))
        return check_formats(dict.fromkeys(names, JsonCheckpoint.unmarshal))
    except (ValueError, TypeError, RecursionError):
        return {"*": JsonCheckpoint.unmarshal}


def _key_of(name: str) -> str:
    """The kubelet's key in a file name such as `backup.cpu_manager_state` or `cpu_manager_state.old`."""
    return next((key for key in KUBELET_FORMATS if key in name), name)


def _is_key(name: str) -> bool:
    try:
        return check_key(name) == name
    except ValueError:
        return False
