"""Whose a file or directory is: what others can write, no store believes."""

from __future__ import annotations

import errno
import os
import stat

from nodealloc.checkpoint._errors import StoreFailedError

__all__ = ["check_alone", "check_owner"]

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def check_owner(path: str, found: os.stat_result, /, *, may_be_shared: bool = False) -> None:
    """Hold a file or directory to be this user's or root's, and writable by nobody else.

    Args:
        path: For messages.
        found: What stands there.
        may_be_shared: Whether a directory may be one as `/tmp`, in which all make
            files and nobody moves another's: who takes that looks at each file.

    Raises:
        StoreFailedError: With what to do about it.

    Source: ours; the kubelet trusts its root directory.
    """
    me = os.geteuid()
    if found.st_uid not in {me, 0}:
        reason = f"it belongs to user {found.st_uid}, who can change it"
        raise StoreFailedError(path, "fstat", errno.EPERM, reason, remedy=f"give it to user {me} or to root")
    if found.st_mode & _OTHERS and not (may_be_shared and found.st_mode & stat.S_ISVTX):
        reason = f"its mode is {stat.S_IMODE(found.st_mode):04o}, so that others can change it"
        raise StoreFailedError(
            path, "fstat", errno.EPERM, reason, remedy="look at what is there, take that away (chmod go-w)"
        )


def check_alone(path: str, found: os.stat_result, /) -> None:
    """Hold an open file to be such a file, and to have no other name: writing it changes nothing else."""
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        what = f"{found.st_nlink} names lead to it" if found.st_nlink > 1 else "it is no regular file"
        raise StoreFailedError(path, "fstat", errno.EEXIST, what)
    check_owner(path, found)
