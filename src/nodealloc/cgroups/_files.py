"""Control files: one write a call, and directories that come and go."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING, Final

from nodealloc._control_file import write_control_file
from nodealloc._not_now import NOT_NOW
from nodealloc._walk import deepest_first

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["KernelFiles"]


_AT_ONCE: Final = 1 << 16
"""Bytes of a read; control files are shorter, but for lists of processes."""


class KernelFiles:
    """Control files as the kernel gives them. May be used from several threads."""

    def read(self, path: str, /) -> str | None:
        """Text of a file without the newline at its end; None where there is none to read."""
        try:
            return _read(path).decode().rstrip("\n")
        except OSError as error:
            if error.errno in {
                errno.ENOENT,
                errno.ENOTDIR,
                errno.ENODEV,
            }:  # ENODEV: it went while it was open
                return None
            raise

    def write(self, path: str, text: str, /) -> None:
        """Write a text with one system call; the kernel's refusal is an `OSError`."""
        write_control_file(path, text)

    def make(self, path: str, /) -> None:
        """Make one directory; one that is there is not an error."""
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, mode=0o755)  # noqa: PTH102 - quicker

    def remove(self, path: str, /) -> None:
        """Remove one directory that has no directories in it; gone is not an error."""
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(path)  # noqa: PTH106 - quicker

    def exists(self, path: str, /) -> bool:
        """Whether a directory is there."""
        try:
            return stat.S_ISDIR(os.stat(path).st_mode)  # noqa: PTH116 - quicker
        except (FileNotFoundError, NotADirectoryError):
            return False

    def children(self, path: str, /) -> list[str]:
        """Names of the directories in a directory, sorted; none if it is absent."""
        try:
            with os.scandir(path) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def walk(self, path: str, /) -> Iterator[str]:
        """A directory and all below it, deepest first; each path leads there until the next is asked for."""
        return deepest_first(path)

    def pids(self, path: str, /) -> frozenset[int]:
        """Processes directly in a cgroup's directory; those of a threaded one are listed further up.

        Raises:
            OSError: The kernel does not say now; there may be some.
        """
        return self._ids(f"{path}/cgroup.procs")

    def threads(self, path: str, /) -> frozenset[int]:
        """Threads directly in a v2 cgroup's directory; these are all that a threaded one has."""
        return self._ids(f"{path}/cgroup.threads")

    def _ids(self, path: str) -> frozenset[int]:
        try:
            text = self.read(path)
        except OSError as error:
            if error.errno in NOT_NOW:
                raise
            return frozenset()
        return frozenset(map(int, (text or "").split()))


def _read(path: str) -> bytes:
    """All of a file. Done by the hundred for each pod that starts, where `Path` takes most of the time."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = b""
        while more := os.read(descriptor, _AT_ONCE):
            text += more
        return text
    finally:
        os.close(descriptor)
