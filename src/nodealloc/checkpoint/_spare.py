"""Room that is kept on the disk for commits once it is full: who fills it could not be ended otherwise."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import Final

from nodealloc.checkpoint._directory import MARK

__all__ = ["FULL", "Spare"]

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Codes of a disk that takes no more."""
_NAME: Final = f"{MARK}spare"
_BYTES: Final = 1 << 16
"""Enough for the few small files of a commit by which something ends."""
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Spare:
    """A file that holds nothing but blocks, which go to whoever writes next when it is removed.

    Nothing depends on it: where it cannot be made, or somebody takes it away, a
    full disk refuses commits.

    Args:
        directory: Descriptor of the store's.
    """

    def __init__(self, directory: int) -> None:
        self._directory = directory
        self._is_kept = False
        self.keep()

    def keep(self) -> None:
        """Take the room, where there is as much; no work while it is taken."""
        if self._is_kept:
            return
        with contextlib.suppress(OSError):
            descriptor = os.open(_NAME, _FLAGS, 0o600, dir_fd=self._directory)
            try:
                if stat.S_ISREG(os.fstat(descriptor).st_mode):
                    os.posix_fallocate(descriptor, 0, _BYTES)
                    self._is_kept = True
            finally:
                os.close(descriptor)

    def give(self) -> bool:
        """Let it go; False where there is none."""
        self._is_kept = False
        try:
            os.unlink(_NAME, dir_fd=self._directory)
        except OSError:
            return False
        return True
