"""Which keys looked at which records of other worlds, so that a change there wakes just those."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Generic, TypeVar

from nodealloc._frozen import Frozen
from nodealloc.dsw_asw._plans import Near
from nodealloc.dsw_asw._world import Watch

__all__ = ["Dependencies"]

K = TypeVar("K", bound=Hashable)
_NOTHING: Final[Mapping[Hashable, object]] = Frozen()


class _One(Generic[K]):
    """One declared dependency, and who looked at what of it."""

    def __init__(self, near: Near[K, Hashable, object], wake: Callable[[], None]) -> None:
        self.near = near
        self.watch: Watch[Hashable] = near.world.watch(wake)
        self._theirs: dict[K, tuple[Hashable, ...]] = {}
        self._mine: dict[Hashable, dict[K, None]] = {}

    def look(self, key: K) -> Mapping[Hashable, object]:
        """The records that matter for a key; noted first, so that no change after the look is lost."""
        theirs = tuple(self.near.keys_of(key))
        if len(theirs) > 1:
            theirs = tuple(dict.fromkeys(theirs))
        if self._theirs.get(key, ()) != theirs:
            self.forget(key)
            if theirs:
                self._theirs[key] = theirs
            for one in theirs:
                self._mine.setdefault(one, {})[key] = None
        get = self.near.world.get
        if len(theirs) == 1:  # as nearly always
            (one,) = theirs
            value = get(one)
            return _NOTHING if value is None else {one: value}
        return {one: value for one in theirs if (value := get(one)) is not None}

    def forget(self, key: K) -> None:
        for one in self._theirs.pop(key, ()):
            mine = self._mine[one]
            mine.pop(key, None)
            if not mine:
                del self._mine[one]

    def woken(self) -> Iterator[K]:
        """Keys whose records changed since the last call."""
        if self.watch:
            for one in self.watch.take():
                yield from self._mine.get(one, ())


class Dependencies(Generic[K]):
    """The declared dependencies of one reconciler; used by one thread at a time."""

    def __init__(self, near: Sequence[Near[K, Hashable, object]], wake: Callable[[], None]) -> None:
        self._all = tuple(_One(one, wake) for one in near)

    @property
    def has_changes(self) -> bool:
        """Whether a record of another world changed that nobody looked at since."""
        return any(len(one.watch) for one in self._all)

    def look(self, key: K, /) -> Mapping[object, Mapping[Hashable, object]]:
        """For each dependency the records that are there for a key."""
        return {one.near: one.look(key) for one in self._all}

    def woken(self) -> Iterable[K]:
        """Keys that looked at something that changed."""
        for one in self._all:
            yield from tuple(one.woken())

    def forget(self, key: K, /) -> None:
        """The key is gone."""
        for one in self._all:
            one.forget(key)

    def close(self) -> None:
        """Collect no more changes."""
        for one in self._all:
            one.watch.close()
