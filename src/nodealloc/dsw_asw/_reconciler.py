"""The reconciler: from dirty keys to operations, and from their ends to records."""

from __future__ import annotations

import concurrent.futures
import itertools
import logging
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Generic, TypeVar

from nodealloc._back_off import BackOff
from nodealloc.dsw_asw._agenda import Agenda
from nodealloc.dsw_asw._clock import SystemClock
from nodealloc.dsw_asw._errors import DeadlineError, LivelockError, Missing, NoProgressError
from nodealloc.dsw_asw._failures import Failures
from nodealloc.dsw_asw._operations import Operation, Operations
from nodealloc.dsw_asw._ports import Clock, Domain, Executor, Observer
from nodealloc.dsw_asw._steps import Done, Failure, Outcome, Running, Scope, Step, Uncertain
from nodealloc.dsw_asw._summary import Summary
from nodealloc.dsw_asw._telling import tell
from nodealloc.dsw_asw._timers import Timers
from nodealloc.dsw_asw._waits import Wait, Waits
from nodealloc.dsw_asw._world import World

__all__ = ["Reconciler"]

K = TypeVar("K", bound=Hashable)
D = TypeVar("D")
A = TypeVar("A")
S = TypeVar("S")
R = TypeVar("R")

_log = logging.getLogger("nodealloc.dsw_asw")


