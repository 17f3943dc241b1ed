"""Writing the kernel's control files: the one place that does."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["write_control_file"]


def write_control_file(path: str | Path, text: str, /) -> None:
    """Write a text with one system call; the kernel's refusal is an `OSError`.

    A buffered write would raise when the object is collected, which is too late.
    Truncating means nothing to the kernel, and everything to an ordinary file
    that stands in for one of its own.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)
