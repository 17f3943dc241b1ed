"""A watcher that needs nothing: it looks every so often."""

from __future__ import annotations

import threading

from nodealloc._typed import typed, typed_methods
from nodealloc.errors import ConfigurationError
from nodealloc.pluginreg._scan import scan
from nodealloc.pluginreg._sightings import SocketIdentity

__all__ = ["PollingWatcher"]


@typed_methods
class PollingWatcher:
    """A `Watcher` that compares two looks; costs one walk of the directory an interval.

    Args:
        directory: What to watch; need not exist.
        interval_s: Seconds between two looks, more than 0.
    """

    @typed
    def __init__(self, directory: str, /, *, interval_s: float = 1.0) -> None:
        if interval_s <= 0:
            raise ConfigurationError(f"an interval of {interval_s} s would never rest; give more than 0")
        self._directory = directory
        self._interval_s = interval_s
        self._closed = threading.Event()
        self._seen: dict[str, SocketIdentity] | None = None

    def wait(self, timeout_s: float, /) -> bool:
        """See `Watcher`."""
        left_s = timeout_s
        while not self._closed.is_set():
            found = scan(self._directory)
            if found != self._seen:
                self._seen = found
                return True
            if left_s <= 0 or self._closed.wait(min(self._interval_s, left_s)):
                return False
            left_s -= self._interval_s
        return False

    def close(self) -> None:
        """See `Watcher`."""
        self._closed.set()
