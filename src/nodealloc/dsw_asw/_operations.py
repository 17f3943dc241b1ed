"""Steps on their way through the executor: one at a time within a scope, each performed once at most."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import CancelledError, Future
from functools import partial
from typing import Generic, TypeVar, cast

import attrs

from nodealloc.dsw_asw._cancellation import Cancellation
from nodealloc.dsw_asw._ports import Cancel, Clock, Executor
from nodealloc.dsw_asw._scopes import Scopes
from nodealloc.dsw_asw._steps import (
    Cancelled,
    Done,
    Failed,
    Outcome,
    Running,
    Step,
    StepScope,
    Uncertain,
    is_same,
)
from nodealloc.dsw_asw._timers import Timer
from nodealloc.errors import UncertainError

__all__ = ["Operation", "Operations"]

K = TypeVar("K", bound=Hashable)
S = TypeVar("S")
R = TypeVar("R")


class Operation(Generic[K, S, R]):
    """A step on its way through the executor.

    Attributes:
        key: Key whose plan asked for it.
        step: What is done.
        generation: Of the key's actual record at the start; 0 for none.
        rest_until_s: When the plan that asked for it wants to look again, or None.
        since_s: When it was handed to the executor.
        began_s: When a worker took it up; None in the queue.
        outcome: What came of it, once it ended.
        cancel: Tells the call that it should stop.
        timer: Of its deadline.
    """

    __slots__ = (
        "asked",
        "began_s",
        "cancel",
        "future",
        "generation",
        "key",
        "outcome",
        "rest_until_s",
        "since_s",
        "step",
        "timer",
    )

    def __init__(
        self, key: K, step: Step[S], generation: int, rest_until_s: float | None, lock: threading.Lock
    ) -> None:
        self.key = key
        self.step = step
        self.generation = generation
        self.rest_until_s = rest_until_s
        self.since_s = 0.0
        self.began_s: float | None = None
        self.outcome: Outcome[R] | None = None
        self.cancel = Cancellation(lock)
        self.asked = False
        self.timer: Timer | None = None
        self.future: Future[None] | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether it has not ended."""
        return self.outcome is None

    def is_of(self, step: Step[S], /) -> bool:
        """Whether it is this very step."""
        return is_same(self.step, step)

    def shown(self) -> Running[S]:
        """It as a value."""
        return Running(
            scope=self.step.scope,
            verb=self.step.verb,
            detail=self.step.detail,
            since_s=self.since_s,
            began_s=self.began_s,
            cancelling=self.asked,
        )


