"""Calls of a fake that fail, hang, take long or lose their answer when a test says so."""

from __future__ import annotations

import threading
from collections.abc import Callable, MutableSequence
from typing import TypeVar, cast

from nodealloc import _attrs as attrs
from nodealloc._arguments import wrong
from nodealloc.errors import NodeallocError
from nodealloc.runtime import AnswerLostError, RuntimeUnavailableError

__all__ = ["MisbehavingCalls"]

T = TypeVar("T")


@attrs.define
class _Fault:
    """How one call misbehaves.

    Attributes:
        error: What it raises; None for an answer that is lost.
        times: How often; None for ever.
        done: Whether it is done first.
    """

    error: NodeallocError | None
    times: int | None
    done: bool


class MisbehavingCalls:
    """What a fake runtime is made to do; calls are named by their methods.

    Attributes:
        calls: Each call with what it was about: `inspect uid`, in order.

    Args:
        sleep: How a slow call waits.

    Raises:
        ConfigurationError: From whatever names a call that there is not.
    """

    def __init__(self, sleep: Callable[[float], object], /) -> None:
        self._sleep = sleep
        self._lock = threading.RLock()
        self._faults: dict[str, list[_Fault]] = {}
        self._gates: dict[tuple[str, str], threading.Event] = {}
        self._slow: dict[str, float] = {}
        self._ignored: dict[str, object] = {}
        self._away = ""
        self.calls: MutableSequence[str] = []

    def fail(self, call: str, error: NodeallocError, /, *, times: int | None = 1) -> None:
        """Have a call raise this without doing anything; so often, or for ever."""
        self._faults.setdefault(self._known(call), []).append(_Fault(error, times, done=False))

    def lose_answer(self, call: str, /, *, times: int | None = 1) -> None:
        """Have a call do its work, and raise `AnswerLostError`."""
        self._faults.setdefault(self._known(call), []).append(_Fault(None, times, done=True))

    def hang(self, call: str, about: str = "", /) -> threading.Event:
        """Have a call hang until the event is set; "" for whatever it is about."""
        gate = self._gates[self._known(call), about] = threading.Event()
        return gate

    def slow(self, call: str, seconds: float, /) -> None:
        """Have a call take so long; 0 ends it."""
        self._slow[self._known(call)] = seconds

    def ignore(self, call: str, /, *, answer: object = None) -> None:
        """Have a call say yes, with this answer, and do nothing."""
        self._ignored[self._known(call)] = answer

    def heed(self, call: str, /) -> None:
        """Have a call that was ignored do its work again."""
        del self._ignored[call]

    def _known(self, call: str) -> str:
        """A call by its name; one that nobody makes would never misbehave."""
        if call.startswith("_") or not callable(getattr(self, call, None)):
            raise wrong("call", call, "the name of a method of the runtime, such as 'create_container'")
        return call

    def _call(self, call: str, about: str, work: Callable[[], T]) -> T:
        with self._lock:
            self.calls.append(f"{call} {about}".rstrip())
            gates = [self._gates.get((call, one)) for one in dict.fromkeys((about, ""))]
        for gate in gates:
            if gate is not None:
                gate.wait()
        if call in self._slow:
            self._sleep(self._slow[call])
        with self._lock:
            if self._away:
                raise RuntimeUnavailableError(call, self._away)
            fault = self._fault(call)
            if fault is not None and fault.error is not None:
                raise fault.error
            if call in self._ignored:
                return cast("T", self._ignored[call])
            answer = work()
            if fault is not None:
                raise AnswerLostError(call, "as the test says")
            return answer

    def _fault(self, call: str) -> _Fault | None:
        waiting = self._faults.get(call)
        if not waiting:
            return None
        fault = waiting[0]
        if fault.times is not None:
            fault.times -= 1
            if fault.times <= 0:
                waiting.pop(0)
        return fault
