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
_ABSENT: Final = object()


class _One(Generic[K]):
    """One declared dependency, and who looked at what of it."""

    def __init__(self, near: Near[K, Hashable, object], wake: Callable[[], None]) -> None:
        self.near = near
        self._theirs: dict[K, tuple[Hashable, ...]] = {}
        self._mine: dict[Hashable, dict[K, None]] = {}
        # A record that no key looks at wakes nobody.
        self.watch: Watch[Hashable] = near.world.watch(wake, of=self._mine)
        # Of a record that keys look at, what counted when all of them had last looked or been woken.
        self._counted: dict[Hashable, object] = {}

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
            found = _NOTHING if value is None else {one: value}
        else:
            found = {one: value for one in theirs if (value := get(one)) is not None}
        if self.near.counts is not None:
            for one in theirs:
                self._look(one, self.near.counts, found.get(one))
        return found

    def _look(self, one: Hashable, counts: Callable[[object], object], value: object) -> None:
        now = _ABSENT if value is None else counts(value)
        if self._counted.setdefault(one, now) != now:
            # Others looked when it was otherwise, so that whatever comes next is news to somebody.
            self._counted[one] = object()

    def forget(self, key: K) -> None:
        for one in self._theirs.pop(key, ()):
            mine = self._mine[one]
            mine.pop(key, None)
            if not mine:
                del self._mine[one]
                self._counted.pop(one, None)

    def woken(self) -> Iterator[K]:
        """Keys whose records changed since the last call."""
        if self.watch:
            for one in self.watch.take():
                if one in self._mine and self._is_news(one):
                    yield from self._mine[one]

    def _is_news(self, one: Hashable) -> bool:
        """Whether anything changed that counts."""
        counts = self.near.counts
        if counts is None:
            return True
        value = self.near.world.get(one)
        now: object
        try:
            now = _ABSENT if value is None else counts(value)
            is_news = bool(self._counted.get(one) != now)
        except Exception:  # noqa: BLE001 - it raises once more in the plans of those who look, one by one
            now, is_news = object(), True
        self._counted[one] = now
        return is_news


class Dependencies(Generic[K]):
    """The declared dependencies of one reconciler; used by one thread at a time."""

    def __init__(self, near: Sequence[Near[K, Hashable, object]], wake: Callable[[], None]) -> None:
        self._all = tuple(_One(one, wake) for one in near)

    @property
    def has_changes(self) -> bool:
        """Whether a record of another world changed that nobody looked at since."""
        for one in self._all:  # noqa: SIM110 - a generator costs more than all of them answer
            if one.watch:
                return True
        return False

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
