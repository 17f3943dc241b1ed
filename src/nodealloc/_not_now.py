"""Errors of the system that say nothing of what stands at a path."""

from __future__ import annotations

import errno
from typing import Final

__all__ = ["NOT_NOW"]

NOT_NOW: Final = frozenset(
    {
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.ESTALE,
        errno.ENOTCONN,
        errno.ETIMEDOUT,
        errno.EHOSTDOWN,
        errno.ESHUTDOWN,
    }
)
"""Numbers with which a disk, a file server or a shortage answers: the next try may say what is there."""
