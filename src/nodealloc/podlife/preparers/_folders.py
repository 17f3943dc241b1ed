"""A pod's own folder, as long as anybody needs it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from nodealloc._mountinfo import parse_mountinfo, read_mountinfo
from nodealloc.dsw_asw import Cancel
from nodealloc.errors import NodeallocError
from nodealloc.podspec import Pod
from nodealloc.verdicts import Admitted, NotYet
from nodealloc.volumes import SafeRoot

__all__ = ["FolderPreparer"]


class FolderPreparer:
    """A `Preparer` of the pod's own directory: there while a source has the pod, or a mount is in it.

    Args:
        pods: Holds all of them.
        has: Whether a source has a pod.
        mountinfo: Reads what is mounted where.
    """

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

    def _mounted(self, uid: str) -> list[str]:
        mounts = parse_mountinfo(self._mountinfo())
        return [one.target for one in mounts if one.target.startswith(f"{self._pods / uid}/")]
