"""Whatever makes passes: by hand, in a thread, or on an event loop, with the same few verbs."""

from __future__ import annotations

import abc
import asyncio
import contextlib
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Final, Self

from nodealloc._typed import typed
from nodealloc.dsw_asw._errors import LivelockError
from nodealloc.dsw_asw._remembering import Rows
from nodealloc.dsw_asw._steps import Running
from nodealloc.dsw_asw._summary import Summary
from nodealloc.errors import ConfigurationError

__all__ = ["Driven", "Passing"]

_log = logging.getLogger("nodealloc.dsw_asw")
_AFTER_A_FAULT_S: Final = 1.0
_MANY: Final = 8
"""Operations under way from which on a driver may wait a little for the next to end."""
_NOTHING: Final = Summary()


class Passing(abc.ABC):
    """One part of a pass that several make together: a reconciler, or something that looks when they rest."""

    @property
    @abc.abstractmethod
    def has_work(self) -> bool:
        """Whether a pass now would find something to do."""

    @abc.abstractmethod
    def begin_pass(self) -> Rows | None:
        """Settle what ended and plan what is due; what has to be written down first."""

    @abc.abstractmethod
    def end_pass(self, error: Exception | None, /) -> Summary:
        """It is written down, or could not be: tell, and start steps."""

    @abc.abstractmethod
    def abandon_pass(self) -> None:
        """The pass was interrupted: what was due is due again."""

    def glance(self) -> Summary:
        """What is held off and running, without a pass; nothing, where nothing is ever started."""
        return _NOTHING


