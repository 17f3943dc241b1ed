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
from collections.abc import Collection, Mapping

from nodealloc import _attrs as attrs
from nodealloc._descriptors import let_go
from nodealloc.errors import NodeallocError
from nodealloc.volumes._removal import remove_at
from nodealloc.volumes.plugins._ownership import give_to_group

__all__ = ["FileContent", "digest_of", "write_files"]

_LINK, _NEW_LINK = "..data", "..data_tmp"


@attrs.frozen
class FileContent:
    """Bytes of a file, its permission bits, and the user that it belongs to; None for the agent's."""

    data: bytes
    mode: int
    owner: int | None = None


def write_files(
    fd: int,
    files: Mapping[str, FileContent],
    /,
    *,
    group: int | None = None,
    folders: Collection[str] = (),
) -> bool:
    """Bring a directory to hold exactly these files; may be repeated after a crash at any instant.

    Args:
        fd: Of the directory; may be ``O_PATH``. Nothing else writes in it.
        files: Relative path, whose first component does not begin with `..`, to content.
        group: That all of it belongs to and may read, as a pod's `fsGroup` asks; None for the agent's.
        folders: Relative paths of empty directories beside the files, for mounts inside; a file of
            the same name comes first. Those that are there stay, for a container that runs with a mount.

    Returns:
        Whether anything changed.

    Raises:
        OSError: The file system refuses, as a full one does. Readers see what
            they saw, and nothing is left of the new content, so that a smaller
            one has the room that there was.
    """
    directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=fd)
    try:
        name = f"..{digest_of(files, group)}"
        changed = _current(directory) != name
        if changed:
            _replace(directory, name, files, group)
        if group is not None:
            give_to_group(directory, group, writes=False)
        tidied = _tidy(directory, name, files)  # before a directory is made where a file is no more
        return _make_folders(directory, files, folders, group) or changed or tidied
    finally:
        os.close(directory)


def digest_of(files: Mapping[str, FileContent], group: int | None = None, /) -> str:
    """Names a content: paths, modes, owners and bytes, and the group of all."""
    digest = hashlib.sha256(b"" if group is None else f"{group} ".encode())
    for path, content in sorted(files.items()):
        owner = "" if content.owner is None else f"{content.owner} "
        head = f"{len(path)} {path} {content.mode} {owner}{len(content.data)} "
        digest.update(head.encode("utf-8", "surrogateescape"))
        digest.update(content.data)
    return digest.hexdigest()[:32]


def _current(directory: int) -> str:
    """The content that readers see, "" for none: somebody may have taken it away under its link."""
    try:
        name = os.readlink(_LINK, dir_fd=directory)
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except OSError as error:
        # Nothing, or no link: anything else does not say that nobody reads what stands here.
        if error.errno in (errno.ENOENT, errno.EINVAL):
            return ""
        raise
    return name


def _replace(directory: int, name: str, files: Mapping[str, FileContent], group: int | None) -> None:
    # First what a crash left: it takes the room that the new content may need.
    current = _current(directory)
    for entry in os.listdir(directory):
        if entry.startswith("..") and entry not in (_LINK, current):
            _remove(directory, entry)
    try:
        _write_content(directory, name, files, group)
        _swap(directory, name)
    except BaseException:
        # A flush may fail behind the swap; then readers are in the new content.
        if _current(directory) != name:
            with contextlib.suppress(OSError, NodeallocError):
                _remove(directory, name)
        raise


def _write_content(directory: int, name: str, files: Mapping[str, FileContent], group: int | None) -> None:
    os.mkdir(name, 0o755, dir_fd=directory)
    content = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    try:
        _make_shared(content, group)
        for path, file in files.items():
            _write_file(content, path, file, group)
        os.fsync(content)
    finally:
        os.close(content)


def _make_shared(fd: int, group: int | None, mode: int = 0o755) -> None:
    """A directory that everybody may look into, and that belongs to a group."""
    os.fchmod(fd, mode)
    if group is not None:
        give_to_group(fd, group, writes=False)


def _write_file(content: int, path: str, file: FileContent, group: int | None) -> None:
    *above, name = path.split("/")
    fd = os.dup(content)
    try:
        for part in above:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=fd)
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
            outer, fd = fd, inner
            let_go(outer)
            _make_shared(fd, group)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, 0o600, dir_fd=fd), "wb") as out:
            out.write(file.data)
            out.flush()
            if file.owner is not None:
                os.fchown(out.fileno(), file.owner, -1)
            os.fchmod(out.fileno(), file.mode)
            if group is not None:
                give_to_group(out.fileno(), group, writes=False)
            os.fsync(out.fileno())
    finally:
        os.close(fd)


def _swap(directory: int, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(_NEW_LINK, dir_fd=directory)
    os.symlink(name, _NEW_LINK, dir_fd=directory)
    os.rename(_NEW_LINK, _LINK, src_dir_fd=directory, dst_dir_fd=directory)
    os.fsync(directory)


def _make_folders(
    directory: int, files: Mapping[str, FileContent], folders: Collection[str], group: int | None
) -> bool:
    """Make what lacks of the directories for mounts; one that is there may be a mount's by now."""
    tops = {_top_of(path) for path in files}
    changed = False
    for path in folders:
        if _top_of(path) in tops:
            continue
        fd = os.dup(directory)
        try:
            for part in path.split("/"):
                is_new = False
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o777, dir_fd=fd)
                    is_new = changed = True
                inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
                outer, fd = fd, inner
                let_go(outer)
                if is_new:
                    _make_shared(fd, group, 0o777)
        finally:
            os.close(fd)
    return changed


def _top_of(path: str) -> str:
    """The first component of a relative path."""
    return path.split("/", 1)[0]


def _tidy(directory: int, name: str, files: Mapping[str, FileContent]) -> bool:
    """Make the links that readers open, and remove what no longer belongs, but for directories of mounts."""
    tops = {_top_of(path) for path in files}
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
        if entry not in tops and entry not in (_LINK, name) and not _is_of_mounts(directory, entry):
            _remove(directory, entry)
            changed = True
    return changed


def _is_of_mounts(directory: int, name: str) -> bool:
    return not name.startswith("..") and stat.S_ISDIR(
        os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    )


def _remove(directory: int, name: str) -> None:
    try:
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        remove_at(directory, name, name)
    else:
        os.unlink(name, dir_fd=directory)
