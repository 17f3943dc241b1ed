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

_NEW_PART = 8
"""At least one in so many keys of a full batch is new: something else is wanted of it now. More, and of keys
that are planned often before they rest ever more would be under way."""
_BURST_PART = 8
"""Of a burst one pass plans so many parts of what is due, or a batch where that is more."""
_LATE_PART = 8
"""Behind a long line of new keys one more in so many is begun, and at least one, of those that came last."""


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
        most: The same where many are due, of which one pass plans an eighth then. Where so many new
            ones wait that even such passes leave them waiting, some of the last are begun with the first.

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
        most: int | None = None,
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
        self._latest: dict[K, None] = {}
        self._batch = batch
        self._most = batch if most is None else max(batch, most)
        self._resyncing: Iterator[K] | None = None

    @property
    def has_changes(self) -> bool:
        """Whether a watch holds any key."""
        return bool(self._wanted or self._had) or self._near.has_changes

    @property
    def left(self) -> int:
        """How many keys the last batch left to the next one."""
        return len(self._due) + len(self._new)

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
            self._latest = self._changed(self._wanted.take())
            self._new |= self._latest
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
        batch = min(max(self._batch, len(keys) // _BURST_PART), self._most)
        if len(keys) <= batch:
            self._new, self._latest = {}, {}
            return keys, more
        return self._some({**due, **moved}, batch), True

    def _some(self, under_way: dict[K, None], batch: int) -> dict[K, None]:
        """A full batch: what is under way ends before more is begun, and both go on."""
        new = [key for key in self._new if key not in under_way]
        count = max(batch - len(under_way), batch // _NEW_PART, 1)
        late = self._late(new, count)
        early = itertools.islice((key for key in new if key not in late), count - len(late))
        first = dict.fromkeys((*early, *late))
        self._new = {key: None for key in new if key not in first}
        keys = dict.fromkeys(itertools.islice(under_way, batch - len(first)))
        self._due = {key: None for key in under_way if key not in keys}
        return keys | first

    def _late(self, new: list[K], count: int) -> dict[K, None]:
        """The last keys that came behind a line that is very long: a few are begun before it has ended.

        Of those that came at one time the last ones, too: behind the others they would wait as long.
        """
        is_long = self._batch < self._most and len(new) > self._most * _BURST_PART
        if not is_long or new[0] in self._latest:
            return {}
        latest = [key for key in new if key in self._latest]
        return dict.fromkeys(latest[-max(count // _LATE_PART, 1) :])

    def close(self) -> None:
        """Collect no more changes."""
        self._wanted.close()
        self._had.close()
        self._near.close()

    def _changed(self, keys: Iterable[K]) -> dict[K, None]:
        for key in keys:
            self._on_change(key, ())
        return dict.fromkeys(keys)
