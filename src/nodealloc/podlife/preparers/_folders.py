"""A pod's own folder, as long as anybody needs it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

from nodealloc._mountinfo import parse_mountinfo, read_mountinfo
from nodealloc._typed import typed, typed_methods
from nodealloc.dsw_asw import Cancel
from nodealloc.errors import NodeallocError
from nodealloc.podlife._housekeeping import plan_housekeeping
from nodealloc.podlife._pod_folders import PodFolders
from nodealloc.podspec import Pod
from nodealloc.verdicts import Admitted, NotYet
from nodealloc.volumes import SafeRoot

__all__ = ["FolderPreparer"]


@typed_methods
class FolderPreparer:
    """A `Preparer` of the pod's own directory: there while a source has the pod, or a mount is in it.

    Args:
        pods: Holds all of them.
        has: Whether a source has a pod.
        mountinfo: Reads what is mounted where.

    Raises:
        ConfigurationError: Something else than a Path and functions.
    """

    NAME: Final = "folders"
    """Of its `Preparation`; it is remembered, so it stays the same over releases."""

    @typed
    def __init__(
        self, pods: Path, has: Callable[[str], bool], *, mountinfo: Callable[[], str] = read_mountinfo
    ) -> None:
        self._pods, self._has, self._mountinfo = pods, has, mountinfo

    def make_ready(self, pod: Pod, _cancel: Cancel, /) -> Admitted:
        """See `Preparer.make_ready`."""
        self._pods.mkdir(parents=True, exist_ok=True)
        root = SafeRoot(str(self._pods.resolve()))
        for name in ("volumes", "plugins"):
            root.make_directory(root.join(pod.uid, name))
        return Admitted()

    def take_back(self, pod: Pod, _cancel: Cancel, /) -> NotYet | None:
        """See `Preparer.take_back`."""
        mounted = self._mounted(pod.uid)
        if mounted:
            return NotYet(blocker="mounts", message=f"still mounted: {', '.join(mounted)}", after_s=1.0)
        self.remove(pod.uid)
        return None

    def remove(self, uid: str) -> None:
        """Remove the directory, unless it is needed; what cannot be removed stays."""
        if not self._has(uid) and not self._mounted(uid) and self._pods.is_dir():
            root = SafeRoot(str(self._pods.resolve()))
            with contextlib.suppress(OSError, NodeallocError):
                root.remove_tree(root.join(uid))

    def settle(self, known: Callable[[], Collection[str]]) -> None:
        """Remove directories of pods that nobody knows: an agent was killed as it was about to.

        One in which something is mounted stays, and so does one that has a volume of its own, or of
        which the disk does not say whether it has.

        Args:
            known: Uids of pods that are wanted, remembered or have something at the runtime; asked
                once the directories were listed, so that nobody comes in between.
        """
        folders = PodFolders(str(self._pods.absolute()), mountinfo=self._mountinfo)
        for one in plan_housekeeping(folders.found(), known(), is_ready=True).remove:
            if not _may_hold_volumes(f"{one.where}/volumes"):
                self.remove(one.uid)

    def _mounted(self, uid: str) -> list[str]:
        folder = str(self._pods.resolve() / uid)  # as the kernel names it
        mounts = [one.target for one in parse_mountinfo(self._mountinfo())]
        return [one for one in mounts if one == folder or one.startswith(f"{folder}/")]


def _may_hold_volumes(folder: str) -> bool:
    """Whether any folder in it holds something; also where one cannot be listed, so that nobody knows."""
    try:
        return any(_names(f"{folder}/{plugin}") for plugin in _names(folder))
    except OSError:
        return True


def _names(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [one.name for one in entries]
    except (FileNotFoundError, NotADirectoryError):
        return []
