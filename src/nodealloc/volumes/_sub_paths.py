"""Parts of volumes (`subPath`), each bound for one container; none leads out of its volume."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Generator
from typing import Final

from nodealloc._descriptors import let_go
from nodealloc._typed import typed
from nodealloc.volumes._errors import OutsideRootError
from nodealloc.volumes._paths import DEAD, SafeRoot, naming
from nodealloc.volumes._ports import Mounter

__all__ = ["SubPaths"]

_FOLDER: Final = "volume-subpaths"
_KEPT: Final = 0o777 | stat.S_ISGID
"""What a directory that is made has of its volume's mode."""
_LOOK: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class SubPaths:
    """Binds a part of a volume to a place that no pod can swap for a link; thread-safe.

        pods/UID/volume-subpaths/VOLUME/CONTAINER/NUMBER

    Args:
        root: Directory of the node's pods.
        mounter: Mounts below `root`.

    Source: kubelet ``util/subpath/subpath_linux.go``.
    """

    @typed
    def __init__(self, root: SafeRoot, mounter: Mounter, /) -> None:
        self._root, self._mounter = root, mounter

    @typed
    def bind(self, uid: str, container: str, number: int, /, *, volume: str, folder: str, path: str) -> str:
        """Where a container mounts a part of a volume from; bound already is no work.

        Args:
            uid: Of the pod.
            container: By name.
            number: Of the mount, among the container's.
            volume: The pod's name of it.
            folder: Where the volume is.
            path: Relative, inside the volume; what is missing of it is made, as directories with
                the volume's own mode. Links are followed as far as they stay inside.

        Raises:
            OutsideRootError: The path leads out of the volume.
            OSError: It cannot be made or opened.
            MountError: It cannot be bound.
        """
        target = self._root.join("pods", uid, _FOLDER, volume, container, str(number))
        with _inside(folder, path) as source:
            while self._mounter.is_mounted(target):
                if self._is_bound(source, target):
                    return target
                # Of an earlier instance, whose file is another one by now: whoever has that open keeps it.
                self._mounter.unmount(target, lazy=True)
            self._remove(target)
            self._make_target(target, is_directory=stat.S_ISDIR(os.fstat(source).st_mode))
            self._mounter.mount(f"/proc/self/fd/{source}", target, options=["bind"])
            return target

    @typed
    def clean(self, uid: str, /) -> None:
        """Take all parts of a pod's volumes away; none of its containers is there any more.

        Raises:
            MountBusyError: One is in use.
            OSError: The file system refuses.
        """
        top = self._root.join("pods", uid, _FOLDER)
        for volume in self._root.list(top):
            for container in self._root.list(f"{top}/{volume}"):
                for number in self._root.list(f"{top}/{volume}/{container}"):
                    target = f"{top}/{volume}/{container}/{number}"
                    while self._mounter.is_mounted(target):
                        self._mounter.unmount(target)
                    self._remove(target)
                self._root.remove_directory(f"{top}/{volume}/{container}")
            self._root.remove_directory(f"{top}/{volume}")
        self._root.remove_directory(top)

    def _is_bound(self, source: int, target: str) -> bool:
        """Whether a target leads to what is to be bound; one whose server is gone leads nowhere."""
        try:
            with self._root.open_file(target) as there:
                return os.path.sameopenfile(source, there)
        except OSError as error:
            if error.errno in DEAD:
                return False
            raise

    def _make_target(self, target: str, *, is_directory: bool) -> None:
        """Something of the same kind to bind on; a mount that is there stays."""
        if is_directory:
            self._root.make_directory(target)
            return
        self._root.make_directory(os.path.dirname(target))  # noqa: PTH120 - a str by Protocol
        with self._root.open_parent(target) as (parent, name), contextlib.suppress(FileExistsError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            os.close(os.open(name, flags, 0o640, dir_fd=parent))

    def _remove(self, target: str) -> None:
        with self._root.open_parent(target) as (parent, name):
            if parent < 0:
                return
            try:
                os.unlink(name, dir_fd=parent)
            except IsADirectoryError:
                self._root.remove_directory(target)
            except FileNotFoundError:
                return


@contextlib.contextmanager
def _inside(folder: str, path: str) -> Generator[int]:
    """A descriptor of what a path inside a volume leads to, opened without following a link."""
    base = os.path.realpath(folder)
    real = os.path.realpath(f"{base}/{path}")
    if real != base and not real.startswith(f"{base}/"):
        raise OutsideRootError(f"{folder}/{path}", "it leads out of the volume")
    whole = f"{folder}/{path}"
    with naming(whole):
        fd = os.open(base, _LOOK)
        try:
            mode = os.fstat(fd).st_mode & _KEPT
            for name in real[len(base) :].split("/"):
                if name:
                    inner = _step(fd, name, mode, whole)
                    outer, fd = fd, inner
                    let_go(outer)
        except BaseException:
            let_go(fd)
            raise
    try:
        yield fd
    finally:
        let_go(fd)


def _step(fd: int, name: str, mode: int, whole: str) -> int:
    """One component; a link that stands here now was put here after the path was looked up."""
    try:
        inner = os.open(name, _LOOK, dir_fd=fd)
    except FileNotFoundError:
        os.mkdir(name, 0, dir_fd=fd)
        inner = os.open(name, _LOOK | os.O_DIRECTORY, dir_fd=fd)
    try:
        _make_ready(inner, name, mode, whole)
    except BaseException:
        let_go(inner)
        raise
    return inner


def _make_ready(fd: int, name: str, mode: int, whole: str) -> None:
    """Refuse a link, and give a directory that was made for this its mode."""
    found = os.fstat(fd)
    if stat.S_ISLNK(found.st_mode):
        raise OutsideRootError(whole, f"{name!r} was swapped for a symbolic link")
    # Without any rights is how it is made: one that still has none was left by a crash before this line.
    if stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o777 and found.st_uid == os.geteuid():
        os.chmod(f"/proc/self/fd/{fd}", mode)  # noqa: PTH101 - a descriptor
