"""Which keys the next pass looks at: those that changed, those asked for again, now and then all."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from nodealloc.dsw_asw._dependencies import Dependencies
from nodealloc.dsw_asw._world import Watch, World

__all__ = ["DueKeys"]

K = TypeVar("K", bound=Hashable)
W = TypeVar("W")
H = TypeVar("H")

_NEW_PART = 4
"""At least one in so many keys of a full batch is new: something else is wanted of it now."""


class DueKeys(Generic[K]):
    """Keys in the order in which they became due; not thread-safe, its owner holds a lock.

    Args:
        desired: What is wanted.
        actual: What is there.
        near: What keys depend on in other worlds.
        on_change: Is told of each key of which a record changed, its own or a near one,
            and, for the actual record, who changed it.
        wake: Called when a record of either world changed.
        batch: Keys that one pass plans at most. What is under way comes before what is new.

    Attributes:
        planned: Key to who changed its record since its last plan, which saw that change before
            it was published: no reason for another look.
    """

    def __init__(
        self,
        desired: World[K, W],
        actual: World[K, H],
        near: Dependencies[K],
        on_change: Callable[[K, tuple[str, ...]], None],
        *,
        wake: Callable[[], None],
        batch: int,
    ) -> None:
        self._wanted: Watch[K] = desired.watch(wake)
        self._had: Watch[K] = actual.watch(wake)
        self._near = near
        self._everything: Callable[[], Iterator[K]] = lambda: itertools.chain(
            desired.snapshot(), actual.snapshot()
        )
        self._on_change = on_change
        self.planned: dict[K, tuple[str, ...]] = {}
        self._due: dict[K, None] = {}
        self._new: dict[K, None] = {}
        self._batch = batch
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
        due, self._due = self._due, {}
        if self._wanted:
            self._new |= self._changed(self._wanted.take())
        moved: dict[K, None] = {}
        if self._had:
            for key, change in self._had.take().items():
                self._on_change(key, change.by)
                if self.planned.get(key) != change.by:
                    moved[key] = None
        self.planned = {}
        if self._near.has_changes:
            moved |= self._changed(tuple(self._near.woken()))
        more = False
        if self._resyncing is not None and len(due) + len(self._new) + len(moved) < self._batch:
            found = list(itertools.islice(self._resyncing, self._batch))
            moved |= dict.fromkeys(found)
            more = bool(found)
            self._resyncing = self._resyncing if found else None
        keys = {**due, **self._new, **moved}
        if len(keys) <= self._batch:
            self._new = {}
            return keys, more
        return self._some({**due, **moved}), True

    def _some(self, under_way: dict[K, None]) -> dict[K, None]:
        """A full batch: what is under way ends before more is begun, and both go on."""
        new = [key for key in self._new if key not in under_way]
        count = max(self._batch - len(under_way), self._batch // _NEW_PART)
        first = dict.fromkeys(new[:count])
        self._new = dict.fromkeys(new[count:])
        keys = dict.fromkeys(itertools.islice(under_way, self._batch - len(first)))
        self._due = {key: None for key in under_way if key not in keys}
        return keys | first

    def close(self) -> None:
        """Collect no more changes."""
        self._wanted.close()
        self._had.close()
        self._near.close()

    def _changed(self, keys: Iterable[K]) -> dict[K, None]:
        for key in keys:
            self._on_change(key, ())
        return dict.fromkeys(keys)
