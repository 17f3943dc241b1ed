"""Looking: which sockets stand below a directory right now."""

from __future__ import annotations

import errno
import stat
from typing import Final

from nodealloc._not_now import NOT_NOW
from nodealloc._sockets import standing
from nodealloc._typed import typed
from nodealloc._walk import walk
from nodealloc.pluginreg._sightings import SocketIdentity

__all__ = ["scan"]

_BLIND: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
"""What is to be told of any directory; below the first one a dead mount hides no others."""


@typed
def scan(directory: str, /) -> dict[str, SocketIdentity]:
    """Sockets below a directory, by path; a directory that is not there holds none.

    Files and directories whose name begins with a dot, and whatever is no
    socket, do not count. A symbolic link to a socket counts as that socket; to
    a directory, it is not followed. What vanishes while being looked at, or may
    not be read, is left out.

    Raises:
        OSError: No descriptor or memory is left to look with, or the disk does not
            give the directory. That says nothing of what is there, and nobody is
            let go for it.

    Source: kubelet ``pluginmanager/pluginwatcher``, which goes into directories
    with a dot at start and not later.
    """
    found: dict[str, SocketIdentity] = {}
    for entry in walk(directory, raises=_BLIND, raises_at_top=NOT_NOW):
        try:
            if stat.S_ISSOCK(entry.stat().st_mode):
                found[entry.path] = SocketIdentity(*standing(entry.path))
        except OSError as error:
            if error.errno in _BLIND:
                raise
    return found
