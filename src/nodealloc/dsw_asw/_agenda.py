"""Which keys the next pass looks at: those that changed, those asked for again, now and then all."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from nodealloc.dsw_asw._dependencies import Dependencies
from nodealloc.dsw_asw._world import Watch

__all__ = ["Agenda"]

K = TypeVar("K", bound=Hashable)

_BATCH = 1000
"""Keys that one pass plans at most. A burst of 10,000 changes starts its first operations after a
tenth of the planning, and no pass holds the lock for long."""


class Agenda(Generic[K]):
    """Keys in the order in which they became due; not thread-safe, its owner holds a lock.

    Args:
        watches: What changed in each world.
        near: What keys depend on in other worlds.
        everything: Every key of both worlds, for a resync.
        on_change: Is told of each key of which a record changed, its own or a near one.
    """

    def __init__(
        self,
        watches: Iterable[Watch[K]],
        near: Dependencies[K],
        everything: Callable[[], Iterator[K]],
        on_change: Callable[[K], None],
    ) -> None:
        self._watches = tuple(watches)
        self._near = near
        self._everything = everything
        self._on_change = on_change
        self._due: dict[K, None] = {}
        self._resyncing: Iterator[K] | None = None

    @property
    def has_changes(self) -> bool:
        """Whether a watch holds any key."""
        return any(map(len, self._watches)) or self._near.has_changes

    def add(self, keys: Iterable[K], /) -> None:
        """Look at these again."""
        for key in keys:
            self._due[key] = None

    def resync(self) -> None:
        """Look at every key that there is now, when nothing else is due."""
        self._resyncing = self._everything()

    def take(self) -> tuple[dict[K, None], bool]:
        """A batch of keys, and whether more may be due."""
        for watch in self._watches:
            if watch:
                self._changed(watch.take())
        if self._near.has_changes:
            self._changed(tuple(self._near.woken()))
        more = False
        if self._resyncing is not None and len(self._due) < _BATCH:
            batch = list(itertools.islice(self._resyncing, _BATCH))
            self.add(batch)
            more = bool(batch)
            self._resyncing = self._resyncing if batch else None
        if len(self._due) <= _BATCH:
            keys, self._due = self._due, {}
            return keys, more
        keys = dict.fromkeys(itertools.islice(self._due, _BATCH))
        for key in keys:
            del self._due[key]
        return keys, True

    def close(self) -> None:
        """Collect no more changes."""
        for watch in self._watches:
            watch.close()
        self._near.close()

    def _changed(self, keys: Iterable[K]) -> None:
        for key in keys:
            self._on_change(key)
            self._due[key] = None
