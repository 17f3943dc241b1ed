"""Callers that wait for keys to be in line, in a thread or on an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

from nodealloc._typed import typed
from nodealloc.dsw_asw._errors import Missing, ShutDownError, WaitTimeoutError
from nodealloc.dsw_asw._ports import Clock
from nodealloc.dsw_asw._steps import Running

__all__ = ["Wait", "Waits"]

K = TypeVar("K", bound=Hashable)


class Wait(Generic[K]):
    """Somebody who waits for keys; made by `Reconciler.wait`, good for one wait.

    Any thread may ask; `missing` may be asked before, during and after.
    """

    @typed
    def __init__(
        self,
        keys: Iterable[K],
        look: Callable[[K], Missing | None],
        clock: Clock,
        leave: Callable[[Wait[K]], None],
    ) -> None:
        self._order = tuple(dict.fromkeys(keys))
        self._open = dict.fromkeys(self._order)
        self._look = look
        self._clock = clock
        self._leave = leave
        self._began_s = clock.monotonic_s()
        self._future = Future[None]()

    @property
    def keys(self) -> tuple[K, ...]:
        """What is waited for."""
        return self._order

    @property
    def is_over(self) -> bool:
        """Whether every key has been seen in line, or the engine was closed."""
        return self._future.done()

    def missing(self) -> tuple[Missing, ...]:
        """Each key that is not in line now, with what it lacks and its last errors."""
        return tuple(found for found in map(self._look, self._order) if found is not None)

    def result(self, timeout_s: float = 123.0, /) -> None:
        """Wait on this thread; raises `WaitTimeoutError` or `ShutDownError`."""
        try:
            self._future.result(timeout=min(timeout_s, threading.TIMEOUT_MAX))  # Python waits no longer
        except TimeoutError:
            raise self._ran_out() from None
        finally:
            self._leave(self)

    async def result_async(self, timeout_s: float = 123.0, /) -> None:
        """Wait on an event loop, which is not blocked; raises as `result` does."""
        try:
            await asyncio.wait_for(asyncio.wrap_future(self._future), timeout_s)
        except TimeoutError:
            raise self._ran_out() from None
        finally:
            self._leave(self)

    def check(self, key: K, /) -> None:
        """Look at one key again; the engine calls it when the key has changed."""
        try:
            is_in_line = key in self._open and self._look(key) is None
        except Exception as error:  # noqa: BLE001 - the question's fault belongs to whoever asked it
            self._finish(error)
            return
        if is_in_line:
            del self._open[key]
            if not self._open:
                self._finish(None)

    def check_all(self) -> None:
        """Look at every key that was not seen in line."""
        for key in tuple(self._open):
            self.check(key)
        if not self._order:
            self._finish(None)

    def close(self, running: Iterable[Running[object]] = (), /) -> None:
        """The engine ended, but for what still runs: whoever waits gets `ShutDownError`."""
        self._finish(ShutDownError(running))

    def _finish(self, error: Exception | None) -> None:
        # A caller may have cancelled its side of the future at this very moment.
        if not self._future.done() and self._future.set_running_or_notify_cancel():
            if error is None:
                self._future.set_result(None)
            else:
                self._future.set_exception(error)

    def _ran_out(self) -> WaitTimeoutError:
        missing = self.missing() or tuple(
            Missing(key=key, what="came and went while it was waited for") for key in self._order
        )
        return WaitTimeoutError(self._clock.monotonic_s() - self._began_s, missing)


class Waits(Generic[K]):
    """Waits by key, so that a change wakes nobody else; may be used from any thread."""

    def __init__(self) -> None:
        # Held while a wait looks at a key, which is pure and quick; one look at a time a wait.
        self._lock = threading.RLock()
        self._by_key: dict[K, dict[int, Wait[K]]] = {}

    def add(self, wait: Wait[K], /) -> None:
        """Tell this wait about its keys from now on, and let it look at all of them."""
        with self._lock:
            for key in wait.keys:
                self._by_key.setdefault(key, {})[id(wait)] = wait
            wait.check_all()

    def remove(self, wait: Wait[K], /) -> None:
        """Forget a wait, an unknown one included."""
        with self._lock:
            for key in wait.keys:
                waits = self._by_key.get(key)
                if waits is not None and waits.pop(id(wait), None) is not None and not waits:
                    del self._by_key[key]

    def end(self, wait: Wait[K], running: Sequence[Running[object]], /) -> None:
        """End one wait, which somebody else may be ending as well."""
        with self._lock:
            wait.close(running)

    def changed(self, keys: Iterable[K], /) -> None:
        """Let the waits for these keys look again."""
        if not self._by_key:
            return
        with self._lock:
            for key in keys:
                for wait in tuple(self._by_key.get(key, {}).values()):
                    wait.check(key)

    def close(self, running: Sequence[Running[object]], /) -> None:
        """End every wait; `running` is what the engine left behind."""
        with self._lock:
            for waits in tuple(self._by_key.values()):
                for wait in tuple(waits.values()):
                    wait.close(running)
            self._by_key.clear()
