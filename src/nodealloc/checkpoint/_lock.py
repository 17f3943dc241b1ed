"""An exclusive lock that dies with its process and names it."""

from __future__ import annotations

import contextlib
import errno
import os

from nodealloc.checkpoint._errors import StoreBusyError, StoreFailedError
from nodealloc.checkpoint._files import Files, call
from nodealloc.checkpoint._ownership import check_alone

__all__ = ["PidLock"]

_WIDTH = 20


class PidLock:
    """A file that one process locks; it holds the pid of the last owner, and a line of its choice.

    The kernel gives the lock back when the process ends, however it ends, so
    that there is nothing to clean after a crash and no stale lock.

    Args:
        path: The lock file; made when absent, never removed (a removed lock file
            would let two processes lock two files of one name).
        files: The system calls.
        wait: Whether to wait until the owner gives it back.
        note: One line for whoever looks at the store without holding it.
        dir_fd: Of the directory that it lies in, by the last part of `path`.

    Raises:
        StoreBusyError: Somebody else holds it, with that process's pid.
        StoreFailedError: The file cannot be made or locked, others can change
            it, or it has a second name: what is written here would stand there.
    """

    def __init__(
        self, path: str, files: Files, *, wait: bool, note: str = "", dir_fd: int | None = None
    ) -> None:
        self._files = files
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        name = path if dir_fd is None else path.rpartition("/")[2]
        self._descriptor = call("open", path, files.open, name, flags, 0o600, dir_fd=dir_fd)
        try:
            check_alone(path, call("fstat", path, files.stat, self._descriptor))
            self._take(path, wait=wait)
        except BaseException:
            self.release()
            raise
        # Who holds it is a courtesy to the next one; a full disk must not keep this one out.
        with contextlib.suppress(OSError):
            files.write(self._descriptor, f"{os.getpid():<{_WIDTH - 1}d}\n{note}\n".encode())

    def release(self) -> None:
        """Give the lock back."""
        with contextlib.suppress(OSError):
            self._files.close(self._descriptor)

    def _take(self, path: str, *, wait: bool) -> None:
        try:
            call("flock", path, self._files.lock, self._descriptor, wait=wait)
        except StoreFailedError as error:
            if error.code in {errno.EWOULDBLOCK, errno.EACCES}:
                raise StoreBusyError(path, self._owner()) from None
            raise

    @staticmethod
    def note_in(data: bytes) -> str:
        """The note in the bytes of a lock file; what is behind its line is left from a longer one."""
        return data[_WIDTH:].decode("utf-8", "replace").partition("\n")[0]

    def _owner(self) -> int:
        try:
            text = self._files.read(self._descriptor, _WIDTH).decode("ascii", "replace").strip()
        except OSError:
            return 0
        return int(text) if text.isdecimal() else 0
