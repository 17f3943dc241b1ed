"""Paths below one root, walked without following a symbolic link, deleted without crossing a mount."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Generator, Sequence
from pathlib import PurePosixPath
from typing import Final

from nodealloc._arguments import check, wrong
from nodealloc._descriptors import let_go
from nodealloc._typed import typed, typed_methods
from nodealloc.volumes._errors import MountedHereError, OutsideRootError
from nodealloc.volumes._removal import mount_id, remove_at, remove_empty

__all__ = ["DEAD", "SafeRoot", "check_names", "naming"]

_WALK: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
DEAD: Final = frozenset({errno.ENOTCONN, errno.ESTALE, errno.ESHUTDOWN, errno.EHOSTDOWN})
"""What a mount answers whose server is gone, and no disk of this machine."""
_DEAD: Final = DEAD | {errno.EIO}
"""The same, or its device."""
_NAME_BYTES: Final = 255
"""Of a file name, on every file system that pods' directories stand on."""
_SHOWN: Final = 40
"""Characters of a name that is too long."""
_TRIES = 100
"""How often making a path is begun anew when a part of it was removed meanwhile."""


@typed_methods
class SafeRoot:
    """A directory tree that pods' names lead into, and never out of.

    Every path is walked from the root's own descriptor, one component at a
    time, with ``O_NOFOLLOW``: whoever swaps a directory for a symbolic link
    meanwhile gets an `OutsideRootError`, not a mount elsewhere. Methods may be
    called from several threads.

    Args:
        path: The root, absolute; it exists, and may itself be reached through links.

    Raises:
        ConfigurationError: It is no directory, or not absolute.
    """

    @typed
    def __init__(self, path: str, /) -> None:
        check("SafeRoot", path, str, "the absolute path of a directory")
        if not path.startswith("/"):
            raise wrong("SafeRoot", path, "an absolute path; os.path.abspath makes one")
        self.path: Final = os.path.realpath(path)
        if not os.path.isdir(self.path):  # noqa: PTH112 - Path raises where it may not look
            raise wrong("SafeRoot", path, "a directory that exists; make it first")

    def join(self, *names: str) -> str:
        """The absolute path of names below the root; each is one component.

        Raises:
            OutsideRootError: A name is empty, `.`, `..`, holds a `/` or NUL, is
                longer than 255 bytes or has characters that no name can have.
        """
        check_names(*names)
        return "/".join([self.path, *names])

    def names(self, path: str, /) -> tuple[str, ...]:
        """The components of an absolute path below the root; raises `OutsideRootError`."""
        pure = PurePosixPath(path)
        if not pure.is_absolute() or ".." in pure.parts or "\0" in path:
            raise OutsideRootError(path, "not an absolute path without `..`")
        try:
            return pure.relative_to(self.path).parts
        except ValueError:
            raise OutsideRootError(path, f"not below {self.path}") from None

    @contextlib.contextmanager
    def open_directory(self, path: str, /, *, create_mode: int | None = None) -> Generator[int]:
        """A descriptor (``O_PATH``) of a directory below the root, open inside the `with`.

        Args:
            path: Absolute, below the root.
            create_mode: Makes missing directories, the last one with this mode
                and those above it with 0750; None raises `FileNotFoundError`.
        """
        fd = self._walk(path, create_mode)
        try:
            yield fd
        finally:
            let_go(fd)

    def _walk(self, path: str, create_mode: int | None) -> int:
        for _ in range(_TRIES if create_mode is not None else 0):
            # Whoever tidies up may remove an empty directory before the next one is made in it.
            with contextlib.suppress(FileNotFoundError):
                return self._walk_once(path, create_mode)
        return self._walk_once(path, create_mode)

    def _walk_once(self, path: str, create_mode: int | None) -> int:
        names = self.names(path)
        fd = os.open(self.path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        for at, name in enumerate(names):
            mode = None if create_mode is None else create_mode if at == len(names) - 1 else 0o750
            outer = fd
            try:
                with naming(path):
                    fd = _step(outer, name, path, mode)
            finally:
                let_go(outer)
        return fd

    @contextlib.contextmanager
    def open_file(self, path: str, /) -> Generator[int]:
        """A descriptor (``O_PATH``) of a file or directory below the root, itself no link.

        Raises:
            FileNotFoundError: Nothing is there.
            OutsideRootError: It is a link, or stands behind one.
        """
        with self.open_parent(path) as (parent, name):
            if parent < 0:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
            try:
                if stat.S_ISLNK(os.fstat(fd).st_mode):
                    raise OutsideRootError(path, f"{name!r} is a symbolic link")
                yield fd
            finally:
                let_go(fd)

    def make_directory(self, path: str, /, *, mode: int = 0o750) -> None:
        """Make a directory and those above it; one that is there, or a mount on it, keeps its mode."""
        with self.open_directory(path, create_mode=mode):
            pass

    def list(self, path: str, /) -> list[str]:
        """Names in a directory, sorted; empty for an absent one."""
        try:
            with self.open_directory(path) as fd, _readable(fd) as readable:
                return sorted(os.listdir(readable))  # noqa: PTH208 - pathlib lists no descriptors
        except FileNotFoundError:
            return []

    @contextlib.contextmanager
    def open_unmounted(self, top: str, /, *names: str) -> Generator[int]:
        """A descriptor (``O_PATH``) of a directory reached from `top` through no mount.

        Nothing that is mounted on the way is asked for anything, so that a file
        system whose server answers no more holds nobody up.

        Args:
            top: Absolute, the root or below it; may itself be a mount point.
            names: One component each.

        Raises:
            MountedHereError: Something is mounted on one of the names.
            OutsideRootError: One of them is a link or a file, or no name.
            FileNotFoundError: One of them is absent.
        """
        check_names(*names)
        path = "/".join([top, *names])
        fd = self._walk(top, None)
        try:
            mount = mount_id(fd)
            for at, name in enumerate(names, 1):
                with naming(path):
                    inner = _step(fd, name, path, None)
                outer, fd = fd, inner
                let_go(outer)
                if mount_id(fd) != mount:
                    raise MountedHereError(["/".join([top, *names[:at]])])
            yield fd
        finally:
            let_go(fd)

    def list_unmounted(self, top: str, /, *names: str) -> Sequence[str]:
        """Names in such a directory, sorted; empty for an absent one. Raises as `open_unmounted`."""
        try:
            with self.open_unmounted(top, *names) as fd, _readable(fd) as readable:
                return sorted(os.listdir(readable))  # noqa: PTH208 - pathlib lists no descriptors
        except FileNotFoundError:
            return []

    def is_mount_point(self, path: str, /) -> bool:
        """Whether something is mounted right there; False for an absent path.

        Compares the kernel's mount ids of the path and of its parent, so the
        table of mounts is not read.
        """
        with self.open_parent(path) as (parent, name):
            if parent < 0:
                return False
            try:
                fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
            except FileNotFoundError:
                return False
            except OSError as error:
                # A mount may refuse even to be named when what it came from is gone.
                if error.errno in DEAD:
                    return True
                raise
            try:
                return mount_id(fd) != mount_id(parent)
            finally:
                let_go(fd)

    def remove_directory(self, path: str, /) -> None:
        """Remove one empty directory; an absent one is no error. Raises `OSError`, `MountedHereError`."""
        with self.open_parent(path) as (parent, name):
            if parent >= 0:
                remove_empty(parent, name, path)

    def remove_tree(self, path: str, /) -> None:
        """Delete a directory and what is in it; an absent one is no error.

        Symbolic links are deleted, never followed.

        Raises:
            MountedHereError: Something is mounted on it or below it. What lies
                in the mount was not touched; beside it, files may be gone.
            OutsideRootError: The path leads through a symbolic link.
        """
        with self.open_parent(path) as (parent, name):
            if parent >= 0:
                remove_at(parent, name, path)

    @contextlib.contextmanager
    def open_parent(self, path: str) -> Generator[tuple[int, str]]:
        """Descriptor of the directory that a path stands in, and its name there; -1 when absent.

        Raises:
            OutsideRootError: It is the root itself, or leads out of it.
        """
        names = self.names(path)
        if not names:
            raise OutsideRootError(path, "the root itself is neither mounted on nor removed")
        above = self.join(*names[:-1]) if names[:-1] else self.path
        with contextlib.ExitStack() as stack:
            try:
                parent = stack.enter_context(self.open_directory(above))
            except FileNotFoundError:
                parent = -1
            yield parent, names[-1]


def check_names(*names: str) -> None:
    """Hold names to be one path component each; raises `OutsideRootError` for one that is not."""
    for name in names:
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            raise OutsideRootError("/".join(names), f"{name!r} is no file name")
        try:
            length = len(os.fsencode(name))
        except UnicodeEncodeError:
            path = "/".join(names).encode("utf-8", "backslashreplace").decode()
            raise OutsideRootError(path, f"{name!r} cannot be written as a file name") from None
        if length > _NAME_BYTES:
            reason = f"{name[:_SHOWN]!r}… has {length} bytes; a file name has at most {_NAME_BYTES}"
            raise OutsideRootError("/".join(one[:_SHOWN] for one in names), reason)


@contextlib.contextmanager
def naming(path: str, /) -> Generator[None]:
    """Have an `OSError` name a whole path: by descriptors it names the last component, or nothing."""
    try:
        yield
    except OSError as error:
        error.filename = path
        raise


def _step(fd: int, name: str, path: str, mode: int | None) -> int:
    """Open one directory inside another, made first where a mode is given."""
    if mode is not None:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0, dir_fd=fd)
    try:
        inner = os.open(name, _WALK, dir_fd=fd)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            is_link = stat.S_ISLNK(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)
            what = "a symbolic link" if is_link else "no directory"
            raise OutsideRootError(path, f"{name!r} on the way is {what}") from None
        raise
    try:
        # Mode 0 is how a directory is made: one that still has it was left by a crash before this line.
        # Apart from the making also because the umask would take bits from it.
        if mode is not None and not _is_ready(inner):
            os.chmod(f"/proc/self/fd/{inner}", mode)  # noqa: PTH101 - a descriptor
    except BaseException:
        let_go(inner)
        raise
    return inner


def _is_ready(fd: int) -> bool:
    """Whether a directory has its mode; a mount that answers no more was put on one that had."""
    try:
        return stat.S_IMODE(os.fstat(fd).st_mode) != 0
    except OSError as error:
        if error.errno in _DEAD:
            return True
        raise


@contextlib.contextmanager
def _readable(fd: int) -> Generator[int]:
    """A descriptor that can be listed, from one that only names a directory."""
    readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=fd)
    try:
        yield readable
    finally:
        let_go(readable)
