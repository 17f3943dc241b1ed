"""`hostPath`: a file or directory of the node, given to a pod as it is."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from nodealloc._typed import typed, typed_methods
from nodealloc.podspec import Pod, Volume
from nodealloc.volumes._errors import InvalidVolumeError
from nodealloc.volumes._model import Use, VolumeSpec

__all__ = ["HostPath"]

_IS: Final[Mapping[str, Callable[[int], bool]]] = {
    "Directory": stat.S_ISDIR,
    "DirectoryOrCreate": stat.S_ISDIR,
    "File": stat.S_ISREG,
    "FileOrCreate": stat.S_ISREG,
    "Socket": stat.S_ISSOCK,
    "CharDevice": stat.S_ISCHR,
    "BlockDevice": stat.S_ISBLK,
}


@typed_methods
class HostPath:
    """Plugin for `hostPath`; thread-safe. It mounts nothing and deletes nothing.

    Args:
        host_root: Where the node's root is seen from here, for an agent in a container.

    Source: kubelet ``volume/hostpath``; a mode of 0755 for directories and
    0644 for files that it makes.
    """

    name: str = "kubernetes.io/host-path"
    kinds: tuple[str, ...] = ("hostPath",)

    @typed
    def __init__(self, host_root: str = "/", /) -> None:
        self._host_root = host_root

    def spec(self, pod: Pod, volume: Volume, /) -> VolumeSpec:
        """Read `path` and `type`; raises `InvalidVolumeError`."""
        path, kind = volume.spec.get("path"), volume.spec.get("type") or ""
        if not isinstance(path, str) or not path.startswith("/") or "\0" in path:
            raise InvalidVolumeError(volume.name, f"path is {path!r}; write an absolute path")
        if ".." in path.split("/"):
            raise InvalidVolumeError(volume.name, f"path {path} holds `..`; write it without")
        if kind and kind not in _IS:
            raise InvalidVolumeError(volume.name, f'type is {kind!r}; use one of {", ".join(_IS)}, or ""')
        return VolumeSpec(
            plugin=self.name, name=volume.name, pod_uid=pod.uid, config={"path": path, "type": kind}
        )

    def mount(self, spec: VolumeSpec, use: Use, device_path: str, /) -> None:
        """Check that it is what the pod says, and make it where the type asks for that.

        Raises:
            InvalidVolumeError: Something else is there, or nothing.
        """
        del device_path
        path, kind = Path(self.path(spec, use)), str(spec.config.get("type", ""))
        if not kind:
            return
        if kind == "DirectoryOrCreate" and not path.exists():
            _make_directories(spec.name, path)
        elif kind == "FileOrCreate" and not path.exists():
            _make_file(spec.name, path)
        try:
            mode = path.stat().st_mode
        except OSError as error:
            raise InvalidVolumeError(
                spec.name, f"{path} is no {kind}: {os.strerror(error.errno or 0)}; make it on the node"
            ) from error
        if not _IS[kind](mode):
            raise InvalidVolumeError(
                spec.name, f"{path} is no {kind} but {_kind_of(mode)}; mend type or path"
            )

    def unmount(self, spec: VolumeSpec, use: Use, /) -> None:
        """Nothing was mounted, and what was made stays: it is the node's."""

    def path(self, spec: VolumeSpec, use: Use, /) -> str:
        """The path on the node, as the pod writes it where that is its path from here."""
        del use
        path, root = str(spec.config.get("path", "")), self._host_root.rstrip("/")
        return path if not root and path else os.path.normpath(f"{root}/{path.lstrip('/')}")


def _make_directories(volume: str, path: Path) -> None:
    missing = [one for one in (path, *path.parents) if not one.exists()]
    for one in reversed(missing):
        try:
            one.mkdir(exist_ok=True)
        except FileExistsError as error:
            what = "is a link that leads nowhere; make what it leads to, or take it away"
            raise InvalidVolumeError(volume, f"{one} {what}") from error
        one.chmod(0o755)


def _make_file(volume: str, path: Path) -> None:
    if not path.parent.is_dir():
        raise InvalidVolumeError(volume, f"{path.parent} is no directory; FileOrCreate makes the file alone")
    path.touch(exist_ok=True)
    path.chmod(0o644)


def _kind_of(mode: int) -> str:
    names = {
        kind: name
        for name, kind in (
            ("a directory", stat.S_IFDIR),
            ("a file", stat.S_IFREG),
            ("a socket", stat.S_IFSOCK),
            ("a character device", stat.S_IFCHR),
            ("a block device", stat.S_IFBLK),
            ("a named pipe", stat.S_IFIFO),
        )
    }
    return names.get(stat.S_IFMT(mode), "something else")
