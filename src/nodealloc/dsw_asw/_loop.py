"""The loop: a thread that makes a pass whenever there is something to do."""

from __future__ import annotations

import logging
import threading
from types import TracebackType
from typing import Protocol, Self

from nodealloc.dsw_asw._steps import Running
from nodealloc.dsw_asw._summary import Summary

__all__ = ["Loop", "Passes"]

_log = logging.getLogger("nodealloc.dsw_asw")


class Passes(Protocol):
    """What a loop drives; a `Reconciler` of any types is one."""

    def reconcile(self) -> Summary:
        """Make one pass."""
        ...

    def wait_for_work(self, timeout_s: float | None = None, /) -> bool:
        """Block until a pass would find something to do."""
        ...

    def close(self, timeout_s: float = 0.0, /) -> tuple[Running, ...]:
        """Start nothing more and wait for what runs."""
        ...


class Loop:
    """Drives a reconciler in a daemon thread; start and stop it from any thread.

    Idle, it sleeps in one wait and makes no pass. It never gives up: a pass
    that raises is logged and the next one follows a second later.

    Example:
        >>> with Loop(reconciler):  # doctest: +SKIP
        ...     desired.put("db", 2)
    """

    def __init__(self, reconciler: Passes, *, name: str = "reconcile", stop_timeout_s: float = 10.0) -> None:
        self._reconciler = reconciler
        self._stop_timeout_s = stop_timeout_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin; a loop starts once."""
        self._thread.start()

    def stop(self, timeout_s: float | None = None, /) -> tuple[Running, ...]:
        """End the loop and close its reconciler.

        Args:
            timeout_s: Real seconds to wait for running operations; by default
                the `stop_timeout_s` of the loop.

        Returns:
            Operations that are still running; empty when all is settled.
        """
        self._stopping.set()
        left = self._reconciler.close(self._stop_timeout_s if timeout_s is None else timeout_s)
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()
        return left

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._reconciler.reconcile()
                # Asked between the two because a pass swallows the wake-up that closing sends.
                if not self._stopping.is_set():
                    self._reconciler.wait_for_work()
            except Exception:  # noqa: BLE001 - a loop that ended would leave the node alone
                _log.exception("a pass raised; the next one follows in a second")
                self._stopping.wait(1.0)
