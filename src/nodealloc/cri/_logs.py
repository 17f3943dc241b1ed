"""Container logs as runtimes write them: one line of text a line, with time, stream and a mark."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final

from nodealloc import _attrs as attrs
from nodealloc._arguments import wrong
from nodealloc._plain_file import open_plain
from nodealloc._typed import typed
from nodealloc.dsw_asw import Cancel

__all__ = ["LogLine", "follow_log", "last_output", "read_log"]

_LINE: Final = re.compile(rb"(\S+) (stdout|stderr) ([A-Z](?::[A-Z])*) (.*)", re.DOTALL)
_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)")
_CHUNK_BYTES: Final = 1 << 16
_LOOK_S: Final = 0.1


@attrs.frozen(kw_only=True)
class LogLine:
    """One line of a log.

    Attributes:
        text: What the container wrote, without the end of the line.
        stream: `stdout` or `stderr`; "" for a line that is none of a log.
        unix_s: When, in Unix seconds; None for a line that is none of a log.
        is_partial: Whether the container's own line goes on in the next one.
    """

    text: bytes
    stream: str = ""
    unix_s: float | None = None
    is_partial: bool = False

    @classmethod
    @typed
    def of(cls, line: bytes, /) -> LogLine:
        """Read one; a line that makes no sense is kept as it is, without a stream."""
        found = _LINE.fullmatch(line)
        time_s = None if found is None else _unix_s(found[1])
        if found is None or time_s is None:
            return cls(text=line)
        return cls(
            text=found[4],
            stream=found[2].decode("ascii"),
            unix_s=time_s,
            is_partial=b"P" in found[3].split(b":"),
        )


@typed
def read_log(path: str | Path, /) -> Iterator[LogLine]:
    """Every whole line that is there now, one after another, at the cost of a buffer.

    Raises:
        OSError: The file cannot be read.
    """
    with _open(path) as file:
        for line in file:
            if line.endswith(b"\n"):
                yield LogLine.of(line[:-1])


@typed
def last_output(path: str | Path, /) -> bytes:
    """The end of what a container wrote, as it wrote it; nothing where there is no log.

    So much that 80 lines and 2,048 bytes of it are there, whatever the size of the log.

    Raises:
        OSError: The file cannot be read.
    """
    try:
        file = _open(path)
    except FileNotFoundError:
        return b""
    with file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _CHUNK_BYTES))
        lines = file.read(_CHUNK_BYTES).split(b"\n")
    if size > _CHUNK_BYTES:
        # Where it begins nobody knows: in the middle of a line, or of its time.
        del lines[0]
    told = [LogLine.of(line) for line in lines if line]
    return b"".join(one.text if one.is_partial else one.text + b"\n" for one in told)


@typed
def follow_log(path: str | Path, cancel: Cancel, /, *, look_s: float = _LOOK_S) -> Iterator[LogLine]:
    """Every line that is there, and those that come, until asked to stop.

    A log that is put aside and begun anew is read to its end, then the new one
    from its beginning; one that was cut short is read from its beginning.

    Args:
        path: The file; it may come later.
        cancel: Ends it; what is there by then has been told.
        look_s: Seconds between two looks at the file, above 0.

    Raises:
        ConfigurationError: No time between two looks.
    """
    if not look_s > 0:
        raise wrong("follow_log: look_s", look_s, "a number of seconds above 0")
    return _followed(Path(path), cancel, look_s)


def _followed(path: Path, cancel: Cancel, look_s: float) -> Iterator[LogLine]:
    reader = _Reader(path)
    try:
        while True:
            last = cancel.is_set()
            yield from reader.new_lines()
            if last:
                return
            # Asked to stop, it looks once more: what was written before that is told.
            cancel.wait(look_s)
    finally:
        reader.close()


class _Reader:
    """A file that may be replaced while it is read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = self._opened()
        self._rest = b""

    def new_lines(self) -> Iterator[LogLine]:
        """Whole lines since the last time, across a change of files."""
        while True:
            # Asked before reading: what is written before a file is put aside is read to its end.
            was_replaced = self._is_replaced()
            yield from self._read()
            if not was_replaced:
                return
            self.close()
            self._file, self._rest = self._opened(), b""

    def close(self) -> None:
        """Give the file back."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read(self) -> Iterator[LogLine]:
        if self._file is None:
            return
        at = self._file.tell()
        # Shorter than what was read of it: it was cut, and begins anew.
        if self._file.seek(0, os.SEEK_END) < at:
            at, self._rest = 0, b""
        self._file.seek(at)
        while chunk := self._file.read(_CHUNK_BYTES):
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            yield from map(LogLine.of, lines)

    def _is_replaced(self) -> bool:
        try:
            there = self._path.stat()
        except OSError:
            return False
        if self._file is None:
            return True
        mine = os.fstat(self._file.fileno())
        return (there.st_dev, there.st_ino) != (mine.st_dev, mine.st_ino)

    def _opened(self) -> BinaryIO | None:
        try:
            return _open(self._path)
        except FileNotFoundError:
            return None


def _open(path: str | Path) -> BinaryIO:
    return os.fdopen(open_plain(path), "rb")


def _unix_s(text: bytes) -> float | None:
    found = _TIME.fullmatch(text.decode("ascii", "replace"))
    if found is None:
        return None
    try:
        whole = datetime.fromisoformat(found[1] + found[3].replace("Z", "+00:00"))
    except ValueError:
        return None
    return whole.astimezone(UTC).timestamp() + float(found[2] or 0)
