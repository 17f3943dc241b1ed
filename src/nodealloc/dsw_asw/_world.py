"""Worlds: keyed immutable records with generations, and who changed which of them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Generic, TypeVar

from nodealloc import _attrs as attrs
from nodealloc._arguments import wrong
from nodealloc._typed import typed, typed_on_error
from nodealloc.errors import ConfigurationError

__all__ = ["Change", "Record", "Snapshot", "Watch", "World"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
V_co = TypeVar("V_co", covariant=True)

_SHARDS = 256
"""A write that follows a snapshot copies one shard, so its cost grows 256 times slower than the world."""
_DROPS = 4096
"""Newest drops that are kept, so that a listing which began before one does not bring its key back."""
_log = logging.getLogger("nodealloc.dsw_asw")


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
    """A world as it was at one moment; never changes, so any thread may read it.

    Its keys come in the order in which their records were put, the oldest first.

    Example:
        >>> world: World[str, int] = World("desired")
        >>> world.put("db", 2).value
        2
        >>> world.snapshot()
        Snapshot(records=1, generation=1)
    """

    __slots__ = ("_length", "_shards", "generation")

    def __init__(self, shards: tuple[dict[K, Record[V_co]], ...], length: int, generation: int) -> None:
        self._shards = shards
        self._length = length
        self.generation: int = generation

    def __getitem__(self, key: K, /) -> Record[V_co]:
        return self._shards[hash(key) % _SHARDS][key]

    def __iter__(self) -> Iterator[K]:
        return iter(_oldest_first(self._shards))

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return f"Snapshot(records={self._length}, generation={self.generation})"


class Watch(Generic[K]):
    """The dirty set of one reader: keys that changed since it last took them.

    Many changes of one key are one entry. Thread-safe. Close it when nobody
    empties it any more, or it grows to one entry a key.
    """

    def __init__(
        self, lock: threading.Lock, leave: Callable[[Watch[K]], None], of: Container[object] | None
    ) -> None:
        self._lock = lock
        self._leave = leave
        self._of = of
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

    def _add(self, key: K, generation: int, by: str, *, removed: bool) -> bool:
        """Whether the key counts here."""
        if self._of is not None and key not in self._of:
            return False
        before = self._dirty.get(key)
        names = () if before is None else before.by
        self._dirty[key] = Change(generation, names if by in names else (*names, by), removed)
        return True


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

    @typed
    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = threading.Lock()
        # All empty ones are the same dict, and nobody's own: the first write to one copies it.
        self._shards: list[dict[K, Record[V]]] = [{}] * _SHARDS
        self._owned: set[int] = set()
        self._length = 0
        self._generation = 0
        self._dropped: dict[K, int] = {}
        self._forgotten = 0
        self._engine = ""
        self._watches: dict[Watch[K], Callable[[], None] | None] = {}
        self._heard: dict[Callable[[], None], None] = {}

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
        record = self._shards[hash(key) % _SHARDS].get(key)
        return None if record is None else record.value

    def put(self, key: K, value: V, /, *, by: str = "") -> Record[V]:
        """Set a key's value and return its record; an equal value changes nothing."""
        record = None if value is None else self.alter(key, lambda _: value, by=by)
        if record is None:
            raise ConfigurationError(f"{self.name}: None is no value for {key!r}; drop the key instead")
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
        if not callable(change):
            raise wrong("World.alter, change", change, "a function from the value to the new one")
        self._check_free()
        return self._alter(key, change, by)

    def remembered_by(self, engine: str, /) -> Callable[[K, V | None, str], object]:
        """Let one engine alone write this world from now on; returns how it does.

        For a reconciler that remembers: what others wrote would not be durable.
        """
        if self._engine:
            raise ConfigurationError(
                f"{self.name} is remembered by {self._engine} already; one engine writes a world"
            )
        self._engine = engine
        return lambda key, value, by: self._alter(key, lambda _: value, by)

    def _check_free(self) -> None:
        if self._engine:
            raise ConfigurationError(
                f"{self.name} is remembered by {self._engine}, which alone writes it; "
                "write what was seen into a world of its own, and let a plan look at that"
            )

    def _alter(self, key: K, change: Callable[[V | None], V | None], by: str) -> Record[V] | None:
        at = hash(key) % _SHARDS
        with self._lock:
            before = self._shards[at].get(key)
            old = None if before is None else before.value
            new = change(old)
            # The identity test first: comparing two large equal values is what costs.
            if new is old or (new is not None and old is not None and new == old):
                return before
            after = self._write(at, key, new, by)
            callbacks = self._callbacks()
        _call(callbacks)
        return after

    @typed_on_error
    def replace(self, listing: Mapping[K, V], /, *, since: int | None = None, by: str = "") -> tuple[K, ...]:
        """Take over a whole listing of what was seen: put what differs, drop what is not in it.

        Args:
            listing: Every key that was seen, with its value.
            since: `generation` of this world when the listing began. Keys that
                were written or dropped after it are newer than the listing, and
                stay as they are. None when nobody else writes.
            by: Who looked.

        Returns:
            The keys that changed; a listing that says what is there already
            changes none, and wakes nobody.

        Raises:
            ConfigurationError: None is listed as a value, or an engine remembers
                this world; nothing was changed.
        """
        self._check_free()
        for key, value in listing.items():
            if value is None:
                raise ConfigurationError(f"{self.name}: None is no value for {key!r}; leave the key out")
        changed: list[K] = []
        with self._lock:
            newest = self._generation if since is None else since
            for key, value in listing.items():
                if self._is_older(key, newest) and self._differs(key, value):
                    self._write(hash(key) % _SHARDS, key, value, by)
                    changed.append(key)
            old = [
                (record.generation, key)
                for shard in self._shards
                for key, record in shard.items()
                if record.generation <= newest and key not in listing
            ]
            gone = [key for _, key in sorted(old, key=itemgetter(0))]
            for key in gone:
                self._write(hash(key) % _SHARDS, key, None, by)
            callbacks = self._callbacks()
        _call(callbacks)
        return (*changed, *gone)

    def snapshot(self) -> Snapshot[K, V]:
        """Everything, as of now; costs the same for any size."""
        with self._lock:
            self._owned.clear()
            return Snapshot(tuple(self._shards), self._length, self._generation)

    def watch(
        self, on_change: Callable[[], None] | None = None, /, *, of: Container[object] | None = None
    ) -> Watch[K]:
        """A dirty set of one's own, holding every present key to begin with.

        Args:
            on_change: Called after each change, on the thread that made it,
                outside the lock; must return at once.
            of: Keys that count, asked at each change: others are left out, and wake nobody. A key
                that begins to count is to be added before its record is read. None for all.
        """
        with self._lock:
            watch = Watch[K](self._lock, self._forget, of)
            for key, record in _oldest_first(self._shards).items():
                watch._add(key, record.generation, record.by, removed=False)  # noqa: SLF001
            self._watches[watch] = on_change
        return watch

    def _is_older(self, key: K, newest: int) -> bool:
        """Whether nobody wrote or dropped the key after that generation, as far as is known."""
        record = self._shards[hash(key) % _SHARDS].get(key)
        if record is not None:
            return record.generation <= newest
        # Beyond what is kept, an absent key may have been dropped since: the next listing tells.
        return self._dropped.get(key, self._forgotten) <= newest

    def _differs(self, key: K, value: V) -> bool:
        record = self._shards[hash(key) % _SHARDS].get(key)
        return record is None or (record.value is not value and record.value != value)

    def _callbacks(self) -> Iterable[Callable[[], None]]:
        """Whom to wake for what was written under this lock."""
        heard, self._heard = self._heard, {}
        return heard

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
            self._dropped[key] = self._generation
            if len(self._dropped) > _DROPS:
                self._forgotten = self._dropped.pop(next(iter(self._dropped)))
        else:
            shard[key] = record
            if self._dropped:
                self._dropped.pop(key, None)
        for watch, on_change in self._watches.items():
            counts = watch._add(key, self._generation, by, removed=record is None)  # noqa: SLF001
            if counts and on_change is not None:
                self._heard[on_change] = None
        return record


def _oldest_first(shards: Iterable[Mapping[K, Record[V]]]) -> dict[K, Record[V]]:
    """All records; in an order of their own, since that of hashes is another in each process."""
    every: dict[K, Record[V]] = {}
    for shard in shards:
        if shard:
            every.update(shard)
    return dict(sorted(every.items(), key=_generation)) if len(every) > 1 else every


def _generation(entry: tuple[object, Record[object]]) -> int:
    return entry[1].generation


def _call(callbacks: Iterable[Callable[[], None]]) -> None:
    """Wake everybody; what one raises keeps no other from waking, and no value from being stored."""
    for callback in callbacks:
        try:
            callback()
        except Exception:  # noqa: BLE001 - the change is made; a listener's fault is its own
            _log.exception("a listener of a world raised; it is called again at the next change")
