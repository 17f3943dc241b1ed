"""The system calls of a store, one method each, so that tests can stand in for the disk."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

from nodealloc.checkpoint._errors import StoreFailedError

__all__ = ["Files", "call"]

P = ParamSpec("P")
T = TypeVar("T")


def call(step: str, path: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Make a system call, again while it is interrupted.

    Raises:
        StoreFailedError: It failed; `step` and `path` are what the error speaks of.
    """
    while True:
        try:
            return function(*args, **kwargs)
        except InterruptedError:
            continue
        except OSError as error:
            reason = error.strerror or str(error)
            raise StoreFailedError(path, step, error.errno or 0, reason) from error


class Files:
    """The real system calls. A subclass injects faults or simulates a disk.

    A class rather than a Protocol: whoever stands in for one call wants the
    others as they are. Each method is one call, without retry, and raises
    `OSError` as the call does. A path is a name in the directory `dir_fd`, a
    descriptor from `open`; without one it is absolute or relative to the process.
    """

    def open(self, path: str, flags: int, mode: int = 0o600, *, dir_fd: int | None = None) -> int:
        """As in section 2 of the manual, `openat`."""
        return os.open(path, flags | os.O_CLOEXEC, mode, dir_fd=dir_fd)

    def stat(self, descriptor: int) -> os.stat_result:
        """As in section 2 of the manual, `fstat`."""
        return os.fstat(descriptor)

    def read(self, descriptor: int, size: int) -> bytes:
        """As in section 2 of the manual, `read`; empty at the end of the file."""
        return os.read(descriptor, size)

    def write(self, descriptor: int, data: bytes | memoryview) -> int:
        """As in section 2 of the manual, `write`; may write less than it was given."""
        return os.write(descriptor, data)

    def begin_writing(self, descriptor: int) -> None:
        """Have the system write a file out soon, without waiting for it; a hint, that it may ignore."""
        if sys.platform == "linux":
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)

    def fsync(self, descriptor: int) -> None:
        """As in section 2 of the manual, `fsync` of a file or a directory."""
        os.fsync(descriptor)

    def close(self, descriptor: int) -> None:
        """As in section 2 of the manual, `close`."""
        os.close(descriptor)

    def rename(self, source: str, target: str, *, dir_fd: int | None = None) -> None:
        """As in section 2 of the manual, `renameat`, in one directory; the target is replaced."""
        os.rename(source, target, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)

    def unlink(self, path: str, *, dir_fd: int | None = None) -> None:
        """As in section 2 of the manual, `unlinkat`."""
        os.unlink(path, dir_fd=dir_fd)

    def names(self, descriptor: int) -> Sequence[str]:
        """All names in a directory."""
        return os.listdir(descriptor)  # pathlib lists no descriptors

    def lock(self, descriptor: int, *, wait: bool) -> None:
        """As in section 2 of the manual, `flock`, exclusive; `BlockingIOError` when taken."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
