"""The reconciler: from dirty keys to operations, and from their ends to records."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Generic, cast

from typing_extensions import TypeVar, override

from nodealloc._arguments import wrong
from nodealloc._back_off import BackOff
from nodealloc._typed import typed, typed_methods
from nodealloc.dsw_asw._begun import Begun
from nodealloc.dsw_asw._bookkeeping import Bookkeeping
from nodealloc.dsw_asw._clock import SystemClock
from nodealloc.dsw_asw._dependencies import Dependencies
from nodealloc.dsw_asw._driven import Driven, Passing
from nodealloc.dsw_asw._due_keys import DueKeys
from nodealloc.dsw_asw._errors import Missing
from nodealloc.dsw_asw._operations import Operations
from nodealloc.dsw_asw._planner import Planner
from nodealloc.dsw_asw._plans import Near
from nodealloc.dsw_asw._ports import Clock, Domain, Executor, Observer
from nodealloc.dsw_asw._records import Records
from nodealloc.dsw_asw._remembering import Remember, Rows, commit_all
from nodealloc.dsw_asw._scopes import touch
from nodealloc.dsw_asw._steps import Failure, Running, Step, StepScope
from nodealloc.dsw_asw._summary import Summary
from nodealloc.dsw_asw._telling import tell
from nodealloc.dsw_asw._turn import Turn
from nodealloc.dsw_asw._waits import Wait, Waits
from nodealloc.dsw_asw._world import World
from nodealloc.dsw_asw._writing import Writing

__all__ = ["Reconciler"]

K = TypeVar("K", bound=Hashable)
F = TypeVar("F", bound=Hashable)
W = TypeVar("W")
H = TypeVar("H")
S = TypeVar("S", default=None)
R = TypeVar("R", default=None)
V = TypeVar("V")
Row = TypeVar("Row")


@typed_methods
class Reconciler(Driven, Passing, Generic[K, W, H, S, R]):
    """Brings an actual world in line with a desired one; every method may be called from any thread.

    Work is proportional to change: a pass looks at keys that are dirty in either world or depend on what
    changed elsewhere, whose operation ended, or whose moment has come, and at no others.

    Args:
        domain: The rules.
        desired: What is wanted.
        actual: What is there; the engine writes what `settled` and `plan` say.
        executor: Runs `domain.perform`.
        near: Records of other worlds that plans look at.
        remember: How the actual world outlives the process; None where it need
            not. Intents are committed before their steps start, results before
            anybody is woken; nobody else may write the actual world then.
        clock: Time for back-off, deadlines and plans.
        back_off: How long a failed step waits.
        resync_s: Seconds between looks at every key, the safety net for what no event told of; None for
            never. Nothing is called for keys in line.
        take_up_s: A call that no worker has taken up for so long is withdrawn, counts as failed, and is
            tried again; None waits for ever.
        plans_once: Of a domain that would plan the same again after what its plan has written,
            as one that derives records from others does: that is no reason for another plan.
        batch: Keys that one pass plans at most: a burst of many more starts its first operations
            after the planning of so many, and no pass holds the lock for long.
        burst: The same where very many are due: one pass plans an eighth of them, and about so many at
            most. Behind a longer line some that came last are begun at once. None for `batch`.
        observer: Is told of progress.
        name: For threads and messages.
        stop_timeout_s: Real seconds that `stop` waits for running operations.

    Raises:
        ConfigurationError: A pass that plans no key, a `burst` below the batch, no time between looks.
    """

    @typed
    def __init__(
        self,
        domain: Domain[K, W, H, S, R],
        *,
        desired: World[K, W],
        actual: World[K, H],
        executor: Executor,
        near: Sequence[Near[K, F, V]] = (),
        remember: Remember[K, H, Row] | None = None,
        clock: Clock | None = None,
        back_off: BackOff | None = None,
        resync_s: float | None = 300.0,
        take_up_s: float | None = 60.0,
        plans_once: bool = False,
        batch: int = 1000,
        burst: int | None = None,
        observer: Observer | None = None,
        name: str = "reconcile",
        stop_timeout_s: float = 10.0,
    ) -> None:
        if batch < 1:
            raise wrong("Reconciler: batch", batch, "one key or more")
        if burst is not None and burst < batch:
            raise wrong("Reconciler: burst", burst, f"{batch}, the batch, or more")
        if resync_s == 0:
            raise wrong("Reconciler: resync_s", resync_s, "seconds above 0, or None for never")
        super().__init__(name, stop_timeout_s)
        self._desired = desired
        self._actual = actual
        self._clock: Clock = SystemClock() if clock is None else clock
        self._observer = observer
        self._passing = threading.RLock()
        self._turn: Turn[K, H, S] | None = None
        self._operations: Operations[K, S, R] = Operations(domain.perform, executor, self._clock, self._wake)
        self._records = Records(actual, remember, name)
        self._waits = Waits[K]()
        self._glanced = Summary()
        self._dependencies = Dependencies[K](cast("Sequence[Near[K, Hashable, object]]", near), self._wake)
        self._bookkeeping = Bookkeeping[K](BackOff() if back_off is None else back_off, resync_s)
        self._timers = self._bookkeeping.timers
        self._writing: Writing[K, H] = Writing(self._records, self._bookkeeping, name, plans_once=plans_once)
        changed = self._bookkeeping.rests.changed
        due_keys = DueKeys(
            desired, actual, self._dependencies, changed, wake=self._wake, batch=batch, most=burst
        )
        if due_keys.has_changes:
            self._work.set()
        self._bookkeeping.begin(due_keys, self._clock.monotonic_s())
        self._planner = Planner(
            domain,
            desired=desired,
            records=self._records,
            operations=self._operations,
            dependencies=self._dependencies,
            bookkeeping=self._bookkeeping,
            plans_once=plans_once,
        )
        self._begun = Begun(
            domain,
            operations=self._operations,
            records=self._records,
            bookkeeping=self._bookkeeping,
            clock=self._clock,
            observer=observer,
            take_up_s=take_up_s,
        )

    @override
    def reconcile(self) -> Summary:
        """Make one pass: settle what ended, plan what is due, remember, start what is free.

        Cheap when there is nothing to do. Plans a batch of keys; lower phases start first among them. Called
        from within a pass, by an operation that runs on its thread, it does nothing: the next pass does it.
        """
        with self._passing:
            if self._turn is not None:
                return Summary(passes=1)
            if not self.has_work:
                idle = self._seen(passes=1)
                if self._observer is not None:
                    tell(self._observer, lambda observer: observer.passed(idle))
                return idle
            rows = self.begin_pass()
            try:
                failed = commit_all(() if rows is None else (rows,))
            except BaseException:
                self.abandon_pass()
                raise
            return self.end_pass(next(iter(failed.values()), None))

    @override
    def begin_pass(self) -> Rows | None:
        """Settle what ended and plan what is due; a group, or `reconcile`, calls it."""
        self._passing.acquire()
        turn: Turn[K, H, S] = Turn()
        self._turn = turn
        try:
            for key in self._begun.settle_ended(turn):
                self._planner.moved_on(key)
            turn.now_s = self._clock.monotonic_s()
            with self._bookkeeping.lock:
                self._bookkeeping.timers.run_due(turn.now_s)
            self._begun.look_at_late(turn)
            # Cleared after what this pass wrote itself, and before it looks what is due.
            if self._work.is_set():
                self._work.clear()
            with self._bookkeeping.lock:
                turn.keys, more = self._bookkeeping.due_keys.take()
                turn.left = self._bookkeeping.due_keys.left
            if more or self._operations.next_ended() is not None:
                self._wake()
            if not self._begun.is_closed:
                for key in turn.keys:
                    self._planner.plan(key, turn)
            return self._writing.rows(turn)
        except BaseException:
            self.abandon_pass()
            raise

    @override
    def end_pass(self, error: Exception | None, /) -> Summary:
        """What was to be remembered is, or could not be: tell, and start steps."""
        turn = self._turn
        if turn is None:
            raise RuntimeError(f"{self.name}: a pass was ended that had not begun")
        try:
            self._writing.ended(turn, error)
            self._begun.start_all(turn)
            if self._begun.call_next(turn):
                self._wake()
            self._waits.changed(turn.keys)
            next_due_s = self._next_due_s()
            summary = Summary(
                passes=1,
                planned=len(turn.keys),
                held_off=self._bookkeeping.failures.count,
                running=self._operations.count,
                left=turn.left,
                next_due_s=next_due_s,
                **turn.tally,
            )
        except BaseException:
            self.abandon_pass()
            raise
        self._turn = None
        self._passed()
        self._passing.release()
        if self._observer is not None:
            tell(self._observer, lambda observer: observer.passed(summary))
        return summary

    @override
    def abandon_pass(self) -> None:
        """The pass was interrupted: what was due is due again, so that nothing is forgotten."""
        turn, self._turn = self._turn, None
        if turn is not None:
            self._bookkeeping.add((*turn.keys, *self._records.waiting))
            self._wake()
            self._passing.release()

    @override
    def glance(self) -> Summary:
        """What is held off and running, without a pass."""
        return self._seen()

    def _seen(self, passes: int = 0) -> Summary:
        next_due_s = self._next_due_s()
        held_off, running, seen = self._bookkeeping.failures.count, self._operations.count, self._glanced
        now = next_due_s, running, held_off, passes
        if (seen.next_due_s, seen.running, seen.held_off, seen.passes) != now:
            # Members of a group that rest are glanced at in every pass of the others.
            seen = self._glanced = Summary(
                passes=passes, held_off=held_off, running=running, next_due_s=next_due_s
            )
        return seen

    @property
    @override
    def has_work(self) -> bool:
        """Whether a pass now would find something to do."""
        if self._work.is_set():
            return True
        soonest_s = self._timers.soonest_s
        return soonest_s != math.inf and soonest_s <= self._clock.monotonic_s()

    @override
    def seconds_to_next(self) -> float | None:
        """How long until a pass is due by itself; None when only an event can bring one."""
        due_s = self._next_due_s()
        return None if due_s is None else max(0.0, due_s - self._clock.monotonic_s())

    def _next_due_s(self) -> float | None:
        due_s = self._timers.soonest_s
        return None if due_s == math.inf else due_s

    @override
    def reconcilers(self) -> Iterator[Passing]:
        """Itself."""
        yield self

    def forgo_resync(self) -> None:
        """Never look at a key without a reason: a test then sees a wake-up that was lost."""
        self._bookkeeping.forgo_resync()

    @typed
    def look_at(self, keys: Iterable[K], /) -> None:
        """Plan these keys in the next pass, although nothing changed; what rests of them is over."""
        with self._bookkeeping.lock:
            for key in keys:
                self._bookkeeping.rests.end(key)
                self._bookkeeping.due_keys.add((key,))
        self._wake()

    def retry_now(self, key: K, /) -> None:
        """Forget the key's failures and plan it in the next pass."""
        self._bookkeeping.forget_failures(key)
        self.look_at([key])

    def failures(self, key: K, /) -> tuple[Failure, ...]:
        """The last error of each step of a key that failed and was not made good."""
        with self._bookkeeping.lock:
            return self._bookkeeping.failures.of_key(key)

    @override
    def running(self) -> tuple[Running[object], ...]:
        """Operations that were started and have not ended."""
        return tuple(one.shown() for one in self._operations.under_way())

    def unsettled(self, key: K, /) -> tuple[Step[S], ...]:
        """Steps of a key that were handed over, and of which its actual record does not say yet what came."""
        return tuple(one.step for one in self._operations.of_key(key))

    def wait(
        self,
        keys: Iterable[K],
        lacks: Callable[[K, W | None, H | None], str],
        /,
        *,
        scope: Callable[[K], StepScope] | None = None,
    ) -> Wait[K]:
        """Begin to wait for keys; block with `Wait.result` or await `Wait.result_async`.

        Args:
            keys: What has to be in line.
            lacks: From a key and its two values to what is missing, in words, or "" when it is in line;
                quick and pure.
            scope: Whose errors to show for a key; all of the key's by default.
        """

        def look(key: K) -> Missing | None:
            what = lacks(key, self._desired.get(key), self._actual.get(key))
            if not what:
                return None
            failures = self.failures(key)
            if scope is not None:
                failures = tuple(one for one in failures if touch(one.scope, scope(key)))
            return Missing(key=key, what=what, failures=failures)

        wait = Wait(keys, look, self._clock, self._waits.remove)
        self._waits.add(wait)
        if self._begun.is_closed:
            self._waits.end(wait, self.running())
        return wait

    def wait_until(
        self,
        keys: Iterable[K],
        lacks: Callable[[K, W | None, H | None], str],
        /,
        *,
        timeout_s: float = 123.0,
        scope: Callable[[K], StepScope] | None = None,
    ) -> None:
        """Block until keys are in line; somebody else has to make the passes.

        Raises:
            WaitTimeoutError: Names what is missing, and its last errors.
            ShutDownError: The engine was closed meanwhile.

        Source: kubelet ``volumemanager`` (2 min 3 s).
        """
        self.wait(keys, lacks, scope=scope).result(timeout_s)

    @override
    def close(self, timeout_s: float = 0.0, /) -> tuple[Running[object], ...]:
        """Start nothing more, withdraw what no worker took up, ask the rest to stop and wait for it.

        What ends within `timeout_s` real seconds is settled. Waiting callers get `ShutDownError`. A second
        call waits again.

        Returns:
            Operations that are still running; nobody settles them, so their subjects have to count as
            uncertain at the next start.
        """
        until_s = time.monotonic() + timeout_s
        self._begun.is_closed = True
        self._writing.close()
        # The second time for what a pass that was under way on another thread has started since.
        for _ in range(2):
            self._begun.ask_all_to_stop()
            self._wake()
            self.reconcile()
        passes = self.passes_made
        while self.running() and (left_s := until_s - time.monotonic()) > 0:
            self.wait_for_pass(passes, left_s)
            self.reconcile()
            passes = self.passes_made
        self._bookkeeping.due_keys.close()
        running = self.running()
        self._waits.close(running)
        self._wake()
        return running
