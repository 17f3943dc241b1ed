"""One life of a process: from its start to its end, or to where it was killed."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from nodealloc.dsw_asw import Cancel
from nodealloc.testing.simulation._chance import Chance
from nodealloc.testing.simulation._clock import SimulatedClock
from nodealloc.testing.simulation._executor import Killed, LastingExecutor, Rest, SeededExecutor

__all__ = ["Life"]

Port = TypeVar("Port")
P = ParamSpec("P")
T = TypeVar("T")


class Life:
    """What a program is built from, and what ends with it.

    Faults, by name: `killed before a call`, `killed after a call`.

    Attributes:
        number: 1 for the first; each restart is another.
        clock: The machine's clocks.
        executor: Runs slow work in virtual time.
        lasting: The same for calls that last, such as those that follow a stream.
        chance: Which faults strike; ports ask it for their own.
        is_over: Whether the process has ended; whatever it calls then ends it once more.
        calls: How many port calls it made.
    """

    def __init__(self, number: int, clock: SimulatedClock, executor: SeededExecutor, chance: Chance) -> None:
        self.number = number
        self.clock = clock
        self.executor = executor
        self.lasting: LastingExecutor = LastingExecutor(executor)
        self.chance = chance
        self.is_over: bool = False
        self.calls: int = 0
        self._ends: list[Callable[[], object]] = []

    def port(self, inner: Port, /) -> Port:
        """The same, but each call of a method is one at which the process may be killed.

        What the port stands for is outside the process, and lives on.
        """
        # It answers to whatever its inner one does, which a type checker cannot see.
        return cast("Port", _Port(self, inner))

    def pause(self, seconds: float, cancel: Cancel | None = None, /) -> None:
        """Let virtual time pass in the call that runs; see `SeededExecutor.pause`."""
        self.executor.pause(seconds, cancel)

    def rest(self, rest: Rest, /) -> None:
        """Wait for somebody outside in the call that runs; see `SeededExecutor.rest`."""
        self.executor.rest(rest)

    def enter(self) -> None:
        """A call out of the process begins; raises `Killed` where it does not."""
        self.calls += 1
        if self.is_over:
            raise Killed
        if self.chance.strikes("killed before a call"):
            self.end()
            raise Killed

    def leave(self) -> None:
        """A call has had its effect; raises `Killed` where nobody hears of it."""
        if self.is_over:
            raise Killed
        if self.chance.strikes("killed after a call"):
            self.end()
            raise Killed

    def on_end(self, call: Callable[[], object], /) -> None:
        """Call this when the process has ended: what it had of the real machine goes."""
        self._ends.append(call)

    def end(self) -> None:
        """Kill the process; what it began ends where it is."""
        self.is_over = True
        self.executor.kill()
        ends, self._ends = self._ends, []
        for call in ends:
            call()


class _Port:
    """A port of one life; methods are wrapped when they are first used."""

    def __init__(self, life: Life, inner: object) -> None:
        self._life = life
        self._inner = inner

    def __getattr__(self, name: str) -> object:
        found: object = getattr(self._inner, name)
        if not callable(found):
            return found
        made = _called(self._life, found)
        self.__dict__[name] = made
        return made


def _called(life: Life, call: Callable[P, T]) -> Callable[P, T]:
    def through(*args: P.args, **options: P.kwargs) -> T:
        life.enter()
        answer = call(*args, **options)
        life.leave()
        return answer

    return through
