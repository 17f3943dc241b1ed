"""Looking: which sockets stand below a directory right now."""

from __future__ import annotations

import stat

from nodealloc._sockets import identity
from nodealloc._typed import typed
from nodealloc._walk import walk
from nodealloc.pluginreg._sightings import SocketIdentity

__all__ = ["scan"]


@typed
def scan(directory: str, /) -> dict[str, SocketIdentity]:
    """Sockets below a directory, by path; a directory that is not there holds none.

    Files and directories whose name begins with a dot, and whatever is no
    socket, do not count. A symbolic link to a socket counts as that socket; to
    a directory, it is not followed. What vanishes while being looked at, or may
    not be read, is left out.

    Source: kubelet ``pluginmanager/pluginwatcher``, which goes into directories
    with a dot at start and not later.
    """
    found: dict[str, SocketIdentity] = {}
    for entry in walk(directory):
        try:
            is_socket = stat.S_ISSOCK(entry.stat().st_mode)
        except OSError:
            continue
        standing = identity(entry.path) if is_socket else None
        if standing is not None:
            found[entry.path] = SocketIdentity(*standing)
    return found
