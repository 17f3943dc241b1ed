"""Giving back descriptors by which nothing was written."""

from __future__ import annotations

import contextlib
import os

__all__ = ["let_go"]


def let_go(descriptor: int, /) -> None:
    """Close it; close(2) gives the number back whatever it says, and what was read is read.

    Nobody may close it once more after an error: by then the number may be
    that of a file which another thread has opened.
    """
    with contextlib.suppress(OSError):
        os.close(descriptor)
