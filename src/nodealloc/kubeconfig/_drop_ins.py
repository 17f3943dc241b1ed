"""Files of a folder that each say a part of a configuration, and how they are laid over it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from nodealloc.errors import DecodeError, Fault

__all__ = ["files_in", "laid_over"]


def files_in(folder: Path, /) -> Iterator[Path]:
    """Those that end in `.conf`, in the order of their names; of a folder below it all at its place.

    Raises:
        DecodeError: It cannot be listed.
    """
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda one: one.name)
    except OSError as error:
        reason = f"cannot be listed: {error.strerror}; name a folder of *.conf files"
        raise DecodeError(str(folder), [Fault("$", reason)]) from error
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from files_in(Path(entry.path))
        elif entry.name.endswith(".conf"):
            yield Path(entry.path)


def laid_over(below: Mapping[str, object], above: Mapping[str, object], /) -> dict[str, object]:
    """What both say: mappings key by key, all else by what lies above; null takes out what is below.

    Source: RFC 7396.
    """
    found = dict(below)
    for key, value in above.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, Mapping):
            had = found.get(key)
            under = cast("Mapping[str, object]", had if isinstance(had, Mapping) else {})
            found[key] = laid_over(under, cast("Mapping[str, object]", value))
        else:
            found[key] = value
    return found
