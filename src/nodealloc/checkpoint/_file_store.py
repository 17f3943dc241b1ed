"""One file a key, in the kubelet's layout."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from typing_extensions import override

from nodealloc._typed import typed, typed_methods
from nodealloc.checkpoint._base_store import BaseStore, judge, pack_identity, unpack_identity
from nodealloc.checkpoint._contents import Damaged, Identity
from nodealloc.checkpoint._directory import DAMAGED, IDENTITY, KEPT, MARK, NO_FILE, Change, Directory, aside
from nodealloc.checkpoint._errors import StoreFailedError
from nodealloc.checkpoint._files import Files, call
from nodealloc.checkpoint._keys import KEY_LENGTH, check_key, reader_for
from nodealloc.checkpoint._lock import PidLock
from nodealloc.checkpoint._ports import Formats
from nodealloc.checkpoint._spare import FULL, Spare
from nodealloc.checkpoint._stack import with_room

__all__ = ["FileStore"]

_LOCK = f"{MARK}lock"
_SPARE = f"{MARK}spare"
_SPARE_BYTES = 1 << 16
"""Enough for the few small files of a commit by which something ends."""
_DISK = frozenset({errno.EIO, errno.ESTALE})
"""Codes of a disk or file server that does not give what it holds."""


@typed_methods
class FileStore(BaseStore):
    """A directory with one file a key; the `Store` that a kubelet can take over.

    The directory is locked from here to `close`. An agent keeps it for life.
    Short-lived programs that share a directory open it for one transaction:

    ```python
    with FileStore(path, formats, wait=True) as store:
        held = store.read()
        store.commit(decide(held))
    ```

    A commit that changes several files goes through a roll-forward record. A full
    disk takes small commits, from 64 KiB that are kept for them.
    Names that begin with ``.nodealloc.`` are the store's own; files that match
    no format are left alone.

    The store stays in the directory that it opened and locked, also when that is
    moved and another takes its path. The directory and what is read in it belong
    to this user or to root, and nobody else may write them.

    Args:
        path: The directory; made when its parent exists, for this user alone.
        formats: What reads which key.
        identity: This boot of this machine (`this_machine()`), stored beside.
        wait: Whether to wait until another process gives the directory back.
        files: The system calls, for tests.

    Raises:
        StoreBusyError: Another process holds the directory; names its pid.
        StoreFailedError: The directory cannot be made, read or written, a file in it
            cannot be read now, which is no damage, or others can change what is in it.
    """

    @typed
    def __init__(
        self,
        path: str | os.PathLike[str],
        formats: Formats,
        *,
        identity: Identity | None = None,
        wait: bool = False,
        files: Files | None = None,
    ) -> None:
        self._path = os.fspath(path)
        super().__init__(self._path, formats, identity)
        self._files = files or Files()
        self._spare: Spare | None = None
        if files is None:
            call("mkdir", self._path, Path(self._path).mkdir, mode=0o700, exist_ok=True)
            # A link that is turned, or a process that goes elsewhere, takes no commit along.
            self._path = call("realpath", self._path, os.path.realpath, self._path)
        with_room(self._open, wait=wait)
        if files is None:
            self._spare = Spare(_SPARE, _SPARE_BYTES, dir_fd=self._directory.descriptor)

    def _open(self, *, wait: bool) -> None:
        self._directory = Directory(self._path, self._files)
        try:
            self._lock = PidLock(
                f"{self._path}/{_LOCK}",
                self._files,
                wait=wait,
                note=json.dumps(sorted(self._formats)),
                dir_fd=self._directory.descriptor,
            )
            try:
                self._load()
            except BaseException:
                self._lock.release()
                raise
        except BaseException:
            self._directory.close()
            raise

    def _load(self) -> None:
        self._directory.recover()
        names = self._directory.names()
        data: dict[str, bytes] = {}
        broken: dict[str, str] = {}
        for name in names:
            if _is_key(name) and reader_for(name, self._formats) is not None:
                try:
                    data[name] = self._directory.read(name)
                except StoreFailedError as error:
                    if error.code not in NO_FILE:
                        # It may be readable a second later: moved now, its grant would be lost for nothing.
                        raise _given_up(error, name, names) from error
                    broken[name] = _unread(error)
        broken.update(self._adopt(data, unpack_identity(self._read_identity(names))))
        self._remember_earlier_damage(names)
        self._set_aside(broken, names)

    def _read_identity(self, names: Sequence[str]) -> bytes | None:
        try:
            return self._directory.read(IDENTITY) if IDENTITY in names else None
        except StoreFailedError as error:
            if error.code not in NO_FILE:
                raise
            # Whatever it is, it says nothing, and no new one could take its place.
            self._directory.move([(IDENTITY, aside(names, IDENTITY, kind=KEPT))])
            return None

    def _set_aside(self, broken: Mapping[str, str], names: Iterable[str]) -> None:
        first = aside(names, "")
        number = int(first.removeprefix(DAMAGED).rstrip("."))
        targets = {key: f"{DAMAGED}{number + at}.{key}" for at, key in enumerate(broken)}
        # What cannot be moved stays where it is, and is found again at the next start.
        if targets:
            targets.update({key: key for key in self._directory.move(targets.items())})
        for key, reason in broken.items():
            self._damaged.append(Damaged(key=key, reason=reason, kept_as=f"{self._path}/{targets[key]}"))

    def _remember_earlier_damage(self, names: Iterable[str]) -> None:
        for name in names:
            number, dot, key = name.removeprefix(DAMAGED).partition(".")
            if not (name.startswith(DAMAGED) and dot and number.isdecimal()):
                continue
            if key in self._values:
                # Somebody put a good copy in its place.
                self._directory.move([(name, _kept(name))])
                continue
            if key == "@commit":
                key, reason = "*", "the record of a commit is damaged: any key may be older than it should be"
            else:
                reason = self._judge_again(name, key)
            self._damaged.append(Damaged(key=key, reason=reason, kept_as=f"{self._path}/{name}"))

    def _judge_again(self, name: str, key: str) -> str:
        reader = reader_for(key, self._formats)
        try:
            data = self._directory.read(name)
        except StoreFailedError as error:
            return _unread(error)
        verdict = "no format is declared for this key" if reader is None else judge(reader, data)
        if isinstance(verdict, str):
            return verdict
        return "set aside by an earlier start, and it reads well now: restore it by hand, or rebuild"

    @override
    def _write(
        self, fresh: Mapping[str, bytes | None], settled: Iterable[Damaged], writer: Identity | None
    ) -> None:
        puts = {key: data for key, data in fresh.items() if data is not None}
        if writer is not None:
            puts[IDENTITY] = pack_identity(writer)
        settled_names = [Path(entry.kept_as).name for entry in settled]
        gone = [key for key, data in fresh.items() if data is None]
        # What could not be moved aside stands under its key: a new value replaces it, else it goes.
        stayed = [name for name in settled_names if not name.startswith(DAMAGED) and name not in puts]
        change = Change(
            puts=puts,
            removes=(*gone, *stayed),
            moves=tuple((name, _kept(name)) for name in settled_names if name.startswith(DAMAGED)),
        )
        if change.steps():
            self._carry_out(change)

    def _carry_out(self, change: Change) -> None:
        """Once more with the room that is kept for this, where the disk is full."""
        try:
            self._directory.commit(change, self._bytes)
        except StoreFailedError as error:
            if error.code not in FULL or self._spare is None or not self._spare.give():
                raise
            self._directory.commit(change, self._bytes)
        finally:
            if self._spare is not None:
                self._spare.keep()

    @override
    def _release(self) -> None:
        try:
            self._directory.settle()
        except StoreFailedError:
            pass  # The next process does it.
        finally:
            self._directory.close()
            self._lock.release()


def _given_up(error: StoreFailedError, key: str, names: Sequence[str]) -> StoreFailedError:
    """The same, and how to go on without a file that the disk never gives again, its loss told."""
    if error.code not in _DISK:
        return error
    remedy = (
        f"mend the disk, or rename it to {aside(names, key)} to have its key told as damaged "
        "(taken away, it would count as never written)"
    )
    return StoreFailedError(error.path, error.step, error.code, os.strerror(error.code), remedy=remedy)


def _kept(name: str) -> str:
    return f"{KEPT}{name.removeprefix(DAMAGED)}"


def _is_key(name: str) -> bool:
    if name.startswith(".") or len(name) > KEY_LENGTH:
        return False
    try:
        check_key(name)
    except ValueError:
        return False
    return True


def _unread(error: StoreFailedError) -> str:
    """Of what is no file there is nothing that the system would say."""
    what = "no regular file" if error.code == errno.ENXIO else os.strerror(error.code)
    return f"unreadable: {what}"
