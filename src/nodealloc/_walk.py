"""What stands below a directory."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator
from typing import Final

from nodealloc._descriptors import let_go

__all__ = ["deepest_first", "subdirectories", "walk"]

_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def subdirectories(directory: str, /, *, raises: Collection[int] = ()) -> Iterator[str]:
    """The directory and all below it but those with a dot at start, outer ones first; raises as `walk`."""
    yield directory
    for entry in walk(directory, raises=raises):
        try:
            if entry.is_dir(follow_symlinks=False):
                yield entry.path
        except OSError:
            continue


def walk(
    directory: str, /, *, raises: Collection[int] = (), raises_at_top: Collection[int] = ()
) -> Iterator[os.DirEntry[str]]:
    """Everything below a directory but names with a dot at start; what cannot be listed is left out.

    Args:
        directory: Where to begin; may be absent.
        raises: Numbers of errors that are raised instead.
        raises_at_top: The same, of listing `directory` itself.
    """
    waiting, raised = [directory], {*raises, *raises_at_top}
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            if error.errno in raised:
                raise
            continue
        finally:
            raised = {*raises}
        for entry in listed:
            if entry.name.startswith("."):
                continue
            yield entry
            try:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
            except OSError:
                continue


def deepest_first(directory: str, /) -> Iterator[str]:
    """The directory and all below it, deepest first; each path leads there until the next is asked for.

    However deep they lie: a path from the top has 4,095 bytes at most, and a
    container chooses how deep its directories and cgroups are. What is absent, or
    goes meanwhile, is left out; the directory itself comes in any case, last.
    """
    try:
        here = os.open(directory, _OPEN)
    except (FileNotFoundError, NotADirectoryError):
        yield directory
        return
    above: list[tuple[str, list[str]]] = []
    try:
        left = _inner(here)
        while left or above:
            if left:
                name = left.pop()
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    inner = os.open(name, _OPEN | os.O_NOFOLLOW, dir_fd=here)
                    # Before anything can fail: a closed number may be another thread's.
                    outer, here = here, inner
                    let_go(outer)
                    above.append((name, left))
                    left = _inner(here)
            else:
                name, left = above.pop()
                inner, here = here, os.open("..", _OPEN, dir_fd=here)
                let_go(inner)
                yield f"/proc/self/fd/{here}/{name}"
    finally:
        let_go(here)
    yield directory


def _inner(directory: int) -> list[str]:
    """Names of the directories in a directory, last first."""
    with os.scandir(directory) as entries:
        return sorted((one.name for one in entries if one.is_dir(follow_symlinks=False)), reverse=True)
