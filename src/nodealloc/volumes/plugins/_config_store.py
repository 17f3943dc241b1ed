"""Where config maps and secrets come from, and how changes of them are noticed."""

from __future__ import annotations

import enum
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Final, Protocol, runtime_checkable

from nodealloc import _attrs as attrs
from nodealloc._logged import logged
from nodealloc._typed import typed, typed_fields, typed_methods
from nodealloc.dsw_asw import Clock, SystemClock
from nodealloc.errors import ConfigurationError

__all__ = ["ChangeStrategy", "ConfigObject", "ConfigSource", "ConfigStore", "WatchableConfigSource"]

_log = logging.getLogger("nodealloc.volumes")


@typed_fields
@attrs.frozen(kw_only=True)
class ConfigObject:
    """A config map or a secret.

    Attributes:
        data: File name to content.
        version: Names this content; another content has another version.
        immutable: Whether it never changes, so that nobody need ask again.
        binary: Names under a config map's `binaryData`: files, and no variables.
    """

    data: Mapping[str, bytes]
    version: str
    immutable: bool = False
    binary: frozenset[str] = frozenset()


class ConfigSource(Protocol):
    """Reads config maps, or secrets; may be slow. Called from several workers at once."""

    def read(self, namespace: str, name: str, /) -> ConfigObject | None:
        """The object now; None when there is none. Raises `RetryableError` when it cannot be asked."""
        ...


@runtime_checkable
class WatchableConfigSource(Protocol):
    """A `ConfigSource` that can tell of changes."""

    def watch(self, namespace: str, name: str, on_change: Callable[[], None], /) -> Callable[[], None]:
        """Call `on_change`, from any thread, after each change; returns a function that ends it."""
        ...


class ChangeStrategy(enum.Enum):
    """How changes are noticed, by the kubelet's names (`configMapAndSecretChangeDetectionStrategy`)."""

    WATCH = "Watch"
    CACHE = "Cache"
    GET = "Get"


@typed_methods
class ConfigStore:
    """Reads a source by one of three strategies; thread-safe.

    `WATCH` reads an object once and again after each event; `CACHE` reads it
    again when what it has is older than `ttl_s`; `GET` reads it every time.
    A store serves one plugin: config maps and secrets may share a name.

    Args:
        source: Where objects come from; `WATCH` needs a `WatchableConfigSource`.
        strategy: Which.
        ttl_s: How long `CACHE` believes what it read, and after how long what pods have of
            it is compared with it again where nobody watches.
        clock: Time for `ttl_s`.

    Attributes:
        clock: The same.
    """

    @typed
    def __init__(
        self,
        source: ConfigSource,
        /,
        strategy: ChangeStrategy = ChangeStrategy.GET,
        *,
        ttl_s: float = 60.0,
        clock: Clock | None = None,
    ) -> None:
        self._watchable: WatchableConfigSource | None = None
        if strategy is ChangeStrategy.WATCH:
            untyped: object = source
            if not isinstance(untyped, WatchableConfigSource):
                raise ConfigurationError(
                    "this source cannot watch; give it a watch() method, or use CACHE or GET"
                )
            self._watchable = untyped
        self._source = source
        self._strategy = strategy
        self._ttl_s = ttl_s
        self.clock: Final[Clock] = SystemClock() if clock is None else clock
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], tuple[float, ConfigObject | None]] = {}
        # Reads under way since whose begin the object has not changed, nor was it forgotten.
        self._reading: dict[tuple[str, str], set[object]] = {}
        self._stops: dict[tuple[str, str], Callable[[], None]] = {}
        self.on_change: Callable[[str, str], None] | None = None

    def read(self, namespace: str, name: str, /) -> ConfigObject | None:
        """The object, as new as the strategy promises."""
        key = (namespace, name)
        with self._lock:
            known = self._known.get(key)
        if known is not None and self._is_fresh(key, *known):
            return known[1]
        mine = object()
        with self._lock:
            self._reading.setdefault(key, set()).add(mine)
        try:
            # Watching begins before reading, so that no change falls between the two.
            self._begin_watch(key, mine)
            read_s = self.clock.monotonic_s()
            found = self._source.read(namespace, name)
            with self._lock:
                # What changed while it was read may not be in it: the next one reads again.
                if self._is_current(key, mine) and self._is_fresh(key, read_s, found):
                    self._known[key] = (read_s, found)
        finally:
            self._has_read(key, mine)
        return found

    @property
    def fresh_s(self) -> float | None:
        """After how many seconds to look again for a change; None where changes are told."""
        return None if self._strategy is ChangeStrategy.WATCH else self._ttl_s

    def forget(self, namespace: str, name: str, /) -> None:
        """Nobody uses it any more: stop watching, drop what is known."""
        with self._lock:
            self._known.pop((namespace, name), None)
            self._reading.pop((namespace, name), None)
            stop = self._stops.pop((namespace, name), None)
        if stop is not None:
            _end(stop)

    def _is_fresh(self, key: tuple[str, str], read_s: float, found: ConfigObject | None) -> bool:
        if found is not None and found.immutable:
            return True
        if self._strategy is ChangeStrategy.CACHE:
            return self.clock.monotonic_s() < read_s + self._ttl_s
        return self._strategy is ChangeStrategy.WATCH and key in self._stops

    def _is_current(self, key: tuple[str, str], reading: object) -> bool:
        return reading in self._reading.get(key, ())

    def _has_read(self, key: tuple[str, str], reading: object) -> None:
        with self._lock:
            readings = self._reading.get(key, set())
            readings.discard(reading)
            if not readings:
                self._reading.pop(key, None)

    def _begin_watch(self, key: tuple[str, str], reading: object) -> None:
        if self._watchable is None or key in self._stops:
            return

        def changed() -> None:
            with self._lock:
                self._known.pop(key, None)
                self._reading.pop(key, None)
            if self.on_change is not None:
                self.on_change(*key)

        stop = self._watchable.watch(*key, changed)
        with self._lock:
            # Forgotten as it began, nobody would end it.
            kept = self._stops.setdefault(key, stop) if self._is_current(key, reading) else None
        if kept is not stop:
            _end(stop)


def _end(stop: Callable[[], None]) -> None:
    """End a watch: nothing that it says counts any more."""
    logged(_log, stop, "a watch of a config object did not end well")
