"""The directory that pods' volumes stand in, laid out as the kubelet lays it out.

    ROOT/pods/UID/volumes/PLUGIN/NAME           a file system for a pod
    ROOT/pods/UID/volumeDevices/PLUGIN/NAME     a raw block device for a pod
    ROOT/plugins/PLUGIN/mounts/NAME             a volume staged for the node

PLUGIN is the plugin's name with `~` for `/`: `kubernetes.io~empty-dir`.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence

from nodealloc._typed import typed
from nodealloc.errors import NodeallocError, PermanentError
from nodealloc.volumes._errors import MountedHereError
from nodealloc.volumes._paths import DEAD, SafeRoot
from nodealloc.volumes._ports import Found, Mounter
from nodealloc.volumes._removal import remove_empty

__all__ = ["PodsDirectory", "found_at", "leave_pod", "pod_path", "stage_path"]


@typed
def pod_path(root: SafeRoot, plugin: str, pod_uid: str, name: str, /, *, block: bool = False) -> str:
    """Where a pod finds a volume; raises `OutsideRootError` for names that are none."""
    return root.join("pods", pod_uid, "volumeDevices" if block else "volumes", plugin.replace("/", "~"), name)


def stage_path(root: SafeRoot, plugin: str, name: str, /) -> str:
    """Where a volume is staged for the node."""
    return root.join("plugins", plugin.replace("/", "~"), "mounts", name)


def found_at(root: SafeRoot, path: str, /) -> Found | None:
    """What stands at a path below the root; None for what is no volume's place."""
    match root.names(path):
        case ("pods", uid, "volumes" | "volumeDevices" as kind, plugin, name):
            block = kind == "volumeDevices"
            return Found(plugin=plugin.replace("~", "/"), name=name, pod_uid=uid, block=block)
        case ("plugins", plugin, "mounts", name):
            return Found(plugin=plugin.replace("~", "/"), name=name)
        case _:
            return None


@typed
def leave_pod(root: SafeRoot, path: str, /) -> None:
    """Remove the directories between `pods` and a volume that is gone, as far as they are empty.

    What holds them, cannot be removed now, or has something mounted on it stays:
    `PodsDirectory.tidy` finds it. No such mount is looked into.
    """
    names = root.names(path)
    try:
        for depth in (4, 3, 2):
            above, name = names[1 : depth - 1], names[depth - 1]
            try:
                with root.open_unmounted(root.join(names[0]), *above) as parent:
                    remove_empty(parent, name, root.join(*names[:depth]))
            except FileNotFoundError:
                continue
    except (OSError, NodeallocError):
        return


class PodsDirectory:
    """`Leftovers` of a directory on this machine, which one manager has at a time. Thread-safe.

    Args:
        root: Holds `pods` and `plugins`.
        mounter: Unmounts what no plugin knows.
    """

    @typed
    def __init__(self, root: SafeRoot, mounter: Mounter, /) -> None:
        self._root = root
        self._mounter = mounter

    def found(self) -> Sequence[Found]:
        """Every directory, file or link in the place of a volume; what stands elsewhere is foreign.

        So is what is mounted above such a place, on a pod's directory or on that
        of a plugin: it is not looked into, and holds nobody up when its server is gone.
        """
        return [*self._of_pods(), *self._staged()]

    def clean(self, found: Found, /) -> None:
        """Unmount, then remove the directory if it is empty.

        Raises:
            PermanentError: It is not empty, or no directory: somebody has to look at it.
        """
        if found.pod_uid:
            path = pod_path(self._root, found.plugin, found.pod_uid, found.name, block=found.block)
        else:
            path = stage_path(self._root, found.plugin, found.name)
        while self._mounter.is_mounted(path):
            self._mounter.unmount(path)
        try:
            self._root.remove_directory(path)
            if found.pod_uid:
                leave_pod(self._root, path)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.ENOTDIR):
                raise
            raise PermanentError(
                f"{path} belongs to no plugin and is not an empty directory; look at it and remove it by hand"
            ) from error

    def tidy(self) -> None:
        """Remove the empty directories of pods that a killed program left; what is not empty stays.

        May be called at any time, from any thread.
        """
        for uid in self._names("pods"):
            for kind in ("volumes", "volumeDevices"):
                for plugin in self._names("pods", uid, kind) or ["none"]:
                    leave_pod(self._root, self._root.join("pods", uid, kind, plugin, "none"))

    def _of_pods(self) -> Iterator[Found]:
        for uid in self._names("pods"):
            for kind, block in (("volumes", False), ("volumeDevices", True)):
                for plugin in self._names("pods", uid, kind):
                    for name in self._names("pods", uid, kind, plugin):
                        yield Found(plugin=plugin.replace("~", "/"), name=name, pod_uid=uid, block=block)

    def _staged(self) -> Iterator[Found]:
        for plugin in self._names("plugins"):
            for name in self._names("plugins", plugin, "mounts"):
                yield Found(plugin=plugin.replace("~", "/"), name=name)

    def _names(self, *names: str) -> Sequence[str]:
        """Names in a directory; a file, link or mount in its place is foreign and holds nothing of ours."""
        try:
            return self._root.list_unmounted(self._root.join(names[0]), *names[1:])
        except (PermanentError, MountedHereError, NotADirectoryError):
            return []
        except OSError as error:
            # A mount may refuse even to be named when what it came from is gone.
            if len(names) > 1 and error.errno in DEAD:
                return []
            raise
