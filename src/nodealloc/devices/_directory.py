"""The directory of plugin sockets: its rights, its sweep at start, and who may name what in it."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from nodealloc.devices._errors import RegistrationRefusedError

__all__ = ["plugin_socket", "prepare_directory"]

_LONGEST = 107
"""Longest path of a Unix socket on Linux, in bytes."""


def prepare_directory(directory: Path, /) -> tuple[Path, ...]:
    """Make the directory (0750) and remove the sockets in it; other files stay.

    Plugins watch for their own socket to vanish: that is how they learn that
    they have to register again.

    Returns:
        What was removed.

    Source: kubelet ``cm/devicemanager/manager.go``, "cleanup plugin directory".
    """
    directory.mkdir(mode=0o750, parents=True, exist_ok=True)
    if directory.stat().st_uid == os.geteuid():
        directory.chmod(0o750)
    removed: list[Path] = []
    for entry in sorted(directory.iterdir()):
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISSOCK(entry.lstat().st_mode):
                entry.unlink()
                removed.append(entry)
    return tuple(removed)


def plugin_socket(directory: Path, endpoint: str, /, *, own: str) -> Path:
    """Where a plugin says that it listens.

    Args:
        directory: Of `kubelet.sock`.
        endpoint: The plugin's word for its socket, relative to the directory.
        own: Name of the agent's own socket there.

    Raises:
        RegistrationRefusedError: It is empty, the agent's own, or leads out of
            the directory (`..`, an absolute path, a symbolic link).
    """
    if not endpoint or "\0" in endpoint or len(endpoint) > _LONGEST:
        raise RegistrationRefusedError(
            f"endpoint {endpoint[:_LONGEST]!r} names no socket; give the name of your socket"
        )
    root = directory.resolve()
    path = (root / endpoint).resolve()
    if path == root or root not in path.parents:
        raise RegistrationRefusedError(
            f"endpoint {endpoint!r} is outside of {directory}; put your socket there and give its name"
        )
    if path == root / own:
        raise RegistrationRefusedError(f"endpoint {endpoint!r} is the agent's own socket; give yours")
    return path
