"""One directory in which several names change together or not at all.

```text
one name    new file ─▶ fsync ─▶ rename ─▶ fsync directory        (the rename is the commit)
several     new files ─▶ fsync each ─▶ record ─▶ fsync ─▶ rename ─▶ fsync directory   (the commit)
            then: rename each ─▶ fsync directory ─▶ remove the record
at start    a record? ─▶ rename what is not renamed yet ─▶ fsync directory ─▶ remove it
```
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from nodealloc.checkpoint._commit import Change, LaterRecordError, RedoRecord, Rename, digest
from nodealloc.checkpoint._errors import StoreFailedError
from nodealloc.checkpoint._files import Files, call
from nodealloc.checkpoint._ownership import check_owner

__all__ = ["DAMAGED", "IDENTITY", "KEPT", "LARGEST", "MARK", "NO_FILE", "Change", "Directory", "aside"]

MARK = ".nodealloc."
"""Names that begin so are the store's own; no key can."""

DAMAGED = f"{MARK}damaged-"
KEPT = f"{MARK}kept-"
IDENTITY = f"{MARK}identity"

NO_FILE = frozenset({errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.ENODEV, errno.EAGAIN, errno.EFBIG})
"""Codes of a name under which something else stands than a file of a store: a folder, a link, a pipe."""

_OTHER_KINDS: Final[Mapping[int, int]] = {stat.S_IFDIR: errno.EISDIR, stat.S_IFLNK: errno.ELOOP}
_LOOK: Final[int] = getattr(os, "O_PATH", 0)
"""Opens a name without what it stands for; 0 where the system cannot."""

_RECORD = f"{MARK}commit"
_NEW = f"{MARK}new-"
_AT_ONCE = 64
"""Files of one commit that are open at a time."""
LARGEST = 1 << 28
"""Bytes of a file; without a limit an endless one would take all memory at the next start."""


def aside(names: Iterable[str], key: str, *, kind: str = DAMAGED) -> str:
    """A free name to move a damaged file to: one number above all that are there."""
    numbers = [0]
    for name in names:
        for used in (DAMAGED, KEPT):
            number = name.removeprefix(used).partition(".")[0]
            if name.startswith(used) and number.isdecimal():
                numbers.append(int(number))
    return f"{kind}{max(numbers) + 1}.{key}"


def _too_large(step: str, path: str) -> StoreFailedError:
    return StoreFailedError(path, step, errno.EFBIG, f"more than {LARGEST >> 20} MiB are no checkpoint")


