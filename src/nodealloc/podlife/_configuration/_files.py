"""The files of a pod that its containers mount: hosts, and one for termination messages."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nodealloc.podlife._configuration._container import message_path
from nodealloc.podlife._configuration._messages import MESSAGE_BYTES

if TYPE_CHECKING:
    from nodealloc.podlife._configuration._node import NodeSettings
    from nodealloc.podspec import Container, Pod

__all__ = ["PodFiles"]

_FOLDER_MODE: Final = 0o750
_HOSTS_MODE: Final = 0o644
_MESSAGE_MODE: Final = 0o666
"""Whoever the container runs as writes into it."""


class PodFiles:
    """Makes and reads the files of pods below `NodeSettings.pods_directory`.

    No link is followed that somebody put where a file is to be. Raises `OSError`
    as the file system does.

    Source: kubelet ``kubelet_pods.go`` and ``kuberuntime_container.go``.
    """

    def make(
        self, pod: Pod, container: Container, attempt: int | None, /, *, node: NodeSettings, hosts: str
    ) -> None:
        """Make what the next instance of a container mounts; may be repeated.

        Args:
            pod: Whose.
            container: Which.
            attempt: Of the instance; None for one that may not be made, which leaves its folder empty.
            node: Where files lie.
            hosts: What the pod's hosts file says; the file stays the same one, for those who mount it.
        """
        folder = Path(node.pods_directory) / pod.uid
        folder.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        _write(folder / "etc-hosts", hosts.encode("utf-8", "replace"), _HOSTS_MODE)
        if container.termination_message_path:
            file = Path(message_path(pod.uid, container.name, attempt or 0, node))
            file.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
            if attempt is not None:
                # What a container has written stays: this may be asked for while it runs.
                _write(file, None, _MESSAGE_MODE)

    def read(self, uid: str, container: str, attempt: int, /, *, node: NodeSettings) -> bytes:
        """The end of the termination message of an instance; nothing where there is no such file.

        For `termination_message`, which says what of it counts.

        Args:
            uid: Of the pod.
            container: By name.
            attempt: Of the instance.
            node: Where files lie.
        """
        path = message_path(uid, container, attempt, node)
        try:
            descriptor = _opened(path, os.O_RDONLY)
        except FileNotFoundError:
            return b""
        with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - MESSAGE_BYTES))
            return file.read(MESSAGE_BYTES)


def _write(path: Path, data: bytes | None, mode: int) -> None:
    """Have a file with this in it; with None whatever is in it stays."""
    descriptor = _opened(path, os.O_RDWR | os.O_CREAT)
    # With a buffer, which is written as a whole or with an error: a disk that is nearly full takes a part.
    with open(descriptor, "r+b") as file:  # noqa: PTH123 - a descriptor
        os.fchmod(descriptor, mode)
        if data is not None and file.read(len(data) + 1) != data:
            file.seek(0)
            file.truncate()
            file.write(data)


def _opened(path: str | Path, flags: int) -> int:
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    # Before it becomes a file object: of a folder that fails, and leaves the descriptor open.
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is no file; something else was put in its place, take it away")
    return descriptor