class Reconciler(Generic[K, D, A, S, R]):
    """Brings an actual world in line with a desired one; every method may be called from any thread.

    Work is proportional to change: a pass looks at keys that are dirty in
    either world, whose operation ended, or whose back-off is over, and at no
    others. `reconcile` makes one pass; `Loop` calls it in a thread.

    Args:
        domain: The rules.
        desired: What is wanted.
        actual: What is there.
        executor: Runs `domain.perform`.
        clock: Time for back-off and deadlines.
        back_off: How long a failed step waits.
        resync_s: Seconds between looks at every key, the safety net for what no
            event told of; None for never. Nothing is called for keys in line.
        observer: Is told of progress.
    """

    def __init__(
        self,
        domain: Domain[K, D, A, S, R],
        *,
        desired: World[K, D],
        actual: World[K, A],
        executor: Executor,
        clock: Clock | None = None,
        back_off: BackOff | None = None,
        resync_s: float | None = 300.0,
        observer: Observer | None = None,
    ) -> None:
        self._domain = domain
        self._desired = desired
        self._actual = actual
        self._clock: Clock = SystemClock() if clock is None else clock
        self._observer = observer
        self._resync_s = resync_s
        self._lock = threading.RLock()
        self._work = threading.Event()
        self._listeners: dict[int, Callable[[], None]] = {}
        self._numbers = itertools.count()
        self._operations: Operations[K, S, R] = Operations(domain.perform, executor, self._clock, self._wake)
        self._failures = Failures[K](BackOff() if back_off is None else back_off)
        self._timers = Timers()
        self._waits = Waits[K]()
        self._blocked: dict[Hashable, dict[K, None]] = {}
        self._tally = Counter[str]()
        self._closed = False
        self._agenda = Agenda(
            (desired.watch(self._wake), actual.watch(self._wake)),
            lambda: itertools.chain(desired.snapshot(), actual.snapshot()),
        )
        if self._agenda.has_changes:
            self._work.set()
        self._plan_resync()

    def reconcile(self) -> Summary:
        """Make one pass: settle what ended, plan what is dirty, start what is free.

        Cheap when there is nothing to do. Plans a thousand keys at most; lower
        phases start first among them.
        """
        with self._lock:
            self._work.clear()
            self._tally.clear()
            for operation in self._operations.take_ended():
                self._ended(operation)
            now_s = self._clock.monotonic_s()
            self._timers.run_due(now_s)
            keys, more = self._agenda.take()
            if more:
                self._wake()
            self._start_all(keys, now_s)
            self._waits.changed(keys)
            summary = Summary(
                passes=1,
                planned=len(keys),
                held_off=len(self._failures),
                running=len(self._operations),
                next_due_s=self._timers.next_due_s,
                **self._tally,
            )
            tell(self._observer, lambda observer: observer.passed(summary))
        return summary

    def run_until_quiet(self, *, passes: int = 1000) -> Summary:
        """Make passes until only the end of an operation, a timer or a change can bring work.

        Raises:
            LivelockError: There is still work after so many passes.
        """
        total = self.reconcile()
        while self.has_work:
            if total.passes >= passes:
                raise LivelockError(total.passes)
            total += self.reconcile()
        return total

    @property
    def has_work(self) -> bool:
        """Whether a pass now would find something to do."""
        with self._lock:
            due_s = self._timers.next_due_s
            return self._work.is_set() or (due_s is not None and due_s <= self._clock.monotonic_s())

    def seconds_to_next(self) -> float | None:
        """How long until a pass is due by itself; None when only an event can bring one."""
        with self._lock:
            due_s = self._timers.next_due_s
        return None if due_s is None else max(0.0, due_s - self._clock.monotonic_s())

    def wait_for_work(self, timeout_s: float | None = None, /) -> bool:
        """Block until a pass would find something to do, at most `timeout_s` real seconds."""
        left = [wait for wait in (self.seconds_to_next(), timeout_s) if wait is not None]
        self._work.wait(min(left, default=None))
        return self.has_work

    def add_listener(self, on_work: Callable[[], None], /) -> Callable[[], None]:
        """Have `on_work` called, from any thread, whenever a pass has something to do.

        Returns:
            A function that ends it.
        """
        number = next(self._numbers)
        self._listeners = {**self._listeners, number: on_work}
        if self._work.is_set():
            on_work()

        def leave() -> None:
            self._listeners = {at: call for at, call in self._listeners.items() if at != number}

        return leave

    def look_at(self, keys: Iterable[K], /) -> None:
        """Plan these keys in the next pass, although nothing changed."""
        with self._lock:
            self._agenda.add(keys)
        self._wake()

    def retry_now(self, key: K, /) -> None:
        """Forget the key's failures and plan it in the next pass."""
        with self._lock:
            self._failures.forget_key(key)
        self.look_at([key])

    def failures(self, key: K, /) -> tuple[Failure, ...]:
        """The last error of each step of a key that failed and was not made good."""
        with self._lock:
            return self._failures.of_key(key)

    def running(self) -> tuple[Running, ...]:
        """Operations that were started and have not ended."""
        with self._lock:
            return self._operations.under_way()

    def wait(
        self,
        keys: Iterable[K],
        lacks: Callable[[K, D | None, A | None], str],
        /,
        *,
        scope: Callable[[K], Scope] | None = None,
    ) -> Wait[K]:
        """Begin to wait for keys; block with `Wait.result` or await `Wait.result_async`.

        Args:
            keys: What has to be in line.
            lacks: From a key and its two values to what is missing, in words,
                or "" when it is in line; quick and pure.
            scope: Whose errors to show for a key; all of the key's by default.
        """

        def look(key: K) -> Missing | None:
            what = lacks(key, self._desired.get(key), self._actual.get(key))
            if not what:
                return None
            mine = None if scope is None else scope(key)
            failures = (one for one in self.failures(key) if mine is None or _touch(one.scope, mine))
            return Missing(key=key, what=what, failures=tuple(failures))

        wait = Wait(keys, look, self._clock, self._forget_wait)
        with self._lock:
            self._waits.add(wait)
            wait.check_all()
            if self._closed:
                wait.close()
        return wait

    def wait_until(
        self,
        keys: Iterable[K],
        lacks: Callable[[K, D | None, A | None], str],
        /,
        *,
        timeout_s: float = 123.0,
        scope: Callable[[K], Scope] | None = None,
    ) -> None:
        """Block until keys are in line; somebody else has to make the passes.

        Raises:
            WaitTimeoutError: Names what is missing, and its last errors.
            ShutDownError: The engine was closed meanwhile.

        Source: kubelet ``volumemanager`` (2 min 3 s).
        """
        self.wait(keys, lacks, scope=scope).result(timeout_s)

    def close(self, timeout_s: float = 0.0, /) -> tuple[Running, ...]:
        """Start nothing more, cancel what no worker took up, wait for the rest.

        What ends within `timeout_s` real seconds is settled. Waiting callers
        get `ShutDownError`. A second call waits again.

        Returns:
            Operations that are still running; nobody settles them, so their
            subjects have to count as uncertain at the next start.
        """
        with self._lock:
            self._closed = True
            futures = self._operations.cancel()
        concurrent.futures.wait(futures, timeout=timeout_s)
        self.reconcile()
        with self._lock:
            self._agenda.close()
            self._waits.close()
            self._wake()
            return self._operations.under_way()

    def _wake(self) -> None:
        if not self._work.is_set():
            self._work.set()
            for on_work in self._listeners.values():
                on_work()

    def _forget_wait(self, wait: Wait[K]) -> None:
        with self._lock:
            self._waits.remove(wait)

    def _plan_resync(self) -> None:
        """Look at every key after `resync_s`, in batches, and again after that."""
        if self._resync_s is not None:
            due_s = self._clock.monotonic_s() + self._resync_s
            self._timers.add(due_s, self._begin_resync)

    def _begin_resync(self) -> None:
        self._agenda.resync()
        self._plan_resync()

    def _start_all(self, keys: Iterable[K], now_s: float) -> None:
        planned = [(key, step) for key in keys for step in self._plan(key, now_s)]
        if self._closed:
            return
        planned.sort(key=lambda pair: pair[1].phase)
        for key, step in planned:
            self._start(key, step, now_s)

    def _plan(self, key: K, now_s: float) -> Sequence[Step[S]]:
        desired, actual = self._desired.get(key), self._actual.get(key)
        if desired is None and actual is None:
            self._failures.forget_key(key)
            return ()
        planning = Step(scope=(key,), verb="plan", detail=None)
        try:
            steps = self._domain.plan(key, desired, actual)
        except Exception as error:  # noqa: BLE001 - one key's fault must not stop the others
            _log.exception("planning %r raised; it is planned again after a back-off", key)
            self._tally["failed"] += 1
            self._hold_off(key, planning, error, now_s)
            return ()
        self._failures.forget_step(key, planning)
        return steps

    def _start(self, key: K, step: Step[S], now_s: float) -> None:
        failure = self._failures.of_step(key, step)
        if failure is not None and failure.due_s > now_s:
            return
        if not self._operations.is_free(step):
            self._tally["blocked"] += 1
            self._blocked.setdefault(step.scope[0], {})[key] = None
            return
        record = self._actual.record(key)
        operation = Operation[K, S, R](
            key=key, step=step, generation=0 if record is None else record.generation
        )
        try:
            self._operations.start(operation)
        except Exception as error:  # noqa: BLE001 - an executor may raise what it likes
            self._tally["failed"] += 1
            self._hold_off(key, step, error, now_s)
            return
        self._tally["started"] += 1
        if step.deadline_s is not None:
            self._timers.add(
                now_s + step.deadline_s, partial(self._look_at_deadline, operation, step.deadline_s)
            )
        tell(self._observer, lambda observer: observer.started(step))

    def _hold_off(self, key: K, step: Step[object], error: Exception, now_s: float) -> None:
        failure = self._failures.add(key, step, error, now_s)
        self._timers.add(failure.due_s, partial(self._agenda.add, (key,)))
        expires_s = failure.due_s + self._failures.keeps_s()
        self._timers.add(expires_s, partial(self._failures.expire, key, failure))

    def _look_at_deadline(self, operation: Operation[K, S, R], deadline_s: float) -> None:
        """Count an operation as uncertain, unless it ended or began later than it was submitted."""
        if not operation.is_under_way:
            return
        now_s = self._clock.monotonic_s()
        due_s = (now_s if operation.began_s is None else operation.began_s) + deadline_s
        if due_s > now_s:
            self._timers.add(due_s, partial(self._look_at_deadline, operation, deadline_s))
            return
        error = DeadlineError(operation.step.verb, deadline_s)
        self._settle(operation, Uncertain(error, still_running=True), deadline_s, now_s)

    def _ended(self, operation: Operation[K, S, R]) -> None:
        """The call returned, in time or late; its scope is open again."""
        self._agenda.add(self._blocked.pop(operation.step.scope[0], ()))
        outcome = operation.outcome()
        if outcome is not None:
            self._settle(operation, outcome, operation.took_s, self._clock.monotonic_s())

    def _settle(
        self, operation: Operation[K, S, R], outcome: Outcome[R], took_s: float, now_s: float
    ) -> None:
        """Let the domain write down what came of it, and plan the key again."""
        key, step = operation.key, operation.step
        self._agenda.add((key,))
        error = None if isinstance(outcome, Done) else outcome.error
        try:
            self._domain.settle(step, outcome)
        except Exception as raised:  # noqa: BLE001 - the same
            _log.exception("settling %s of %r raised; it is planned again after a back-off", step.verb, key)
            error = raised
        record = self._actual.record(key)
        if error is None and operation.generation == (0 if record is None else record.generation):
            error = NoProgressError(step.verb)
        if error is None:
            self._failures.forget_step(key, step)
        else:
            self._hold_off(key, step, error, now_s)
        kind = (
            "done"
            if isinstance(outcome, Done)
            else "uncertain"
            if isinstance(outcome, Uncertain)
            else "failed"
        )
        self._tally[kind] += 1
        tell(self._observer, lambda observer: observer.ended(step, outcome, took_s))


def _touch(one: Scope, other: Scope) -> bool:
    """Whether one scope begins with the other."""
    depth = min(len(one), len(other))
    return one[:depth] == other[:depth]
