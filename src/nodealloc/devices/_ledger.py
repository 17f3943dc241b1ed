"""Keeping the current allocator where there is no node's shell: a lock and a store."""

from __future__ import annotations

import threading
from collections.abc import Callable

from nodealloc.checkpoint import DEVICE_STATE, DeviceManagerState, Store
from nodealloc.devices._allocator import DeviceAllocator
from nodealloc.devices._state import read_alike, remembered, restored
from nodealloc.errors import PermanentError

__all__ = ["DeviceLedger"]


class DeviceLedger:
    """The current allocator, remembered in a store; an `AllocatorKeeper`. Thread-safe.

    Health is not remembered: only a change of grants, or of which resources
    are known, is a commit.

    Args:
        allocator: To begin with.
        store: Where to remember it; None keeps it in memory alone.
    """

    def __init__(self, allocator: DeviceAllocator, /, *, store: Store | None = None) -> None:
        self._lock = threading.RLock()
        self._allocator = allocator
        self._store = store

    @classmethod
    def load(cls, allocator: DeviceAllocator, store: Store, /, *, now_s: float) -> DeviceLedger:
        """Begin with what the store remembers; an empty store remembers nothing.

        Raises:
            PermanentError: The record was damaged. Who holds what is not known
                then, so nothing may be granted before it was found out.
        """
        contents = store.read()
        for damaged in contents.damaged:
            if damaged.key in (DEVICE_STATE, "*"):
                raise PermanentError(
                    f"{damaged.key}: {damaged.reason}; kept as {damaged.kept_as}. Find out which devices "
                    "running containers hold, commit that, and load again"
                )
        state = contents.get(DEVICE_STATE, DeviceManagerState)
        if state is not None:
            allocator = restored(allocator, state, now_s=now_s)
        return cls(allocator, store=store)

    def current(self) -> DeviceAllocator:
        """See `AllocatorKeeper`."""
        return self._allocator

    def alter(
        self, change: Callable[[DeviceAllocator], DeviceAllocator], /
    ) -> tuple[DeviceAllocator, DeviceAllocator]:
        """See `AllocatorKeeper`."""
        with self._lock:
            before = self._allocator
            after = change(before)
            if self._store is not None and not read_alike(before, after):
                self._store.commit({DEVICE_STATE: remembered(after)})
            self._allocator = after
        return before, after
