"""The operation executor: one at a time within a scope, with deadlines."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future
from typing import Generic, TypeVar

import attrs

from nodealloc.dsw_asw._errors import UncertainError
from nodealloc.dsw_asw._ports import Clock, Executor
from nodealloc.dsw_asw._scopes import Scopes
from nodealloc.dsw_asw._steps import Done, Failed, Outcome, Running, Step, Uncertain

__all__ = ["Operation", "Operations"]

K = TypeVar("K", bound=Hashable)
S = TypeVar("S")
R = TypeVar("R")


@attrs.define(kw_only=True, eq=False)
class Operation(Generic[K, S, R]):
    """A step on its way through the executor.

    Attributes:
        key: Key whose plan asked for it.
        step: What is done.
        generation: Of the key's actual record at the start; 0 for none.
        began_s: When a worker took it up; None in the queue.
        took_s: From then to its end.
    """

    key: K
    step: Step[S]
    generation: int
    began_s: float | None = None
    took_s: float = 0.0
    future: Future[R] | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether it was submitted and has not ended."""
        return self.future is not None and not self.future.done()

    def outcome(self) -> Outcome[R] | None:
        """What came of it, once the future is done; None when it never began."""
        future = self.future
        if future is None or future.cancelled():
            return None
        error = future.exception(timeout=0)
        if error is None:
            return Done(future.result(timeout=0))
        if isinstance(error, CancelledError):
            return None
        if isinstance(error, UncertainError):
            return Uncertain(error)
        if isinstance(error, Exception):
            return Failed(error)
        # KeyboardInterrupt and the like ended a worker half way through its call.
        return Uncertain(UncertainError(f"{self.step.verb} was interrupted by {error!r}"))


class Operations(Generic[K, S, R]):
    """Operations on their way; `start` and `release` under their owner's lock.

    Ended operations are collected from the workers' threads without a lock.
    """

    def __init__(
        self,
        perform: Callable[[Step[S]], R],
        executor: Executor,
        clock: Clock,
        on_end: Callable[[], None],
    ) -> None:
        self._perform = perform
        self._executor = executor
        self._clock = clock
        self._on_end = on_end
        self._scopes = Scopes()
        self._under_way: dict[int, Operation[K, S, R]] = {}
        self._ended: deque[Operation[K, S, R]] = deque()

    def __len__(self) -> int:
        return len(self._under_way)

    def is_free(self, step: Step[S], /) -> bool:
        """Whether nothing runs around, in or below the step's scope."""
        return self._scopes.is_free(step.scope)

    def start(self, operation: Operation[K, S, R], /) -> None:
        """Close the scope, which must be free, and submit.

        Raises whatever the executor raises; the scope is open again then.
        """
        self._scopes.take(operation.step.scope)
        try:
            future = self._executor.submit(self._run, operation)
        except BaseException:
            self._scopes.release(operation.step.scope)
            raise
        operation.future = future
        self._under_way[id(operation)] = operation

        def ended(_: Future[R]) -> None:
            self._ended.append(operation)
            self._on_end()

        future.add_done_callback(ended)

    def take_ended(self) -> list[Operation[K, S, R]]:
        """Operations that ended since the last call; their scopes are open again."""
        taken: list[Operation[K, S, R]] = []
        while self._ended:
            operation = self._ended.popleft()
            self._scopes.release(operation.step.scope)
            self._under_way.pop(id(operation), None)
            taken.append(operation)
        return taken

    def under_way(self) -> tuple[Running, ...]:
        """What has been submitted and has not ended."""
        return tuple(
            Running(scope=one.step.scope, verb=one.step.verb, began_s=one.began_s)
            for one in self._under_way.values()
            if one.is_under_way
        )

    def cancel(self) -> list[Future[R]]:
        """Cancel what no worker has taken up; what cannot be cancelled is returned."""
        futures = [one.future for one in self._under_way.values() if one.future is not None]
        return [future for future in futures if not future.cancel()]

    def _run(self, operation: Operation[K, S, R]) -> R:
        operation.began_s = began_s = self._clock.monotonic_s()
        try:
            return self._perform(operation.step)
        finally:
            operation.took_s = self._clock.monotonic_s() - began_s
