"""Calls that stop half way and go on later, one at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

__all__ = ["Left", "SimulatedThread", "SimulatedThreads"]

_PATIENCE_S = 10.0
"""So long who is interrupted waits for the end of a turn, on the real clock."""


class Left(BaseException):  # no error: what is under the call goes on elsewhere
    """The call has ended, and meanwhile another thread took the turns over."""


class SimulatedThread:
    """A thread that runs only while somebody waits for it, so that nothing ever happens at once."""

    def __init__(self, idle: list[SimulatedThread]) -> None:
        self._go = threading.Lock()
        self._back = threading.Lock()
        self._go.acquire()
        self._back.acquire()
        self._idle = idle
        self._call: Callable[[], threading.Lock | None] | None = None
        self._hand_on: Callable[[], None] | None = None
        self._end: BaseException | None = None
        threading.Thread(target=self._live, name="simulated", daemon=True).start()

    @property
    def takes_turns(self) -> bool:
        """Whether it takes the turns of `SimulatedThreads.drive`, now."""
        return self._hand_on is not None

    def begin(self, call: Callable[[], None], /) -> None:
        """Run a call until it ends or pauses."""
        self._call = call
        self.resume()

    def take_turns(self, call: Callable[[], threading.Lock | None], hand_on: Callable[[], None], /) -> None:
        """Run a call, without waiting for it; where it pauses, it hands on instead of going back."""
        self._call, self._hand_on = call, hand_on
        self._go.release()

    def resume(self, end: BaseException | None = None, /) -> None:
        """Let a paused call go on until it ends or pauses again; `end` is raised in it first."""
        self._end = end
        self._go.release()
        self._back.acquire()

    def pause(self) -> None:
        """Stop here until somebody resumes; called by the thread itself."""
        hand_on, self._hand_on = self._hand_on, None
        if hand_on is None:
            self._back.release()
        else:
            hand_on()
        self._go.acquire()
        end, self._end = self._end, None
        if end is not None:
            raise end

    def close(self) -> None:
        """End an idle thread."""
        self._call = None
        self.resume()

    def _live(self) -> None:
        while True:
            self._go.acquire()
            call = self._call
            if call is None:
                self._back.release()
                return
            waits = call() or self._back
            self._hand_on = None
            self._idle.append(self)
            waits.release()


class SimulatedThreads:
    """Threads that are used again; `close` it, or its threads stay until the program ends.

    Attributes:
        ahead: The thread that takes the turns of `drive`, if any does.
    """

    def __init__(self) -> None:
        self._idle: list[SimulatedThread] = []
        self.ahead: SimulatedThread | None = None
        self._over = threading.Lock()
        self._over.acquire()
        self._turn: Callable[[], bool] = lambda: False
        self._is_stopped = False
        self._error: BaseException | None = None

    def take(self) -> SimulatedThread:
        """An idle thread, or a new one; it is idle again when its call has ended."""
        return self._idle.pop() if self._idle else SimulatedThread(self._idle)

    def drive(self, turn: Callable[[], bool], rest: Callable[[], bool], /) -> None:
        """Call `turn` until it returns False; raises what it raises.

        All turns are taken on a thread, so that a call in one that does not pause needs no other: to go
        from thread to thread takes longer than most calls do. Once a call pauses, another thread takes
        the turns, and the one that paused leaves them with `Left` when its call has ended.

        Args:
            turn: Makes one turn, and returns whether there is another.
            rest: What is left of a turn in which a call paused; returns the same.
        """
        self._turn, self._is_stopped = turn, False
        self._hand_on(turn, rest)
        try:
            self._over.acquire()
        except BaseException:  # Ctrl-C comes here; the turn under way ends first, unless it never does
            self._is_stopped = True
            self._over.acquire(timeout=_PATIENCE_S)
            raise
        error, self._error = self._error, None
        if error is not None:
            raise error

    def close(self) -> None:
        """End all that are idle."""
        while self._idle:
            self._idle.pop().close()

    def _hand_on(self, first: Callable[[], bool], rest: Callable[[], bool]) -> None:
        thread = self.ahead = self.take()
        thread.take_turns(partial(self._take_turns, first), partial(self._hand_on, rest, rest))

    def _take_turns(self, first: Callable[[], bool]) -> threading.Lock | None:
        """Take turns; who waits for their end, None for whoever resumed the call that paused in one."""
        try:
            goes_on = first()
            while goes_on and not self._is_stopped:
                goes_on = self._turn()
        except Left:
            return None
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever drives
            self._error = error
        self.ahead = None
        return self._over
