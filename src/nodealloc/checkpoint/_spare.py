"""Room that is kept on the disk for commits once it is full: who fills it could not be ended otherwise."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import Final

__all__ = ["FULL", "Spare"]

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Codes of a disk that takes no more."""
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Spare:
    """A file that holds nothing but blocks, which go to whoever writes next when it is removed.

    Nothing depends on it: where it cannot be made, or somebody takes it away, a
    full disk refuses commits.

    Args:
        path: Of the file; a name in `dir_fd` where that is given.
        size_bytes: So much.
        dir_fd: Descriptor of a directory.
    """

    def __init__(self, path: str, size_bytes: int, *, dir_fd: int | None = None) -> None:
        self._path, self._bytes, self._dir_fd = path, size_bytes, dir_fd
        self._is_kept = False
        self.keep()

    def keep(self) -> None:
        """Take the room, where there is as much; no work while it is taken."""
        if self._is_kept:
            return
        with contextlib.suppress(OSError, AttributeError):  # not every system can take room in advance
            descriptor = os.open(self._path, _FLAGS, 0o600, dir_fd=self._dir_fd)
            try:
                found = os.fstat(descriptor)
                # Not what somebody else has put there, nor a second name of what is his.
                is_mine = found.st_uid == os.geteuid() and found.st_nlink == 1
                if is_mine and stat.S_ISREG(found.st_mode):
                    os.posix_fallocate(descriptor, 0, self._bytes)
                    self._is_kept = True
            finally:
                os.close(descriptor)

    def give(self) -> bool:
        """Let it go; False where there is none."""
        if not self._is_kept:  # what stands there may be somebody's
            return False
        self._is_kept = False
        try:
            os.unlink(self._path, dir_fd=self._dir_fd)
        except OSError:
            return False
        return True
