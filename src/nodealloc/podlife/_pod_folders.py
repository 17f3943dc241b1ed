"""The folders of pods below one root: listed, and removed without ever crossing a mount."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from nodealloc._mountinfo import parse_mountinfo, read_mountinfo
from nodealloc._typed import typed, typed_methods
from nodealloc.errors import ConfigurationError, PermanentError
from nodealloc.podlife._housekeeping import Remnant, RemnantKind

__all__ = ["MountInTheWayError", "PodFolders"]


class MountInTheWayError(PermanentError):
    """Something is mounted in a folder that was to be removed; what is below it was not touched.

    Attributes:
        path: Where.
    """

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is on another mount than the folder it is in; unmount it, then remove again"
        )
        self.path = path


@typed_methods
class PodFolders:
    """Folders that are named by their pods' uids.

    Args:
        root: The directory that they are in; of nobody else's.
        kind: What they are.
        mountinfo: Reads what is mounted where.
    """

    @typed
    def __init__(
        self,
        root: str,
        /,
        *,
        kind: RemnantKind = RemnantKind.FOLDER,
        mountinfo: Callable[[], str] = read_mountinfo,
    ) -> None:
        self._root = os.path.realpath(root)
        self._kind = kind
        self._mountinfo = mountinfo

    def found(self) -> Sequence[Remnant]:
        """Every folder, with what is mounted at it or below it; nothing where the root is not there.

        Raises:
            OSError: The root cannot be read.
        """
        try:
            names = sorted(one.name for one in os.scandir(self._root) if one.is_dir(follow_symlinks=False))
        except FileNotFoundError:
            return ()
        points = sorted(one.target for one in parse_mountinfo(self._mountinfo()))
        return tuple(
            Remnant(
                uid=name,
                kind=self._kind,
                where=path,
                mounts=tuple(one for one in points if one == path or one.startswith(f"{path}/")),
            )
            for name in names
            for path in (f"{self._root}/{name}",)
        )

    def remove(self, remnant: Remnant, /) -> None:
        """Remove a folder with all that is in it; one that is gone is no error.

        Each directory is opened without following links, and left alone where it
        is on another mount than the root, however the mount came there.

        Raises:
            MountInTheWayError: Something is mounted in it. What is beside that may be gone.
            ConfigurationError: It is none of these folders.
            OSError: It cannot be removed.
        """
        parent, name = os.path.split(remnant.where)
        if parent != self._root or name in {"", ".", ".."}:
            raise ConfigurationError(
                f"{remnant.where} is no folder below {self._root}; give what `found` told"
            )
        with contextlib.suppress(FileNotFoundError), _opened(self._root) as root:
            _remove(root, name, remnant.where, _mount_of(root))


def _remove(parent: int, name: str, path: str, mount: str) -> None:
    with _opened(name, parent) as folder:
        if _mount_of(folder) != mount:
            raise MountInTheWayError(path)
        for one in [entry.name for entry in os.scandir(folder)]:
            mode = os.stat(one, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                _remove(folder, one, f"{path}/{one}", mount)
            else:
                _unlink(folder, one, f"{path}/{one}")
    _unlink(parent, name, path, is_directory=True)


def _unlink(folder: int, name: str, path: str, *, is_directory: bool = False) -> None:
    try:
        if is_directory:
            os.rmdir(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
    except OSError as error:
        # A file or an empty directory that something is mounted on cannot be removed: the kernel says busy.
        if error.errno == errno.EBUSY:
            raise MountInTheWayError(path) from error
        raise


class _opened(contextlib.AbstractContextManager[int]):  # noqa: N801 - used as a function
    """A directory that is open, no link."""

    def __init__(self, name: str, parent: int | None = None) -> None:
        self._fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)

    def __enter__(self) -> int:
        return self._fd

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


def _mount_of(folder: int) -> str:
    """Which mount a directory is on, as the kernel numbers them: bind mounts of one disk differ too."""
    lines = Path(f"/proc/self/fdinfo/{folder}").read_text(encoding="ascii").splitlines()
    return next(line.split()[1] for line in lines if line.startswith("mnt_id:"))