class Operations(Generic[K, S, R]):
    """Operations on their way; used by one thread at a time, but for what workers report.

    A call that its executor runs twice is performed once. One that is taken
    back before a worker took it up is never performed, whenever a worker comes.

    Attributes:
        count: How many have not ended, or their end was not taken yet; may be read by any thread.
    """

    def __init__(
        self,
        perform: Callable[[Step[S], Cancel], R | Done[R] | Failed[R] | Uncertain[R] | Future[R]],
        executor: Executor,
        clock: Clock,
        on_end: Callable[[], None],
    ) -> None:
        self._perform = perform
        self._executor = executor
        self._clock = clock
        self._on_end = on_end
        self._scopes = Scopes()
        self._by_key: dict[K, list[Operation[K, S, R]]] = {}
        self.count = 0
        self._ended: deque[Operation[K, S, R]] = deque()
        # Shared by all operations: held for a few instructions when one begins or ends.
        self._lock = threading.Lock()
        self._submitter = 0
        self._interrupt: BaseException | None = None

    def of_key(self, key: K, /) -> list[Operation[K, S, R]]:
        """A key's operations whose end was not taken yet; not to be changed."""
        return self._by_key.get(key, [])

    def is_open(self, scope: StepScope, /) -> bool:
        """Whether nothing runs in a scope."""
        return self._scopes.is_free(scope)

    def new(self, key: K, step: Step[S], generation: int, rest_until_s: float | None) -> Operation[K, S, R]:
        """An operation that is not handed over yet."""
        return Operation(key, step, generation, rest_until_s, self._lock)

    def start(self, operation: Operation[K, S, R], /) -> None:
        """Close its scope and hand it over; what the executor raises opens the scope again."""
        self._scopes.take(operation.step.scope)
        operation.since_s = self._clock.monotonic_s()
        self._by_key.setdefault(operation.key, []).append(operation)
        self.count += 1
        try:
            self._submitter = threading.get_ident()
            future = self._executor.submit(self._run, operation)
            operation.future = future
            future.add_done_callback(partial(self._dropped, operation))
        except BaseException:
            if self.take_back(operation):
                self._forget(operation)
            raise
        finally:
            self._submitter = 0
        if self._interrupt is not None:
            interrupt, self._interrupt = self._interrupt, None
            raise interrupt

    def take_back(self, operation: Operation[K, S, R], /) -> bool:
        """See to it that an operation never begins; False when it has begun or ended."""
        with self._lock:
            if operation.began_s is not None or operation.outcome is not None:
                return False
            operation.outcome = Cancelled(asked=operation.asked, ended_s=self._clock.monotonic_s())
        return True

    def ask_to_stop(self, operation: Operation[K, S, R], /) -> None:
        """Ask a running call to stop; one that no worker took up ends at once."""
        if operation.asked:
            return
        operation.asked = True
        if self.take_back(operation):
            if operation.future is not None:
                operation.future.cancel()
            self._over(operation)
        else:
            operation.cancel.set()

    def lose(self, operation: Operation[K, S, R], error: Exception, now_s: float, /) -> bool:
        """Nobody took it up in time: it fails, and will not begin; False when it has begun or ended."""
        if not self.take_back(operation):
            return False
        operation.outcome = Failed(error, began_s=operation.since_s, ended_s=now_s)
        if operation.future is not None:
            operation.future.cancel()
        self._over(operation)
        return True

    def next_ended(self) -> Operation[K, S, R] | None:
        """The oldest end that was not taken; it stays until `forget_ended`."""
        return self._ended[0] if self._ended else None

    def forget_ended(self) -> None:
        """The oldest end is dealt with; its scope is open again."""
        self._forget(self._ended.popleft())

    def under_way(self) -> Iterator[Operation[K, S, R]]:
        """What was handed over and has not ended."""
        return (one for many in tuple(self._by_key.values()) for one in tuple(many) if one.is_under_way)

    def _forget(self, operation: Operation[K, S, R]) -> None:
        operation.future = None  # it holds the operation: the two would wait for the garbage collector
        self._scopes.release(operation.step.scope)
        many = self._by_key.get(operation.key, [])
        if operation in many:
            many.remove(operation)
            self.count -= 1
            if not many:
                del self._by_key[operation.key]

    def _run(self, operation: Operation[K, S, R]) -> None:
        now_s = self._clock.monotonic_s()
        with self._lock:
            if operation.began_s is not None or operation.outcome is not None:
                return
            operation.began_s = now_s
        try:
            answer = self._perform(operation.step, operation.cancel)
            if isinstance(answer, Future):
                self._await(operation, cast("Future[R]", answer), now_s)
                return
            outcome = self._outcome(answer, now_s)
        except BaseException as error:
            self._end(operation, self._raised(operation, error, now_s))
            if isinstance(error, Exception):
                return
            # Ctrl-C within a call that runs on the thread of the pass is meant for its caller.
            if threading.get_ident() == self._submitter:
                self._interrupt = error
            raise
        else:
            self._end(operation, outcome)

    def _await(self, operation: Operation[K, S, R], answer: Future[R], began_s: float) -> None:
        def stop() -> None:
            answer.cancel()

        def came(future: Future[R]) -> None:
            try:
                outcome = self._outcome(future.result(timeout=0), began_s)
            except BaseException as error:  # noqa: BLE001 - whatever it is, the step ended with it
                outcome = self._raised(operation, error, began_s)
            self._end(operation, outcome)

        answer.add_done_callback(came)
        operation.cancel.on_cancel(stop)

    def _end(self, operation: Operation[K, S, R], outcome: Outcome[R]) -> None:
        with self._lock:
            operation.outcome = outcome
        self._over(operation)

    def _over(self, operation: Operation[K, S, R]) -> None:
        self._ended.append(operation)
        self._on_end()

    def _dropped(self, operation: Operation[K, S, R], future: Future[None]) -> None:
        """The future is done: where no worker began, nobody will."""
        if self.take_back(operation):
            error = None if future.cancelled() else future.exception(timeout=0)
            if isinstance(error, Exception):
                operation.outcome = Failed(error, began_s=operation.since_s, ended_s=operation.since_s)
            self._over(operation)

    def _outcome(self, answer: R | Done[R] | Failed[R] | Uncertain[R], began_s: float) -> Outcome[R]:
        ended_s = self._clock.monotonic_s()
        if isinstance(answer, Done | Failed | Uncertain):
            told = cast("Done[R] | Failed[R] | Uncertain[R]", answer)
            return attrs.evolve(told, began_s=began_s, ended_s=ended_s)
        return Done(answer, began_s=began_s, ended_s=ended_s)

    def _raised(self, operation: Operation[K, S, R], error: BaseException, began_s: float) -> Outcome[R]:
        ended_s = self._clock.monotonic_s()
        if isinstance(error, CancelledError):
            return Cancelled(asked=operation.asked, began_s=began_s, ended_s=ended_s)
        if isinstance(error, UncertainError):
            return Uncertain(error, began_s=began_s, ended_s=ended_s)
        if isinstance(error, Exception):
            return Failed(error, began_s=began_s, ended_s=ended_s)
        # KeyboardInterrupt and the like ended a worker half way through its call.
        reason = UncertainError(f"{operation.step.verb} was interrupted by {error!r}")
        return Uncertain(reason, began_s=began_s, ended_s=ended_s)