class Driven(abc.ABC):
    """Passes that somebody has to make: `start` a thread for it, `await run()`, or call `reconcile`.

    Idle, a driver sleeps in one wait and makes no pass. It never gives up: a
    pass that raises is logged and the next one follows a second later.

    Example:
        >>> with reconciler:  # doctest: +SKIP
        ...     desired.put("db", 2)
    """

    def __init__(self, name: str, stop_timeout_s: float, gather_s: float = 0.0) -> None:
        self.name = name
        self._stop_timeout_s = stop_timeout_s
        self._gather_s = gather_s
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._under_way = self._left = 0
        self._work = threading.Event()
        self._numbers = itertools.count()
        # Replaced, never changed: whoever wakes all of them takes no lock.
        self._listeners: dict[int, Callable[[], None]] = {}
        self._listening = threading.Lock()
        self._passes = 0
        # Of each caller of `wait_for_pass`; replaced in the same way.
        self._waiters: dict[int, threading.Event] = {}

    @property
    def passes_made(self) -> int:
        """How many of its passes have ended; see `wait_for_pass`."""
        return self._passes

    @property
    def is_driven(self) -> bool:
        """Whether somebody makes its passes: a thread of its own, a group, or who listens for its work."""
        return self._thread is not None or bool(self._listeners)

    @abc.abstractmethod
    def reconcile(self) -> Summary:
        """Make one pass; cheap when there is nothing to do."""

    @property
    @abc.abstractmethod
    def has_work(self) -> bool:
        """Whether a pass now would find something to do."""

    @abc.abstractmethod
    def seconds_to_next(self) -> float | None:
        """How long until a pass is due by itself; None when only an event can bring one."""

    @abc.abstractmethod
    def running(self) -> tuple[Running[object], ...]:
        """Operations that were started and have not ended."""

    @abc.abstractmethod
    def close(self, timeout_s: float = 0.0, /) -> tuple[Running[object], ...]:
        """Start nothing more, ask what runs to stop, and wait for it."""

    @abc.abstractmethod
    def reconcilers(self) -> Iterator[Passing]:
        """What takes part in a pass."""

    def run_until_quiet(self, *, passes: int = 1000) -> Summary:
        """Make passes until only the end of an operation, a moment or a change can bring work.

        Raises:
            LivelockError: There is still work after so many passes.
        """
        total = self.reconcile()
        while self.has_work:
            if total.passes >= passes:
                raise LivelockError(total.passes)
            total += self.reconcile()
        return total

    def wait_for_work(self, timeout_s: float | None = None, /) -> bool:
        """Block until a pass would find something to do, at most `timeout_s` real seconds."""
        left = [wait for wait in (self.seconds_to_next(), timeout_s) if wait is not None]
        if not self.has_work:
            self._work.wait(min([*left, threading.TIMEOUT_MAX]))  # Python refuses to wait longer
        return self.has_work

    def wait_for_pass(self, since: int, timeout_s: float | None = None, /) -> bool:
        """Block as `wait_for_work` does, or until somebody has made another pass.

        For whoever waits beside the driver for what a pass brings about: the pass takes the wake-up
        with it. Read `passes_made` before you ask whether it has come.

        Args:
            since: How many passes had ended then.
            timeout_s: Real seconds at most; None for no end.

        Returns:
            Whether there is work, or a pass has ended since.
        """
        left = [wait for wait in (self.seconds_to_next(), timeout_s) if wait is not None]
        woken, number = threading.Event(), next(self._numbers)
        with self._listening:
            self._waiters = {**self._waiters, number: woken}
        try:
            if self._passes == since and not (self._work.is_set() or self.has_work):
                woken.wait(min([*left, threading.TIMEOUT_MAX]))
        finally:
            with self._listening:
                self._waiters = {at: one for at, one in self._waiters.items() if at != number}
        return self._passes != since or self.has_work

    @typed
    def add_listener(self, on_work: Callable[[], None], /) -> Callable[[], None]:
        """Have `on_work` called, from any thread, whenever a pass has something to do.

        Returns:
            A function that ends it.
        """
        number = next(self._numbers)
        with self._listening:
            self._listeners = {**self._listeners, number: on_work}
        if self._work.is_set():
            _call(on_work)

        def leave() -> None:
            with self._listening:
                self._listeners = {at: call for at, call in self._listeners.items() if at != number}

        return leave

    def start(self) -> None:
        """Make passes in a daemon thread from now on; once in a life, and not at all where that raises."""
        if self._thread is not None:
            raise ConfigurationError(f"{self.name} was started before; make a new one")
        thread = self._thread = threading.Thread(target=self._drive, name=self.name, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system gives no more threads
            self._thread = None
            raise

    async def run(self) -> None:
        """Make passes on this event loop until `stop` is called or the task is cancelled.

        Passes are quick: slow work is in the executor. Where records are
        remembered, a pass waits for the disk; drive that in a thread (`start`).
        """
        loop = asyncio.get_running_loop()
        woken = asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to wake
                loop.call_soon_threadsafe(woken.set)

        leave = self.add_listener(wake)
        try:
            while not self._stopping.is_set():
                woken.clear()
                if not self._pass():
                    await asyncio.sleep(_AFTER_A_FAULT_S)
                elif self.has_work:
                    await asyncio.sleep(0)
                elif not self._stopping.is_set():
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(woken.wait(), self.seconds_to_next())
        finally:
            leave()

    def stop(self, timeout_s: float | None = None, /) -> tuple[Running[object], ...]:
        """End the driver and `close`; may be repeated.

        Args:
            timeout_s: Real seconds to wait for running operations; by default
                the `stop_timeout_s` that this was made with.

        Returns:
            Operations that are still running; empty when all is settled.
        """
        self._stopping.set()
        left = self.close(self._stop_timeout_s if timeout_s is None else timeout_s)
        self._wake()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        return left

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _wake(self) -> None:
        if not self._work.is_set():
            self._work.set()
            for on_work in self._listeners.values():
                _call(on_work)
            self._wake_waiters()

    def _passed(self) -> None:
        """A pass has ended; called by one thread at a time."""
        self._passes += 1
        self._wake_waiters()

    def _wake_waiters(self) -> None:
        for one in self._waiters.values():
            one.set()

    def _drive(self) -> None:
        while not self._stopping.is_set():
            try:
                done = self._pass()
            except BaseException:  # noqa: BLE001 - a call that interrupts itself is no order to end
                _log.exception("%s: a pass was interrupted; the next one follows in a second", self.name)
                done = False
            passed_s = time.monotonic()
            if not done:
                self._stopping.wait(_AFTER_A_FAULT_S)
            # Rather than woken by the first end, and then to wait for others: each time a thread wakes costs.
            if self._gather_s and self._under_way >= _MANY and not self._left:
                self._stopping.wait(max(0.0, passed_s + self._gather_s - time.monotonic()))
            # Asked between the two because a pass swallows the wake-up that closing sends.
            if not self._stopping.is_set():
                self.wait_for_work()

    def _pass(self) -> bool:
        try:
            made = self.reconcile()
            self._under_way, self._left = made.running, made.left
        except Exception:  # noqa: BLE001 - a driver that ended would leave the node alone
            _log.exception("%s: a pass raised; the next one follows in a second", self.name)
            return False
        return True


def _call(on_work: Callable[[], None]) -> None:
    try:
        on_work()
    except Exception:  # noqa: BLE001 - one listener's fault keeps no other from hearing
        _log.exception("a listener raised; it is called again when there is work")
