"""Files and directories that belong to a pod's group (`fsGroup`)."""

from __future__ import annotations

import os
import stat

from nodealloc.volumes._paths import SafeRoot, naming

__all__ = ["give_to_group", "share"]


def give_to_group(fd: int, group: int, /, *, writes: bool) -> None:
    """Give a file or directory to a pod's group, which may read it, and write where it says so.

    What is made in such a directory belongs to the group as well.

    Source: kubelet ``volume/volume_linux.go``.
    """
    found = os.fstat(fd)
    bits = 0o660 if writes else 0o440
    if stat.S_ISDIR(found.st_mode):
        bits |= stat.S_ISGID | 0o110
    is_others, mode = found.st_gid != group, stat.S_IMODE(found.st_mode)
    if is_others:
        os.fchown(fd, -1, group)  # takes bits away, so they come after it
    if is_others or mode | bits != mode:
        os.fchmod(fd, mode | bits)


def share(root: SafeRoot, path: str, group: int, /) -> None:
    """Give a new directory below the root to a pod's group; one that it has stays as the pod made it."""
    with root.open_directory(path) as fd, naming(path):
        directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=fd)
        try:
            found = os.fstat(directory)
            if found.st_gid != group or not found.st_mode & stat.S_ISGID:
                give_to_group(directory, group, writes=True)
        finally:
            os.close(directory)
