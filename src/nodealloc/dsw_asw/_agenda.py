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
        wanted: What changed in the desired world.
        had: What changed in the actual world.
        near: What keys depend on in other worlds.
        everything: Every key of both worlds, for a resync.
        on_change: Is told of each key of which a record changed, its own or a near one,
            and, for the actual record, who changed it.

    Attributes:
        planned: Key to who changed its record since its last plan, which saw that change before
            it was published: no reason for another look.
    """

    def __init__(
        self,
        wanted: Watch[K],
        had: Watch[K],
        near: Dependencies[K],
        everything: Callable[[], Iterator[K]],
        on_change: Callable[[K, tuple[str, ...]], None],
    ) -> None:
        self._wanted = wanted
        self._had = had
        self._near = near
        self._everything = everything
        self._on_change = on_change
        self.planned: dict[K, tuple[str, ...]] = {}
        self._due: dict[K, None] = {}
        self._resyncing: Iterator[K] | None = None

    @property
    def has_changes(self) -> bool:
        """Whether a watch holds any key."""
        return bool(self._wanted or self._had) or self._near.has_changes

    def add(self, keys: Iterable[K], /) -> None:
        """Look at these again."""
        for key in keys:
            self._due[key] = None

    def resync(self) -> None:
        """Look at every key that there is now, when nothing else is due."""
        self._resyncing = self._everything()

    def take(self) -> tuple[dict[K, None], bool]:
        """A batch of keys, and whether more may be due."""
        if self._wanted:
            self._changed(self._wanted.take())
        if self._had:
            for key, change in self._had.take().items():
                self._on_change(key, change.by)
                if self.planned.get(key) != change.by:
                    self._due[key] = None
        self.planned = {}
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
        self._wanted.close()
        self._had.close()
        self._near.close()

    def _changed(self, keys: Iterable[K]) -> None:
        for key in keys:
            self._on_change(key, ())
            self._due[key] = None
