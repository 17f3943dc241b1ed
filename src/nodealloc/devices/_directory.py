"""The directory of plugin sockets: its rights, its sweep at start, and who may name what in it."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from nodealloc._sockets import too_long
from nodealloc.devices._errors import RegistrationRefusedError
from nodealloc.errors import ConfigurationError

__all__ = ["plugin_socket", "prepare_directory", "resolved"]

_SHOWN = 100
"""Characters of a plugin's own words that are repeated to it; it may say a megabyte."""


def prepare_directory(directory: Path, /) -> tuple[Path, ...]:
    """Make the directory (0750) and remove the sockets in it; other files stay.

    Plugins watch for their own socket to vanish: that is how they learn that
    they have to register again.

    Returns:
        What was removed.

    Raises:
        ConfigurationError: The directory cannot be made.
        OSError: It cannot be read or written.

    Source: kubelet ``cm/devicemanager/manager.go``, "cleanup plugin directory".
    """
    try:
        directory.mkdir(mode=0o750, parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigurationError(f"{directory}: no directory can be made ({reason}); give another") from error
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
        RegistrationRefusedError: It is empty, too long for a socket, the agent's
            own, or leads out of the directory (`..`, an absolute path, a
            symbolic link).
    """
    if not endpoint:
        raise RegistrationRefusedError("endpoint '' names no socket; give the name of your socket")
    root = directory.resolve()
    path = resolved(str(root / endpoint))
    if path == root or root not in path.parents:
        raise RegistrationRefusedError(
            f"endpoint {endpoint[:_SHOWN]!r} is outside of {directory}; "
            "put your socket there and give its name"
        )
    if path == root / own:
        raise RegistrationRefusedError(f"endpoint {endpoint!r} is the agent's own socket; give yours")
    return path


def resolved(endpoint: str, /) -> Path:
    """A plugin's word for its socket as a path without symbolic links.

    Raises:
        RegistrationRefusedError: No socket can be there.
    """
    try:
        path = Path(endpoint).resolve()
        with contextlib.suppress(FileNotFoundError):  # a socket may come later
            path.stat()
    except (OSError, RuntimeError, ValueError) as error:  # links in a circle; a zero byte
        raise RegistrationRefusedError(
            f"endpoint {endpoint[:_SHOWN]!r} leads nowhere ({str(error)[:_SHOWN]}); "
            "give the path of your socket"
        ) from error
    if fault := too_long(path):
        raise RegistrationRefusedError(f"endpoint {endpoint[:_SHOWN]!r}: {fault}")
    return path
