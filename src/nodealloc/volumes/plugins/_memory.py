"""Memory as a volume: a tmpfs."""

from __future__ import annotations

import errno
from typing import Final

from nodealloc.volumes._errors import MountError
from nodealloc.volumes._ports import Mounter

__all__ = ["mount_memory"]

_OPEN: Final = "mode=1777"
"""Everybody may write, and nobody removes what is another user's: a tmpfs's own default."""


def mount_memory(mounter: Mounter, path: str, /, *options: str) -> None:
    """Mount a tmpfs that is never written to swap, where the kernel can do that (Linux 6.4).

    Args:
        mounter: Mounts it.
        path: An empty directory.
        options: Further ones.

    Raises:
        MountError: The kernel refuses.

    Source: kubelet ``volume/emptydir``.
    """
    given = (_OPEN, *options)
    try:
        mounter.mount("tmpfs", path, fstype="tmpfs", options=(*given, "noswap"))
    except MountError as error:
        if error.errno != errno.EINVAL:
            raise
        mounter.mount("tmpfs", path, fstype="tmpfs", options=given)
