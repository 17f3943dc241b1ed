"""How a running call learns that it should stop."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

__all__ = ["Cancellation"]

_log = logging.getLogger("nodealloc.dsw_asw")


class Cancellation:
    """The engine's `Cancel`; may be used from any thread. Nothing is allocated before somebody waits."""

    __slots__ = ("_calls", "_event", "_lock", "_set")

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock
        self._set = False
        self._event: threading.Event | None = None
        self._calls: list[Callable[[], None]] = []

    def is_set(self) -> bool:
        """Whether the call was asked to stop."""
        return self._set

    def wait(self, timeout_s: float | None = None, /) -> bool:
        """Block until the call is asked to stop, at most so many real seconds; whether it was."""
        with self._lock:
            if self._set:
                return True
            event = self._event = self._event or threading.Event()
        return event.wait(None if timeout_s is None else min(timeout_s, threading.TIMEOUT_MAX))

    def on_cancel(self, call: Callable[[], None], /) -> Callable[[], None]:
        """Have `call` called once when asked to stop, at once if that is over; returns what ends it."""
        with self._lock:
            late = self._set
            if not late:
                self._calls.append(call)
        if late:
            _guarded(call)

        def leave() -> None:
            with self._lock:
                self._calls = [one for one in self._calls if one is not call]

        return leave

    def set(self) -> None:
        """Ask; a second time changes nothing."""
        with self._lock:
            if self._set:
                return
            self._set = True
            calls, self._calls = self._calls, []
            event = self._event
        if event is not None:
            event.set()
        for call in calls:
            _guarded(call)


def _guarded(call: Callable[[], None]) -> None:
    try:
        call()
    except Exception:  # noqa: BLE001 - one call's fault must not keep the others from stopping
        _log.exception("a call that was to hear of a cancellation raised")
