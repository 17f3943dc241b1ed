"""Worlds: keyed immutable records with generations, and who changed which of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Generic, TypeVar

import attrs

__all__ = ["Change", "Record", "Snapshot", "Watch", "World"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
V_co = TypeVar("V_co", covariant=True)

_SHARDS = 256
"""A write that follows a snapshot copies one shard, so its cost grows 256 times slower than the world."""


@attrs.frozen
class Record(Generic[V_co]):
    """One value as a world holds it.

    Attributes:
        value: The immutable value.
        generation: Unique in its world for all time and rising; a key that was
            dropped and put again has another one.
        by: Who put it, as the writer named itself.
    """

    value: V_co
    generation: int
    by: str = ""


@attrs.frozen
class Change:
    """What happened to a key since a watch was last emptied.

    Attributes:
        generation: Of the newest change; a drop has a generation of its own.
        by: Everyone who changed it, in order of their first change.
        removed: Whether the key is absent after the newest change.
    """

    generation: int
    by: tuple[str, ...]
    removed: bool


class Snapshot(Mapping[K, Record[V_co]]):
    """A world as it was at one moment; never changes, so any thread may read it."""

    __slots__ = ("_length", "_shards", "generation")

    def __init__(self, shards: tuple[dict[K, Record[V_co]], ...], length: int, generation: int) -> None:
        self._shards = shards
        self._length = length
        self.generation: int = generation

    def __getitem__(self, key: K, /) -> Record[V_co]:
        return self._shards[hash(key) % _SHARDS][key]

    def __iter__(self) -> Iterator[K]:
        for shard in self._shards:
            yield from shard

    def __len__(self) -> int:
        return self._length


class Watch(Generic[K]):
    """The dirty set of one reader: keys that changed since it last took them.

    Many changes of one key are one entry. Thread-safe. Close it when nobody
    empties it any more, or it grows to one entry a key.
    """

    def __init__(self, lock: threading.Lock, leave: Callable[[Watch[K]], None]) -> None:
        self._lock = lock
        self._leave = leave
        self._dirty: dict[K, Change] = {}

    def take(self) -> Mapping[K, Change]:
        """Everything that is dirty, oldest first; the set is empty afterwards."""
        with self._lock:
            taken, self._dirty = self._dirty, {}
        return taken

    def close(self) -> None:
        """Stop collecting; a second call does nothing."""
        self._leave(self)

    def __len__(self) -> int:
        return len(self._dirty)

    def _add(self, key: K, generation: int, by: str, *, removed: bool) -> None:
        before = self._dirty.get(key)
        names = () if before is None else before.by
        self._dirty[key] = Change(generation, names if by in names else (*names, by), removed)


class World(Generic[K, V]):
    """Keyed immutable records, desired or actual; every method may be called from any thread.

    A value equal to the one that is there changes nothing: no generation, no
    dirty key. That is what makes "say it again" free for whoever fills a world.

    Example:
        >>> world: World[str, int] = World("desired")
        >>> dirty = world.watch()
        >>> world.put("db", 2, by="populator").generation
        1
        >>> world.put("db", 2, by="somebody else").generation
        1
        >>> dict(dirty.take())
        {'db': Change(generation=1, by=('populator',), removed=False)}
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = threading.Lock()
        self._shards: list[dict[K, Record[V]]] = [{} for _ in range(_SHARDS)]
        self._owned: set[int] = set(range(_SHARDS))
        self._length = 0
        self._generation = 0
        self._watches: dict[Watch[K], Callable[[], None] | None] = {}

    @property
    def generation(self) -> int:
        """Generation of the newest change; 0 before the first."""
        return self._generation

    def __len__(self) -> int:
        return self._length

    def __contains__(self, key: K, /) -> bool:
        return self.record(key) is not None

    def record(self, key: K, /) -> Record[V] | None:
        """The record of a key, or None."""
        return self._shards[hash(key) % _SHARDS].get(key)

    def get(self, key: K, /) -> V | None:
        """The value of a key, or None."""
        record = self.record(key)
        return None if record is None else record.value

    def put(self, key: K, value: V, /, *, by: str = "") -> Record[V]:
        """Set a key's value and return its record; an equal value changes nothing."""
        record = self.alter(key, lambda _: value, by=by)
        if record is None:
            raise ValueError(f"{self.name}: None is no value for {key!r}; drop the key instead")
        return record

    def drop(self, key: K, /, *, by: str = "") -> bool:
        """Remove a key; False when it was absent already."""
        was_there = False

        def gone(value: V | None) -> None:
            nonlocal was_there
            was_there = value is not None

        self.alter(key, gone, by=by)
        return was_there

    def alter(self, key: K, change: Callable[[V | None], V | None], /, *, by: str = "") -> Record[V] | None:
        """Replace a key's value by a function of it, atomically.

        Args:
            key: What to change.
            change: From the value, or None for an absent key, to the new value,
                or None to drop the key. Runs under the world's lock: it must be
                quick and call no world.
            by: Who changes it.

        Returns:
            The record after the change, or None when the key is absent.
        """
        at = hash(key) % _SHARDS
        with self._lock:
            before = self._shards[at].get(key)
            old = None if before is None else before.value
            new = change(old)
            # The identity test first: comparing two large equal values is what costs.
            if new is old or (new is not None and old is not None and new == old):
                return before
            after = self._write(at, key, new, by)
            callbacks = [callback for callback in self._watches.values() if callback is not None]
        for callback in callbacks:
            callback()
        return after

    def snapshot(self) -> Snapshot[K, V]:
        """Everything, as of now; costs the same for any size."""
        with self._lock:
            self._owned.clear()
            return Snapshot(tuple(self._shards), self._length, self._generation)

    def watch(self, on_change: Callable[[], None] | None = None, /) -> Watch[K]:
        """A dirty set of one's own, holding every present key to begin with.

        Args:
            on_change: Called after each change, on the thread that made it,
                outside the lock; must return at once.
        """
        with self._lock:
            watch = Watch[K](self._lock, self._forget)
            for shard in self._shards:
                for key, record in shard.items():
                    watch._add(key, record.generation, record.by, removed=False)  # noqa: SLF001
            self._watches[watch] = on_change
        return watch

    def _forget(self, watch: Watch[K]) -> None:
        with self._lock:
            self._watches.pop(watch, None)

    def _write(self, at: int, key: K, value: V | None, by: str) -> Record[V] | None:
        if at not in self._owned:
            self._shards[at] = self._shards[at].copy()
            self._owned.add(at)
        shard = self._shards[at]
        # In one step, because `len` is asked without the lock.
        self._length += (value is not None) - (key in shard)
        self._generation += 1
        record = None if value is None else Record(value, self._generation, by)
        if record is None:
            del shard[key]
        else:
            shard[key] = record
        for watch in self._watches:
            watch._add(key, self._generation, by, removed=record is None)  # noqa: SLF001
        return record
