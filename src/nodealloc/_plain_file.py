"""Opens files that somebody else has put there: nothing waits, and nothing but a file is touched."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

__all__ = ["NoPlainFileError", "open_plain"]

_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class NoPlainFileError(OSError):
    """Something else than a file stands there."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(errno.EINVAL, "no regular file", str(path))


def open_plain(path: str | Path, *, dir_fd: int | None = None, follow_links: bool = True) -> int:
    """A descriptor to read a regular file by.

    It is looked at before it is opened: opening a pipe waits for who writes it or lets
    them go on, and that of a device may do what the device is for.

    Raises:
        NoPlainFileError: Something else stands there.
        OSError: It cannot be opened.
    """
    if not stat.S_ISREG(os.stat(path, dir_fd=dir_fd, follow_symlinks=follow_links).st_mode):
        raise NoPlainFileError(path)
    descriptor = os.open(path, _FLAGS | (0 if follow_links else os.O_NOFOLLOW), dir_fd=dir_fd)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):  # exchanged meanwhile
        os.close(descriptor)
        raise NoPlainFileError(path)
    return descriptor