class Directory:
    """A directory and its transactions. Not for several threads; its owner locks.

    Everything happens in the directory that was opened, whatever its path leads
    to by then.

    Args:
        path: An existing directory, of this user or root, that nobody else may write.
        files: The system calls.

    Attributes:
        path: For messages.
        descriptor: Of the directory; open until `close`.
    """

    def __init__(self, path: str, files: Files) -> None:
        self.path = path
        self._files = files
        self._unfinished: RedoRecord | None = None
        self._undo: Change | None = None
        self.descriptor = call("open", path, files.open, path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            check_owner(path, call("fstat", path, files.stat, self.descriptor))
        except BaseException:
            self.close()
            raise

    def names(self) -> list[str]:
        """All names, sorted."""
        return sorted(call("listdir", self.path, self._files.names, self.descriptor))

    def read(self, name: str) -> bytes:
        """All bytes of a file; what else stands there is not opened, a code of `NO_FILE` says what it is."""
        path = self._at(name)
        if _LOOK:
            self._look(path, self._open(name, _LOOK | os.O_NOFOLLOW))
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = self._open(name, flags)
        try:
            check_owner(path, self._as_file(path, descriptor))
            parts: list[bytes] = []
            while part := call("read", path, self._files.read, descriptor, 1 << 20):
                parts.append(part)
                if len(parts) > LARGEST >> 20:
                    raise _too_large("read", path)
            return b"".join(parts)
        finally:
            self._close(descriptor)

    def _look(self, path: str, named: int) -> None:
        """Refuse what is no file: to open it may do what a device is for, or let a pipe's writer go on."""
        try:
            self._as_file(path, named)
        finally:
            self._close(named)

    def _as_file(self, path: str, descriptor: int) -> os.stat_result:
        found = call("fstat", path, self._files.stat, descriptor)
        if not stat.S_ISREG(found.st_mode):
            code = _OTHER_KINDS.get(stat.S_IFMT(found.st_mode), errno.ENXIO)
            raise StoreFailedError(path, "open", code, "no regular file")
        return found

    def recover(self) -> None:
        """Finish the commit that a crash cut off, and clean what it left.

        A record that cannot be read is moved aside under the key `@commit`.

        Raises:
            StoreFailedError: A later release began it, whose new files only that one can place.
        """
        names = self.names()
        if _RECORD in names:
            redo = self._redo_record()
            if isinstance(redo, str):
                self._rename(_RECORD, aside(names, "@commit"))
            elif self._was_committed(redo, names):
                self._finish(redo)
            else:
                self._remove(_RECORD)
                self._flush()
        for name in names:
            if name.startswith(_NEW):
                self._clear(name, names)
        self._flush()

    def commit(self, change: Change, before: Mapping[str, bytes]) -> None:
        """Make a change durable, all or nothing.

        Args:
            change: What is to change.
            before: What names held before, for those that may have to be restored.

        Raises:
            StoreFailedError: The directory is as it was.
        """
        self.settle()
        new: list[Rename] = []
        record = None
        puts = list(change.puts.items())
        try:
            for start in range(0, len(puts), _AT_ONCE):
                some = puts[start : start + _AT_ONCE]
                made = self._prepare_all(some)
                new += (Rename(one, name, digest(data)) for one, (name, data) in zip(made, some, strict=True))
            moves = (Rename(*pair) for pair in change.moves)
            redo = RedoRecord(renames=(*new, *moves), removes=change.removes)
            if change.steps() > 1:
                record = self._prepare("@commit", redo.pack())
        except StoreFailedError:
            self._discard(step.source for step in new)
            raise
        if record is None:
            self._commit_at_once(redo, before)
        else:
            self._commit_by_record(redo, record, [*(step.source for step in new), record])

    def settle(self) -> None:
        """Do what an earlier commit had to leave undone.

        Raises:
            StoreFailedError: It is still undone.
        """
        if self._unfinished is not None:
            self._finish(self._unfinished)
            self._unfinished = None
        if self._undo is not None:
            # Its record goes first, and for good: without its new files it would bring up half a commit.
            self._remove(_RECORD)
            self._flush()
            for name in self._undo.removes:
                self._remove(name)
            for name, data in self._undo.puts.items():
                self._rename(self._prepare(name, data), name)
            self._flush()
            self._undo = None

    def move(self, pairs: Iterable[tuple[str, str]]) -> list[str]:
        """Rename files, each for itself, and flush once; answers with those that stayed."""
        stayed: list[str] = []
        for source, target in pairs:
            try:
                self._rename(source, target)
            except StoreFailedError:
                stayed.append(source)
        with contextlib.suppress(StoreFailedError):
            self._flush()
        return stayed

    def close(self) -> None:
        """Give the descriptor back."""
        self._close(self.descriptor)

    def _commit_at_once(self, redo: RedoRecord, before: Mapping[str, bytes]) -> None:
        touched = [step.target for step in redo.renames if step.digest]
        touched += redo.removes
        try:
            self._run(redo)
            self._flush()
        except StoreFailedError:
            self._discard(step.source for step in redo.renames if step.digest)
            # A rename or flush that failed may still have happened: go back to what is known.
            self._undo = Change(
                puts={name: before[name] for name in touched if name in before},
                removes=tuple(name for name in touched if name not in before),
            )
            with contextlib.suppress(StoreFailedError):
                self.settle()
            raise

    def _commit_by_record(self, redo: RedoRecord, record: str, new: Sequence[str]) -> None:
        try:
            self._rename(record, _RECORD)
            self._flush()
        except StoreFailedError:
            self._undo = Change(removes=tuple(new))
            with contextlib.suppress(StoreFailedError):
                self.settle()
            raise
        self._unfinished = redo
        # The commit stands: what fails from here on is done later, by this process or the next.
        with contextlib.suppress(StoreFailedError):
            self.settle()

    def _redo_record(self) -> RedoRecord | str:
        try:
            return RedoRecord.unpack(self.read(_RECORD))
        except StoreFailedError as error:
            if error.code not in NO_FILE:
                raise
            return str(error)
        except LaterRecordError as error:
            remedy = "start the release that wrote it, which finishes that commit"
            raise StoreFailedError(self._at(_RECORD), "read", 0, str(error), remedy=remedy) from error

    def _clear(self, name: str, names: Iterable[str]) -> None:
        try:
            self._remove(name)
        except StoreFailedError as error:
            if error.code not in NO_FILE:
                raise
            self._rename(name, aside(names, name, kind=KEPT))

    def _was_committed(self, redo: RedoRecord, names: Sequence[str]) -> bool:
        """Whether all new files of a record are there, under their old name or the new one.

        The record may have reached the disk without them when power went before
        the directory was flushed, and it may come back after a later commit: in
        both cases it says nothing about what the names should hold.
        """
        for step in redo.renames:
            name = step.source if step.source in names else step.target
            if step.digest and (name not in names or digest(self.read(name)) != step.digest):
                return False
        return True

    def _finish(self, redo: RedoRecord) -> None:
        self._run(redo)
        self._flush()
        self._remove(_RECORD)

    def _run(self, redo: RedoRecord) -> None:
        for step in redo.renames:
            self._rename(step.source, step.target, missing_is_done=True)
        for name in redo.removes:
            self._remove(name)

    def _prepare(self, name: str, data: bytes) -> str:
        """A new file with this content, flushed."""
        return self._prepare_all([(name, data)])[0]

    def _prepare_all(self, contents: Sequence[tuple[str, bytes]]) -> list[str]:
        """New files with these contents, flushed; their names are used once only.

        A name that came back could be taken for that of an older commit whose
        record a power cut revives; one that can be told in advance could be
        somebody else's already. An error names the file whose place one is to
        take, so that it is the same at each try.
        """
        made: dict[str, int] = {}
        try:
            for name, data in contents:
                new = f"{_NEW}{os.urandom(8).hex()}.{name}"
                if len(data) > LARGEST:
                    raise _too_large("write", self._at(name))
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
                made[new] = self._open(new, flags, told=name)
                self._fill(name, made[new], data)
            if len(made) > 1:
                # On their way together, the disk takes them together: a wait for each costs far more.
                for descriptor in made.values():
                    with contextlib.suppress(OSError):
                        self._files.begin_writing(descriptor)
            for (name, _), descriptor in zip(contents, made.values(), strict=True):
                call("fsync", self._at(name), self._files.fsync, descriptor)
        except StoreFailedError:
            self._close_all(made.values())
            self._discard(made)
            raise
        self._close_all(made.values())
        return list(made)

    def _fill(self, name: str, descriptor: int, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            written = call("write", self._at(name), self._take_some, descriptor, rest)
            rest = rest[written:]

    def _close_all(self, descriptors: Iterable[int]) -> None:
        for one in descriptors:
            self._close(one)

    def _take_some(self, descriptor: int, rest: memoryview) -> int:
        written = self._files.write(descriptor, rest)
        if written == 0:
            raise OSError(errno.ENOSPC, "no byte was taken")
        return written

    def _discard(self, names: Iterable[str]) -> None:
        for name in names:
            with contextlib.suppress(StoreFailedError):
                self._remove(name)

    def _rename(self, source: str, target: str, *, missing_is_done: bool = False) -> None:
        path = self._at(source)
        try:
            call("rename", path, self._files.rename, source, target, dir_fd=self.descriptor)
        except StoreFailedError as error:
            if not (missing_is_done and error.code == errno.ENOENT):
                raise

    def _remove(self, name: str) -> None:
        path = self._at(name)
        try:
            call("unlink", path, self._files.unlink, name, dir_fd=self.descriptor)
        except StoreFailedError as error:
            if error.code != errno.ENOENT:
                raise

    def _flush(self) -> None:
        call("fsync", self.path, self._files.fsync, self.descriptor)

    def _close(self, descriptor: int) -> None:
        # What was flushed is safe, and a descriptor is gone after close(2) whatever it says.
        with contextlib.suppress(OSError):
            self._files.close(descriptor)

    def _open(self, name: str, flags: int, *, told: str = "") -> int:
        at = self._at(told or name)
        return call("open", at, self._files.open, name, flags, 0o600, dir_fd=self.descriptor)

    def _at(self, name: str) -> str:
        return f"{self.path}/{name}"
