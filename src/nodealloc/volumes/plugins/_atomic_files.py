"""A set of files that changes all at once: a directory of the content, and one link swapped.

    ..data -> ..3f1c…      the link that is swapped by rename
    ..3f1c…/key            the content, named after itself
    key -> ..data/key      what a container opens

A reader sees the old files or the new ones, never some of each.
Source: kubelet ``volume/util/atomic_writer``, with names from the content.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Mapping

import attrs

from nodealloc.errors import NodeallocError
from nodealloc.volumes._removal import remove_at

__all__ = ["FileContent", "write_files"]

_LINK, _NEW_LINK = "..data", "..data_tmp"


@attrs.frozen
class FileContent:
    """Bytes of a file, and its permission bits."""

    data: bytes
    mode: int


def write_files(fd: int, files: Mapping[str, FileContent], /) -> bool:
    """Bring a directory to hold exactly these files; may be repeated after a crash at any instant.

    Args:
        fd: Of the directory; may be ``O_PATH``. Nothing else writes in it.
        files: Relative path, whose first component does not begin with `..`, to content.

    Returns:
        Whether anything changed.

    Raises:
        OSError: The file system refuses, as a full one does. Readers see what
            they saw, and nothing is left of the new content, so that a smaller
            one has the room that there was.
    """
    directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=fd)
    try:
        name = f"..{_digest(files)}"
        changed = _current(directory) != name
        if changed:
            _replace(directory, name, files)
        return _tidy(directory, name, files) or changed
    finally:
        os.close(directory)


def _digest(files: Mapping[str, FileContent]) -> str:
    digest = hashlib.sha256()
    for path, content in sorted(files.items()):
        digest.update(
            f"{len(path)} {path} {content.mode} {len(content.data)} ".encode("utf-8", "surrogateescape")
        )
        digest.update(content.data)
    return digest.hexdigest()[:32]


def _current(directory: int) -> str:
    try:
        return os.readlink(_LINK, dir_fd=directory)
    except OSError as error:
        # Nothing, or no link: anything else does not say that nobody reads what stands here.
        if error.errno in (errno.ENOENT, errno.EINVAL):
            return ""
        raise


def _replace(directory: int, name: str, files: Mapping[str, FileContent]) -> None:
    # First what a crash left: it takes the room that the new content may need.
    current = _current(directory)
    for entry in os.listdir(directory):
        if entry.startswith("..") and entry not in (_LINK, current):
            _remove(directory, entry)
    try:
        _write_content(directory, name, files)
        _swap(directory, name)
    except BaseException:
        # A flush may fail behind the swap; then readers are in the new content.
        if _current(directory) != name:
            with contextlib.suppress(OSError, NodeallocError):
                _remove(directory, name)
        raise


def _write_content(directory: int, name: str, files: Mapping[str, FileContent]) -> None:
    os.mkdir(name, 0o755, dir_fd=directory)
    content = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        os.fchmod(content, 0o755)
        for path, file in files.items():
            _write_file(content, path, file)
        os.fsync(content)
    finally:
        os.close(content)


def _write_file(content: int, path: str, file: FileContent) -> None:
    *above, name = path.split("/")
    fd = os.dup(content)
    try:
        for part in above:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=fd)
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
            os.close(fd)
            fd = inner
            os.fchmod(fd, 0o755)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, 0o600, dir_fd=fd), "wb") as out:
            out.write(file.data)
            out.flush()
            os.fchmod(out.fileno(), file.mode)
            os.fsync(out.fileno())
    finally:
        os.close(fd)


def _swap(directory: int, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(_NEW_LINK, dir_fd=directory)
    os.symlink(name, _NEW_LINK, dir_fd=directory)
    os.rename(_NEW_LINK, _LINK, src_dir_fd=directory, dst_dir_fd=directory)
    os.fsync(directory)


def _tidy(directory: int, name: str, files: Mapping[str, FileContent]) -> bool:
    """Make the links that readers open, and remove what no longer belongs."""
    tops = {path.split("/", 1)[0] for path in files}
    changed = False
    for top in sorted(tops):
        target = f"{_LINK}/{top}"
        try:
            if os.readlink(top, dir_fd=directory) == target:
                continue
        except OSError:
            pass
        _remove(directory, top)
        os.symlink(target, top, dir_fd=directory)
        changed = True
    for entry in os.listdir(directory):
        if entry not in tops and entry not in (_LINK, name):
            _remove(directory, entry)
            changed = True
    return changed


def _remove(directory: int, name: str) -> None:
    try:
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        remove_at(directory, name, name)
    else:
        os.unlink(name, dir_fd=directory)
