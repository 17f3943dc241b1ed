"""Unix sockets as files: what stands at a path, whether it is still the same, and who listens there."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import stat
import struct
from pathlib import Path
from typing import Final

__all__ = [
    "MAX_PATH_BYTES", "NOBODY", "Pinned", "identity", "is_served", "listener", "pin", "resolved", "seen_at",
    "standing", "too_long",
]  # fmt: skip

MAX_PATH_BYTES = 107
"""Longest path of a Unix socket on Linux, in bytes."""

_KINDS = {
    stat.S_IFREG: "a regular file",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}

_CREDENTIALS = struct.Struct("3i")
"""Of a caller or listener: process, user, group."""
_AT_EMPTY_PATH = 0x1000
_AT_HANDLE_FID = 0x200
_HANDLE_BYTES = 128


class _FileHandle(ctypes.Structure):
    _fields_ = [
        ("handle_bytes", ctypes.c_uint),
        ("handle_type", ctypes.c_int),
        ("f_handle", ctypes.c_ubyte * _HANDLE_BYTES),
    ]


_libc = ctypes.CDLL(None, use_errno=True)


def resolved(path: str, /) -> str:
    """Where a path leads; the path itself where nothing can be, as with a zero byte in it."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return path


def identity(path: str | Path, /) -> tuple[int, int, bytes] | None:
    """What stands at a path (`standing`); None for nothing, and where nobody can tell."""
    try:
        return standing(path)
    except (OSError, ValueError):
        return None


def standing(path: str | Path, /) -> tuple[int, int, bytes]:
    """What stands at a path, told from everything else that ever stands there.

    Device, inode, and what tells two owners of one inode number apart: the file
    handle, which holds the inode's generation, where the file system has one,
    else the time of the last change. Numbers of inodes are used again at once,
    and the clock of a file system ticks every few milliseconds: a socket that
    is removed and bound again in between differs in nothing else.

    Raises:
        OSError: Nothing is there, or nobody can tell.
    """
    # Looked at through a descriptor, so that all three are of one file.
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        return status.st_dev, status.st_ino, _handle(descriptor) or str(status.st_ctime_ns).encode()
    finally:
        os.close(descriptor)


def too_long(path: str | Path, /) -> str:
    """Why nobody can dial this path, in words; "" when it is short enough."""
    try:
        length = len(os.fsencode(path))
    except UnicodeEncodeError:  # no path at all; nothing can be there
        return ""
    if length <= MAX_PATH_BYTES:
        return ""
    return (
        f"{length} bytes are too long for the path of a socket, {MAX_PATH_BYTES} is the limit; "
        "choose a shorter directory or name"
    )


def is_served(path: str | Path, /) -> bool:
    """Whether somebody listens there now; never waits. A socket of a dead process is not served.

    Raises:
        OSError: No descriptor is left to look with.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as caller:
        try:
            caller.connect(os.fspath(path))
        except BlockingIOError:  # it listens and has more callers than it takes at once
            return True
        except (OSError, ValueError):
            return False
    return True


NOBODY: Final = -1
"""Stands for whoever listens where no caller is taken now."""


def listener(path: str | Path, /) -> int:
    """Number of the process that listens there; 0 where nobody can tell. Never waits.

    `NOBODY` where no caller is taken: nobody listens, or more callers wait there
    than it takes at once. All such sockets count as one owner's: were each its own,
    a thousand of them would be a thousand newcomers.

    It is the process that began to listen, as the kernel says to a caller. One of
    another pid namespace that this one cannot see has no number, and the first
    process, which listens for those that it starts later, stands for nobody.
    """
    try:
        caller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    except OSError:  # no descriptor is left to look with
        return 0
    with caller:
        try:
            caller.connect(os.fspath(path))
            credentials = caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        except (OSError, ValueError):
            return NOBODY
    process = int(_CREDENTIALS.unpack(credentials)[0])
    return 0 if process == 1 else process


def seen_at(path: str | Path, /) -> str:
    """What stands at a path, as words of a sentence about a socket that gave no answer."""
    try:
        mode = Path(path).stat().st_mode
        served = stat.S_ISSOCK(mode) and is_served(path)
    except FileNotFoundError:
        return "nothing is there"
    except OSError as error:
        return os.strerror(error.errno or 0)
    except ValueError as error:  # a zero byte, or half a character
        return f"nothing can be there: {error}"
    if not stat.S_ISSOCK(mode):
        return f"{_KINDS.get(stat.S_IFMT(mode), 'something else')} is there, no socket"
    if not served:
        return "a socket is there on which nobody listens"
    return "somebody listens there and does not answer in gRPC"


class Pinned:
    """A socket that was found at a path, whatever becomes of the path since. Thread-safe.

    Attributes:
        address: A path that leads to this very socket until `release`.
    """

    def __init__(self, descriptor: int, /) -> None:
        self._descriptor: int | None = descriptor
        self.address = f"/proc/self/fd/{descriptor}"

    def is_served(self) -> bool:
        """Whether somebody listens on it now; never waits."""
        return self._descriptor is not None and is_served(self.address)

    def release(self) -> None:
        """Give it back; its address means nothing from here on. May be repeated."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def pin(path: str | Path, /) -> Pinned | None:
    """The socket at a path without symbolic links; None for nothing, for no socket, and behind a link.

    A path is judged once, and dialled later. Whoever may write in one of its
    directories could turn it into a link to somewhere else in between.
    """
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    except (OSError, ValueError):
        return None
    found = Pinned(descriptor)
    try:
        if stat.S_ISSOCK(os.fstat(descriptor).st_mode) and Path(found.address).readlink() == Path(path):
            return found
    except OSError:
        pass
    found.release()
    return None


def _handle(descriptor: int) -> bytes:
    handle = _FileHandle(handle_bytes=_HANDLE_BYTES)
    mount = ctypes.c_int()
    try:
        call = _libc.name_to_handle_at
    except AttributeError:
        return b""
    done = call(descriptor, b"", ctypes.byref(handle), ctypes.byref(mount), _AT_EMPTY_PATH)
    if done != 0 and ctypes.get_errno() == errno.EOPNOTSUPP:
        # File systems that nobody can export over NFS answer to this flag alone.
        handle.handle_bytes = _HANDLE_BYTES
        flags = _AT_EMPTY_PATH | _AT_HANDLE_FID
        done = call(descriptor, b"", ctypes.byref(handle), ctypes.byref(mount), flags)
    return bytes(handle.f_handle[: handle.handle_bytes]) if done == 0 else b""
