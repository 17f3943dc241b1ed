"""A mounter that remembers its mounts, so that those which somebody else takes off are missed."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from nodealloc._typed import typed
from nodealloc.volumes._paths import SafeRoot
from nodealloc.volumes._pods_directory import found_at
from nodealloc.volumes._ports import Found, Mounter, MountTable

__all__ = ["WatchedMounter"]


class WatchedMounter:
    """A `Mounter` for plugins and the `MountWatch` of their manager; thread-safe.

    What it mounted itself is missed from that moment on; mounts that were made
    in another way, from the first `lost` that saw them. The table is read only
    when the kernel says that it changed.

    Args:
        root: Holds `pods` and `plugins`, as `PodsDirectory` looks for them.
        mounter: Does the work.
        table: Of the same machine; nobody else waits on it.
    """

    @typed
    def __init__(self, root: SafeRoot, mounter: Mounter, table: MountTable, /) -> None:
        self._root = root
        self._mounter = mounter
        self._table = table
        self._lock = threading.Lock()
        self._looks = True
        self._known = self._targets()

    def mount(self, source: str, target: str, /, *, fstype: str = "", options: Sequence[str] = ()) -> None:
        """Mount, and remember it."""
        self._mounter.mount(source, target, fstype=fstype, options=options)
        with self._lock:
            self._known.add(target)
            self._looks = True

    def unmount(self, target: str, /, *, lazy: bool = False) -> None:
        """Forget it, and take it off; a refusal brings it back to mind."""
        with self._lock:
            known = target in self._known
            self._known.discard(target)
        try:
            self._mounter.unmount(target, lazy=lazy)
        except BaseException:
            with self._lock:
                self._known |= {target} if known else set()
            raise

    def is_mounted(self, target: str, /) -> bool:
        """Whether the target is a mount point."""
        return self._mounter.is_mounted(target)

    def lost(self) -> Sequence[Found]:
        """Volumes whose mount point is not in the table any more."""
        if not self._table.wait(0.0) and not self._looks:
            return ()
        with self._lock:
            self._looks = False
            before = self._known.copy()
        try:
            now = self._targets()
        except BaseException:
            self._looks = True  # the table says once alone that it changed
            raise
        with self._lock:
            self._known -= before - now
            self._known |= now
        gone = (found_at(self._root, path) for path in sorted(before - now))
        return [one for one in gone if one is not None]

    def _targets(self) -> set[str]:
        below = f"{self._root.path}/"
        return {one.target for one in self._table.entries() if one.target.startswith(below)}
