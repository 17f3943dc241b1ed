"""A directory deleted with all that is in it, however deep, and nothing beyond a mount or a link."""

from __future__ import annotations

import errno
import os
from typing import Final, NamedTuple

from nodealloc.volumes._errors import MountedHereError, OutsideRootError

__all__ = ["mount_id", "remove_at", "remove_empty"]

_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_at(parent: int, name: str, path: str, /) -> None:
    """Delete the directory `name` in `parent` and what is in it; an absent one is no error.

    Descriptors do not grow with depth: a pod chooses how deep its directories
    are, and must not use up those of this process.

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
    descent = _Descent(mount_id(parent), path)
    try:
        if descent.enter(parent, name, path):
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
    """The kernel's number of the mount that a descriptor leads into."""
    with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as lines:  # noqa: PTH123 - a kernel file
        for line in lines:
            if line.startswith("mnt_id:"):
                return int(line.split()[1])
    raise OSError(errno.ENOSYS, "this kernel tells no mount ids in /proc/self/fdinfo")


class _Level(NamedTuple):
    """A directory on the way down: its name, which one its parent is, what is left in its parent."""

    name: str
    parent: tuple[int, int]
    left: list[str]


class _Descent:
    """Stands in one directory at a time; goes down by name and up by `..`."""

    def __init__(self, mount: int, path: str) -> None:
        self._mount = mount
        self._path = path
        self._here = -1
        self._above: list[_Level] = []

    def enter(self, outer: int, name: str, path: str) -> bool:
        """Step into a directory of `outer`; False when it is absent."""
        try:
            fd = os.open(name, _OPEN, dir_fd=outer)
        except FileNotFoundError:
            return False
        except NotADirectoryError:
            raise OutsideRootError(
                path, "a symbolic link or a file stands where a directory should"
            ) from None
        except OSError as error:
            raise _named(error, path) from error
        self.close()
        self._here = fd
        if mount_id(fd) != self._mount:
            raise MountedHereError([path])
        return True

    def empty(self) -> None:
        """Delete all that is in it."""
        left = self._remove_files()
        while left or self._above:
            if left:
                name = left.pop()
                parent = _identity(self._here)
                if self.enter(self._here, name, self._where(name)):
                    self._above.append(_Level(name, parent, left))
                    left = self._remove_files()
            else:
                level = self._above.pop()
                self._leave(level)
                remove_empty(self._here, level.name, self._where(level.name))
                left = level.left

    def close(self) -> None:
        """Stand nowhere."""
        if self._here >= 0:
            os.close(self._here)
            self._here = -1

    def _leave(self, level: _Level) -> None:
        fd = os.open("..", _OPEN, dir_fd=self._here)
        self.close()
        self._here = fd
        if _identity(fd) != level.parent:
            raise OutsideRootError(self._where(level.name), "it was moved away while it was deleted")

    def _remove_files(self) -> list[str]:
        """Delete everything but directories, whose names are returned."""
        with os.scandir(self._here) as entries:
            inner = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        for name, is_directory in inner:
            if not is_directory:
                self._unlink(name)
        return [name for name, is_directory in inner if is_directory]

    def _unlink(self, name: str) -> None:
        try:
            os.unlink(name, dir_fd=self._here)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _named(error, self._where(name)) from error

    def _where(self, name: str) -> str:
        return "/".join([self._path, *(level.name for level in self._above), name])


def _identity(fd: int) -> tuple[int, int]:
    found = os.fstat(fd)
    return found.st_dev, found.st_ino


def _named(error: OSError, path: str) -> Exception:
    """The same error by its whole path; a busy name is a mount point."""
    if error.errno == errno.EBUSY:
        return MountedHereError([path])
    return type(error)(error.errno, error.strerror, path)
