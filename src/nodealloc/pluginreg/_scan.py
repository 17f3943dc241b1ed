"""Looking: which sockets stand below a directory right now."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Iterator

from nodealloc.pluginreg._sightings import Identity

__all__ = ["scan", "subdirectories"]

_AT_FDCWD = -100
_HANDLE_BYTES = 128


class _FileHandle(ctypes.Structure):
    _fields_ = [
        ("handle_bytes", ctypes.c_uint),
        ("handle_type", ctypes.c_int),
        ("f_handle", ctypes.c_ubyte * _HANDLE_BYTES),
    ]


_libc = ctypes.CDLL(None, use_errno=True)


def scan(directory: str, /) -> dict[str, Identity]:
    """Sockets below a directory, by path; a directory that is not there holds none.

    Files and directories whose name begins with a dot, and whatever is no
    socket, do not count. A symbolic link to a socket counts as that socket; to
    a directory, it is not followed. What vanishes while being looked at, or may
    not be read, is left out.

    Source: kubelet ``pluginmanager/pluginwatcher``, which goes into directories
    with a dot at start and not later.
    """
    found: dict[str, Identity] = {}
    for entry in _walk(directory):
        try:
            status = entry.stat()
        except OSError:
            continue
        if stat.S_ISSOCK(status.st_mode):
            birth = _handle(entry.path) or str(status.st_ctime_ns).encode()
            found[entry.path] = Identity(status.st_dev, status.st_ino, birth)
    return found


def subdirectories(directory: str, /) -> Iterator[str]:
    """The directory and all below it in which sockets may stand, outer ones first."""
    yield directory
    for entry in _walk(directory):
        try:
            if entry.is_dir(follow_symlinks=False):
                yield entry.path
        except OSError:
            continue


def _walk(directory: str) -> Iterator[os.DirEntry[str]]:
    waiting = [directory]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in listed:
            if entry.name.startswith("."):
                continue
            yield entry
            try:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
            except OSError:
                continue


def _handle(path: str) -> bytes:
    """The file's handle, which holds its generation; empty where there is none.

    Numbers of inodes are used again at once, and the clock of a file system
    ticks every few milliseconds: a socket that is removed and bound again in
    between differs in nothing else.
    """
    handle = _FileHandle(handle_bytes=_HANDLE_BYTES)
    mount = ctypes.c_int()
    flags = 0x400  # AT_SYMLINK_FOLLOW
    try:
        call = _libc.name_to_handle_at
    except AttributeError:
        return b""
    done = call(_AT_FDCWD, os.fsencode(path), ctypes.byref(handle), ctypes.byref(mount), flags)
    if done != 0 and ctypes.get_errno() == errno.EOPNOTSUPP:
        # AT_HANDLE_FID: file systems that nobody can export over NFS answer to this one alone.
        handle.handle_bytes = _HANDLE_BYTES
        done = call(_AT_FDCWD, os.fsencode(path), ctypes.byref(handle), ctypes.byref(mount), flags | 0x200)
    return bytes(handle.f_handle[: handle.handle_bytes]) if done == 0 else b""
