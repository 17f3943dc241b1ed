"""What stands below a directory."""

from __future__ import annotations

import os
from collections.abc import Iterator

__all__ = ["subdirectories", "walk"]


def subdirectories(directory: str, /) -> Iterator[str]:
    """The directory and all below it but those with a dot at start, outer ones first."""
    yield directory
    for entry in walk(directory):
        try:
            if entry.is_dir(follow_symlinks=False):
                yield entry.path
        except OSError:
            continue


def walk(directory: str, /) -> Iterator[os.DirEntry[str]]:
    """Everything below a directory but names with a dot at start; what cannot be listed is left out."""
    waiting = [directory]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in listed:
            if entry.name.startswith("."):
                continue
            yield entry
            try:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
            except OSError:
                continue
