"""Volumes that are files of somebody's content: which files, by their items, and where they lie."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from nodealloc.podspec import Json, Pod
from nodealloc.volumes._errors import InvalidVolumeError
from nodealloc.volumes._model import Use, VolumeSpec
from nodealloc.volumes._paths import SafeRoot, check_names, naming
from nodealloc.volumes._pods_directory import leave_pod, pod_path
from nodealloc.volumes._ports import Found, Mounter
from nodealloc.volumes.plugins._atomic_files import FileContent, write_files
from nodealloc.volumes.plugins._memory import mount_memory

__all__ = [
    "DEFAULT_MODE",
    "FileVolumes",
    "inner_mounts",
    "items_of",
    "key_items",
    "mode_of",
    "path_of",
    "revision_of",
    "united",
]

DEFAULT_MODE: Final = 0o644
_INNER_MOUNTS: Final = "innerMounts"
_TMPFS: Final = ("nosuid", "nodev")


class FileVolumes:
    """What plugins share whose volumes are files that change all at once; thread-safe.

    Args:
        root: Directory of the node's pods.
        mounter: Mounts below `root`.
        plugin: Whose volumes.
        in_memory: Whether the files lie on a tmpfs.
        keeps_folders: Leave the directories above a volume that is gone, as `EmptyDir` does.
    """

    def __init__(
        self,
        root: SafeRoot,
        mounter: Mounter,
        plugin: str,
        /,
        *,
        in_memory: bool,
        keeps_folders: bool = False,
    ) -> None:
        self._root, self._mounter, self._plugin = root, mounter, plugin
        self._in_memory, self._keeps_folders = in_memory, keeps_folders

    def write(self, spec: VolumeSpec, use: Use, files: Mapping[str, FileContent], /) -> None:
        """Bring a volume to hold these files; the same ones again write nothing."""
        path = self.path(spec.name, use)
        inner = spec.config.get(_INNER_MOUNTS)
        folders = [str(one) for one in inner] if isinstance(inner, Sequence) else []
        self._root.make_directory(path, mode=0o777)
        if self._in_memory and not self._mounter.is_mounted(path):
            mount_memory(self._mounter, path, *_TMPFS)
        with self._root.open_directory(path) as fd, naming(path):
            write_files(fd, files, group=use.fs_group, folders=folders)

    def remove(self, name: str, use: Use, /) -> None:
        """Take the memory off and delete the files."""
        path = self.path(name, use)
        while self._mounter.is_mounted(path):
            self._mounter.unmount(path)
        self._root.remove_tree(path)
        if not self._keeps_folders:
            leave_pod(self._root, path)

    def path(self, name: str, use: Use, /) -> str:
        """`pods/UID/volumes/PLUGIN/NAME`."""
        return pod_path(self._root, self._plugin, use.pod_uid, name)

    def found(self, found: Found, /) -> VolumeSpec | None:
        """Path and pod tell everything that taking it down needs."""
        if not found.pod_uid or found.block:
            return None
        return VolumeSpec(plugin=self._plugin, name=found.name, pod_uid=found.pod_uid)


def revision_of(content: str, spec: VolumeSpec, /) -> str:
    """Names the files, and where others are mounted inside, which takes directories."""
    inner = spec.config.get(_INNER_MOUNTS)
    return f"{content} {inner}" if inner else content


def inner_mounts(pod: Pod, volume: str, /) -> Mapping[str, Json]:
    """For a volume's config, which `write` reads: where others are mounted inside it, relative to it.

    What is inside of those is left out. Containers may only read the volume, so nobody else can make
    a directory there.

    Raises:
        OutsideRootError: A mount path inside it has characters that no name can have, or too many.

    Source: kubelet ``volume/util/nested_volumes.go``.
    """
    found: dict[Json, None] = {}
    for one in (*pod.all_containers, *pod.ephemeral_containers):
        mounts = [
            (use.name, posixpath.normpath(f"/{use.path.lstrip('/')}")) for use in one.volumes if not use.block
        ]
        for mine in [path for name, path in mounts if name == volume]:
            before = ""
            for path in sorted(path for _, path in mounts if path.startswith(f"{mine}/")):
                inside = path[len(mine) + 1 :]
                # Names that begin so are the writer's own.
                if inside.startswith("..") or (before and path.startswith(f"{before}/")):
                    continue
                check_names(*inside.split("/"))
                found[inside], before = None, path
    return {_INNER_MOUNTS: list(found)}


def mode_of(volume: str, mode: Json, /) -> int:
    """The permission bits that a volume or an item says, null or not; raises `InvalidVolumeError`."""
    if mode is None:
        return DEFAULT_MODE
    if not isinstance(mode, int) or isinstance(mode, bool) or not 0 <= mode <= 0o777:
        raise InvalidVolumeError(volume, f"mode is {mode!r}; use 0 to 511, which is 0777 in octal")
    return mode


def path_of(volume: str, path: Json, /) -> str:
    """A path inside a volume, without what says nothing; raises `InvalidVolumeError`.

    Source: kubelet ``volume/util/atomic_writer.go``.
    """
    clean = posixpath.normpath(path) if isinstance(path, str) and path else ""
    leads_out = clean.startswith(("/", "..")) or ".." in str(path).split("/") or "\0" in clean
    if clean in ("", ".") or leads_out:
        raise InvalidVolumeError(
            volume, f"path {path!r} leads out of the volume; write a relative path without `..`"
        )
    return clean


def items_of(volume: str, items: Json, wanted: str, /) -> Iterator[Mapping[str, Json]]:
    """Each of a list of items, with its `path` and its `mode` checked; raises `InvalidVolumeError`.

    Args:
        volume: The pod's name of it.
        items: As it came; None for none.
        wanted: What an item has, for messages.
    """
    if items is None:
        return
    if not isinstance(items, Sequence) or isinstance(items, str):
        raise InvalidVolumeError(volume, f"items is {items!r}; write a list of {wanted}")
    for item in items:
        if not isinstance(item, Mapping) or not isinstance(item.get("path"), str):
            raise InvalidVolumeError(volume, f"item {item!r} lacks {wanted.replace(' and ', ' or ')}")
        mode = item.get("mode")
        checked: dict[str, Json] = {
            "path": path_of(volume, item["path"]),
            "mode": None if mode is None else mode_of(volume, mode),
        }
        yield {**item, **checked}


def key_items(volume: str, items: Json, /) -> Json:
    """Items that name keys of an object, checked; None where every key is a file, as without any item."""
    if items in (None, [], ()):
        return None
    found: list[Json] = []
    for item in items_of(volume, items, "key and path"):
        if not isinstance(item.get("key"), str):
            raise InvalidVolumeError(volume, f"item {item!r} lacks key or path")
        found.append({name: item[name] for name in ("key", "path", "mode")})
    return found


def united(volume: str, parts: Sequence[Mapping[str, FileContent]], /) -> dict[str, FileContent]:
    """The files of several sources; of one path the last counts.

    Raises:
        InvalidVolumeError: One file stands where another needs a directory.
    """
    files = {path: content for part in parts for path, content in part.items()}
    for path in files:
        above = path
        while above := posixpath.dirname(above):
            if above in files:
                raise InvalidVolumeError(
                    volume, f"{above!r} is a file and, for {path!r}, a directory; choose other paths"
                )
    return files
