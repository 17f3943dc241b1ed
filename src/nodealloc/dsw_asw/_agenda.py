"""Which keys the next pass looks at: those that changed, those asked for again, now and then all."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

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
        everything: Every key of both worlds, for a resync.
    """

    def __init__(self, watches: Iterable[Watch[K]], everything: Callable[[], Iterator[K]]) -> None:
        self._watches = tuple(watches)
        self._everything = everything
        self._due = OrderedDict[K, None]()
        self._resyncing: Iterator[K] = iter(())

    @property
    def has_changes(self) -> bool:
        """Whether a watch holds any key."""
        return any(map(len, self._watches))

    def add(self, keys: Iterable[K], /) -> None:
        """Look at these again."""
        self._due.update(dict.fromkeys(keys))

    def resync(self) -> None:
        """Look at every key that there is now, when nothing else is due."""
        self._resyncing = self._everything()

    def take(self) -> tuple[dict[K, None], bool]:
        """A batch of keys, and whether more may be due."""
        for watch in self._watches:
            if watch:
                self.add(watch.take())
        before = len(self._due)
        if before < _BATCH:
            self.add(itertools.islice(self._resyncing, _BATCH))
        keys: dict[K, None] = {}
        while self._due and len(keys) < _BATCH:
            keys[self._due.popitem(last=False)[0]] = None
        return keys, bool(self._due) or len(keys) > before

    def close(self) -> None:
        """Collect no more changes."""
        for watch in self._watches:
            watch.close()
