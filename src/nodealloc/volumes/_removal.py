"""A directory deleted with all that is in it, however deep, and nothing beyond a mount or a link."""

from __future__ import annotations

import errno
import os
from typing import Final, NamedTuple

from nodealloc._descriptors import let_go
from nodealloc.volumes._errors import MountedHereError, OutsideRootError

__all__ = ["mount_id", "remove_at", "remove_empty"]

_LOOK: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FDINFO_BYTES: Final = 4096
_SHOWN_LEVELS: Final = 8
"""Directories that a message names at either end of a longer path."""


def remove_at(parent: int, name: str, path: str, /) -> None:
    """Delete the directory `name` in `parent` and what is in it; an absent one is no error.

    Descriptors do not grow with depth: a pod chooses how deep its directories
    are, and must not use up those of this process. Time and memory grow with
    what is in the tree, whatever its shape. What is mounted in it is found
    without asking the file system that is mounted: one that answers no more
    holds nothing up.

    Args:
        parent: Descriptor of the directory that it stands in.
        name: One path component.
        path: Of it, for messages.

    Raises:
        MountedHereError: Something is mounted on it or below it. What lies in
            the mount was not touched; beside it, files may be gone.
        OutsideRootError: It is no directory, or one in it was moved away meanwhile.
        OSError: The file system refuses; names the path.
    """
    descent = _TreeWalk(mount_id(parent), path)
    try:
        if descent.enter(parent, None, name):
            descent.empty()
    finally:
        descent.close()
    remove_empty(parent, name, path)


def remove_empty(parent: int, name: str, path: str, /) -> None:
    """Remove an empty directory; an absent one is no error. Raises `MountedHereError`, `OSError`."""
    try:
        os.rmdir(name, dir_fd=parent)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _named(error, path) from error


def mount_id(fd: int, /) -> int:
    """The kernel's number of the mount that a descriptor leads into; never waits for a file system."""
    # Plain calls: this is asked for each directory of a tree, and a text file takes several times as long.
    info = os.open(f"/proc/self/fdinfo/{fd}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = os.read(info, _FDINFO_BYTES)
    finally:
        let_go(info)
    _, found, rest = text.partition(b"mnt_id:")
    if not found:
        raise OSError(errno.ENOSYS, "this kernel tells no mount ids in /proc/self/fdinfo")
    return int(rest.split(None, 1)[0])


class _Level(NamedTuple):
    """A directory on the way down: its name, which one its parent is, what is left in its parent."""

    name: str
    parent: tuple[int, int]
    left: list[str]


class _TreeWalk:
    """Stands in one directory at a time; goes down by name and up by `..`.

    Each directory costs the same, however deep it lies: no path is built but for
    a message. Every call into the kernel lets other threads go on.
    """

    def __init__(self, mount: int, path: str) -> None:
        self._mount = mount
        self._path = path
        self._here = -1
        self._above: list[_Level] = []

    def enter(self, outer: int, name: str | None, entry: str) -> bool:
        """Step into the directory `entry` of `outer`, by `name` below the top; False when it is absent."""
        try:
            # Only named at first: to open what a server that is gone has mounted there would wait for it.
            look = os.open(entry, _LOOK, dir_fd=outer)
        except FileNotFoundError:
            return False
        except NotADirectoryError:
            raise OutsideRootError(
                self._where(name), "a symbolic link or a file stands where a directory should"
            ) from None
        except OSError as error:
            raise _named(error, self._where(name)) from error
        try:
            if mount_id(look) != self._mount:
                raise MountedHereError([self._where(name)])
            fd = os.open(".", _OPEN, dir_fd=look)
        except OSError as error:
            raise _named(error, self._where(name)) from error
        finally:
            let_go(look)
        self.close()
        self._here = fd
        return True

    def empty(self) -> None:
        """Delete all that is in it."""
        left = self._remove_files()
        while left or self._above:
            if left:
                name = left.pop()
                parent = _identity(self._here)
                if self.enter(self._here, name, name):
                    self._above.append(_Level(name, parent, left))
                    left = self._remove_files()
            else:
                level = self._above.pop()
                self._leave(level)
                self._remove_empty(level.name)
                left = level.left

    def close(self) -> None:
        """Stand nowhere."""
        if self._here >= 0:
            here, self._here = self._here, -1
            let_go(here)

    def _leave(self, level: _Level) -> None:
        fd = os.open("..", _OPEN, dir_fd=self._here)
        self.close()
        self._here = fd
        if _identity(fd) != level.parent:
            raise OutsideRootError(self._where(level.name), "it was moved away while it was deleted")

    def _remove_files(self) -> list[str]:
        """Delete everything but directories, whose names are returned."""
        inner: list[str] = []
        files: list[str] = []
        with os.scandir(self._here) as entries:
            for entry in entries:
                (inner if entry.is_dir(follow_symlinks=False) else files).append(entry.name)
        for name in files:
            self._unlink(name)
        return inner

    def _unlink(self, name: str) -> None:
        try:
            os.unlink(name, dir_fd=self._here)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _named(error, self._where(name)) from error

    def _remove_empty(self, name: str) -> None:
        try:
            os.rmdir(name, dir_fd=self._here)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _named(error, self._where(name)) from error

    def _where(self, name: str | None) -> str:
        """A path for a message; of a long one both ends."""
        if name is None:
            return self._path
        names = [level.name for level in self._above] + [name]
        if len(names) > 2 * _SHOWN_LEVELS:
            between = f"({len(names) - 2 * _SHOWN_LEVELS} more)"
            names = [*names[:_SHOWN_LEVELS], between, *names[-_SHOWN_LEVELS:]]
        return "/".join([self._path, *names])


def _identity(fd: int) -> tuple[int, int]:
    found = os.fstat(fd)
    return found.st_dev, found.st_ino


def _named(error: OSError, path: str) -> Exception:
    """The same error by its whole path; a busy name is a mount point."""
    if error.errno == errno.EBUSY:
        return MountedHereError([path])
    return type(error)(error.errno, error.strerror, path)
