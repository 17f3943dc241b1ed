"""Calls that stop half way and go on later, one at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable

__all__ = ["Strand", "Strands"]


class Strand:
    """A thread that runs only while somebody waits for it, so that nothing ever happens at once."""

    def __init__(self, idle: list[Strand]) -> None:
        self._go = threading.Lock()
        self._back = threading.Lock()
        self._go.acquire()
        self._back.acquire()
        self._idle = idle
        self._call: Callable[[], None] | None = None
        self._end: BaseException | None = None
        threading.Thread(target=self._live, name="strand", daemon=True).start()

    def begin(self, call: Callable[[], None], /) -> None:
        """Run a call until it ends or pauses."""
        self._call = call
        self.resume()

    def resume(self, end: BaseException | None = None, /) -> None:
        """Let a paused call go on until it ends or pauses again; `end` is raised in it first."""
        self._end = end
        self._go.release()
        self._back.acquire()

    def pause(self) -> None:
        """Stop here until somebody resumes; called by the strand itself."""
        self._back.release()
        self._go.acquire()
        end, self._end = self._end, None
        if end is not None:
            raise end

    def close(self) -> None:
        """End an idle strand."""
        self._call = None
        self.resume()

    def _live(self) -> None:
        while True:
            self._go.acquire()
            call = self._call
            if call is None:
                self._back.release()
                return
            call()
            self._idle.append(self)
            self._back.release()


class Strands:
    """Strands that are used again; `close` it, or its threads stay until the program ends."""

    def __init__(self) -> None:
        self._idle: list[Strand] = []

    def take(self) -> Strand:
        """An idle strand, or a new one; it is idle again when its call has ended."""
        return self._idle.pop() if self._idle else Strand(self._idle)

    def close(self) -> None:
        """End all that are idle."""
        while self._idle:
            self._idle.pop().close()
