"""What all stores share: keys, readers, verification, and the values in memory."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Self

from nodealloc._arguments import wrong
from nodealloc._reading import NO_TEXT
from nodealloc._typed import typed_methods
from nodealloc.checkpoint._contents import Contents, Damaged, Identity, Since
from nodealloc.checkpoint._errors import CorruptCheckpointError, StoreClosedError
from nodealloc.checkpoint._keys import check_formats, check_key, reader_for
from nodealloc.checkpoint._ports import Checkpoint, Formats, Reader
from nodealloc.checkpoint._record import JsonCheckpoint
from nodealloc.checkpoint._stack import with_room
from nodealloc.errors import ConfigurationError, DecodeError

__all__ = ["BaseStore", "judge", "pack_identity", "unpack_identity"]


def judge(reader: Reader, data: bytes, /) -> Checkpoint | str:
    """The verified checkpoint in some bytes, or why they cannot be believed."""
    try:
        value = reader(data)
        value.verify()
    except (DecodeError, CorruptCheckpointError) as error:
        return str(error)
    return value


def pack_identity(identity: Identity, /) -> bytes:
    """An identity as it is stored."""
    value = {"boot_id": identity.boot_id, "machine": identity.machine}
    return JsonCheckpoint(kind="identity", version=1, value=value).marshal()


def unpack_identity(data: bytes | None, /) -> Identity | None:
    """A stored identity; None for one that is absent or damaged, which says nothing."""
    if data is None:
        return None
    record = judge(JsonCheckpoint.unmarshal, data)
    if not isinstance(record, JsonCheckpoint) or not isinstance(record.value, Mapping):
        return None
    boot_id, machine = record.value.get("boot_id"), record.value.get("machine")
    if isinstance(boot_id, str) and isinstance(machine, str):
        return Identity(boot_id=boot_id, machine=machine)
    return None


@typed_methods
class BaseStore:
    """A store whose verified values are held in memory; what writes them is a subclass's to say."""

    def __init__(self, name: str, formats: Formats, identity: Identity | None) -> None:
        self._name = name
        self._formats = dict(check_formats(formats))
        self._identity = identity
        self._writer: Identity | None = None
        self._since = Since.NEW
        self._bytes: dict[str, bytes] = {}
        self._values: dict[str, Checkpoint] = {}
        self._damaged: list[Damaged] = []
        self._closed = False
        self._mutex = threading.RLock()

    @property
    def formats(self) -> Formats:
        """What reads which key, as the store was opened."""
        return self._formats

    def read(self) -> Contents:
        """Everything that is stored, verified when the store was opened.

        Raises:
            StoreClosedError: The store was closed.
        """
        with self._mutex:
            self._check_open()
            return Contents(
                values=dict(self._values),
                damaged=tuple(self._damaged),
                since=self._since,
                writer=self._writer,
            )

    def commit(self, changes: Mapping[str, Checkpoint | None], /) -> None:
        """Store all of these, or none; None forgets a key.

        What is stored already is not written again. The first commit also
        stores the identity that the store was opened with, even when it changes
        nothing else.

        Raises:
            StoreFailedError: The medium refused; nothing has changed.
            StoreClosedError: The store was closed.
            ConfigurationError: A key is no key, or has no format; a value is no
                `Checkpoint`.
        """
        with_room(self._commit, changes)

    def _commit(self, changes: Mapping[str, Checkpoint | None]) -> None:
        due = {self._check(key): _bytes(key, value) for key, value in changes.items()}
        with self._mutex:
            self._check_open()
            fresh = {key: data for key, data in due.items() if data != self._bytes.get(key)}
            settled = [entry for entry in self._damaged if entry.key in due or entry.key == "*"]
            writer = self._identity if self._identity != self._writer else None
            if fresh or settled or writer is not None:
                self._write(fresh, settled, writer)
            self._note(changes, fresh, settled)
            self._writer = writer or self._writer

    def close(self) -> None:
        """Give the store back; a second call does nothing."""
        with self._mutex:
            if not self._closed:
                self._closed = True
                self._release()

    def __enter__(self) -> Self:
        """The store, to be closed at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        """Close it."""
        self.close()

    def _write(
        self, fresh: Mapping[str, bytes | None], settled: Iterable[Damaged], writer: Identity | None
    ) -> None:
        """Make this durable, all or nothing; for subclasses."""

    def _release(self) -> None:
        """Give back what the store holds; for subclasses."""

    def _adopt(self, data: Mapping[str, bytes], writer: Identity | None) -> dict[str, str]:
        """Take what was stored and has a format; answers with the reasons against what is damaged."""
        self._writer = writer
        self._since = Since.between(writer, self._identity)
        reasons: dict[str, str] = {}
        for key, stored in data.items():
            reader = reader_for(key, self._formats)
            if reader is None:
                continue
            verdict = judge(reader, stored)
            if isinstance(verdict, str):
                reasons[key] = verdict
            else:
                self._bytes[key] = stored
                self._values[key] = verdict
        return reasons

    def _note(
        self,
        changes: Mapping[str, Checkpoint | None],
        fresh: Mapping[str, bytes | None],
        settled: Iterable[Damaged],
    ) -> None:
        for key, stored in fresh.items():
            value = changes[key]
            if stored is None or value is None:
                self._bytes.pop(key, None)
                self._values.pop(key, None)
            else:
                self._bytes[key] = stored
                self._values[key] = value
        for entry in settled:
            self._damaged.remove(entry)

    def _is_mine(self, key: str) -> bool:
        """Whether it has a format: what has none, as rows of a later release, stays where it is."""
        return reader_for(key, self._formats) is not None

    def _check(self, key: str) -> str:
        if reader_for(check_key(key), self._formats) is None:
            raise ConfigurationError(
                f"{self._name}: key {key!r} has no format, so that nobody could read it back; "
                "declare one when opening the store"
            )
        return key

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosedError(self._name)


def _bytes(key: str, value: Checkpoint | None) -> bytes | None:
    if value is None:
        return None
    if not hasattr(value, "marshal"):
        expected = (
            "a Checkpoint, such as JsonCheckpoint(kind=..., version=1, value=...), or None to forget it"
        )
        raise wrong(f"commit, {key!r}", value, expected)
    try:
        return value.marshal()
    except UnicodeEncodeError as error:
        found = str(error.object)[max(0, error.start - 20) : error.end]
        raise ConfigurationError(f"commit, {key!r}: {found!a} {NO_TEXT}") from None
