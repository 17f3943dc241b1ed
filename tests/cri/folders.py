"""Folders of this machine that namespaces mount on, shared by runs that are beside each other.

Removing such a folder takes away what other namespaces have mounted there: containers of a run
beside lost their runtime's state and could not be started.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Final

__all__ = ["mount_points"]

_LOCK: Final = Path(tempfile.gettempdir()) / f"nodealloc-mount-points-{os.geteuid()}"


@contextlib.contextmanager
def mount_points(folders: Iterable[str | Path], /, *, lock: Path = _LOCK) -> Generator[None]:
    """Made where they are missing; those that were, and are empty, go when the last run beside ends.

    Args:
        folders: Where something is mounted, in namespaces that end before the block does.
        lock: Holds the names of those that were made; every run takes the same.
    """
    with lock.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        for one in map(Path, folders):
            if not one.exists():
                one.mkdir(parents=True, exist_ok=True)
                file.write(f"{one}\n")
                file.flush()
        try:
            yield
        finally:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                file.seek(0)
                for name in file.read().splitlines():
                    with contextlib.suppress(OSError):
                        Path(name).rmdir()
                file.truncate(0)
