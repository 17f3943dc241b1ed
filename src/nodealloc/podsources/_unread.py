"""Words for a manifest that cannot be read: why, and what helps."""

from __future__ import annotations

import errno
import os
from typing import Final

__all__ = ["why_unread"]

_REMEDIES: Final = {
    **dict.fromkeys((errno.ENOENT, errno.ELOOP, errno.ENOTDIR), "mend the link, or take it away"),
    **dict.fromkeys((errno.EACCES, errno.EPERM), "mend its rights, or take it away"),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "let this process open more files"),
    **dict.fromkeys(
        (
            errno.EIO,
            errno.ESTALE,
            errno.ENOTCONN,
            errno.ETIMEDOUT,
            errno.EHOSTDOWN,
            errno.ENODEV,
            errno.ENXIO,
        ),
        "look at the disk, or at the server that it is on, and mount it anew",
    ),
}
"""What to do about a file that cannot be read."""


def why_unread(error: OSError, /) -> str:
    """What the system says of a file that it does not give, and what to do about it."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    return f"cannot be read ({reason}); {_REMEDIES.get(error.errno or 0, 'mend it, or take it away')}"
