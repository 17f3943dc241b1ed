"""Directories deeper than a path is long, which nothing but the library takes away again."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from pathlib import Path

from nodealloc.volumes import SafeRoot

__all__ = ["deepened"]


@contextlib.contextmanager
def deepened(top: Path, depth: int, name: str = "d") -> Generator[int]:
    """So many directories, each in the one before; inside the block, a descriptor of the last.

    What the test leaves goes at the end: pytest's own clean-up would end by RecursionError.
    """
    at = os.open(top, os.O_RDONLY)
    try:
        for _ in range(depth):
            os.mkdir(name, dir_fd=at)
            inner = os.open(name, os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = inner
        yield at
    finally:
        os.close(at)
        SafeRoot(str(top.parent)).remove_tree(str(top.resolve()))
