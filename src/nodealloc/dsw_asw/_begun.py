"""Starting steps, and settling what came of them."""

from __future__ import annotations

import logging
from collections.abc import Hashable
from functools import partial
from typing import Generic, TypeVar

from nodealloc._error_words import error_words, is_of_bug
from nodealloc.dsw_asw._bookkeeping import Bookkeeping
from nodealloc.dsw_asw._errors import (
    CancelledOperationError,
    DeadlineError,
    NoProgressError,
    NotTakenUpError,
)
from nodealloc.dsw_asw._operations import Operation, Operations
from nodealloc.dsw_asw._plans import Plan
from nodealloc.dsw_asw._ports import Clock, Domain, Observer
from nodealloc.dsw_asw._records import Records
from nodealloc.dsw_asw._scopes import Blocked
from nodealloc.dsw_asw._steps import Cancelled, Done, Failed, Failure, Outcome, Step, Uncertain
from nodealloc.dsw_asw._telling import tell
from nodealloc.dsw_asw._turn import Turn

__all__ = ["Begun"]

K = TypeVar("K", bound=Hashable)
W = TypeVar("W")
H = TypeVar("H")
S = TypeVar("S")
R = TypeVar("R")

_log = logging.getLogger("nodealloc.dsw_asw")


class Begun(Generic[K, W, H, S, R]):
    """Steps of one reconciler from their start to their record; used by one thread at a time.

    Args:
        domain: Says what comes of a step.
        operations: What is on its way.
        records: The actual world.
        bookkeeping: What is held off, and what is due.
        clock: Time.
        observer: Is told of progress.
        take_up_s: A call that no worker took up for so long is withdrawn; None for never.

    Attributes:
        is_closed: Whether nothing is started any more; set from any thread.
    """

    def __init__(
        self,
        domain: Domain[K, W, H, S, R],
        *,
        operations: Operations[K, S, R],
        records: Records[K, H],
        bookkeeping: Bookkeeping[K],
        clock: Clock,
        observer: Observer | None,
        take_up_s: float | None,
    ) -> None:
        self._domain = domain
        self._operations = operations
        self._records = records
        self._bookkeeping = bookkeeping
        self._clock = clock
        self._observer = observer
        self._take_up_s = take_up_s
        self.is_closed = False
        self._blocked = Blocked[K]()
        self._late: list[Operation[K, S, R]] = []

    def _cancel(self, key: K, plan: Plan[H, S]) -> None:
        """Ask those of a key's operations to stop that its plan does not want any more."""
        if plan.cancel is not False:
            for operation in tuple(self._operations.of_key(key)):
                if plan.cancel is True or operation.step.scope in plan.cancel:
                    self._operations.ask_to_stop(operation)

    def settle_ended(self, turn: Turn[K, H, S], /) -> list[K]:
        """Settle every operation that ended; their keys."""
        keys: list[K] = []
        while (operation := self._operations.next_ended()) is not None:
            self._ended(operation, turn)
            self._operations.forget_ended()
            keys.append(operation.key)
        return keys

    def start_all(self, turn: Turn[K, H, S], /) -> None:
        """Start what the plans of this pass say, lower phases first, but for keys that are not remembered."""
        if self.is_closed:
            return
        planned: list[tuple[K, Step[S], float | None]] = []
        for key, plan in turn.plans:
            if key not in turn.held:
                self._cancel(key, plan)
                planned += [(key, step, plan.again_at_s) for step in plan.steps]
        if len(planned) > 1:
            planned.sort(key=lambda one: one[1].phase)
        for key, step, again_at_s in planned:
            if self.is_closed:  # meanwhile
                return
            self._start(key, step, again_at_s, turn)

    def ask_all_to_stop(self) -> None:
        """Ask all that run; from any thread."""
        for operation in tuple(self._operations.under_way()):
            self._operations.ask_to_stop(operation)

    def call_next(self, turn: Turn[K, H, S], /) -> bool:
        """Have keys planned whose scope stayed open as nobody before them wanted it; whether any are."""
        called = self._blocked.after(turn.keys, self._operations.is_open)
        if called:
            self._bookkeeping.add(called)
        return bool(called)

    def _start(self, key: K, step: Step[S], again_at_s: float | None, turn: Turn[K, H, S]) -> None:
        """Start a step, unless it runs, is held off, or its scope is closed."""
        try:
            for running in self._operations.of_key(key):
                if running.is_of(step):
                    return
            if self._bookkeeping.is_held_off(key, step, turn.now_s):
                return
        except Exception as error:  # noqa: BLE001 - details compare as their domain likes
            turn.count("failed")
            self._bookkeeping.hold_off(key, step, error, turn.now_s)
            return
        if not self._operations.is_open(step.scope):
            turn.count("blocked")
            self._blocked.add(step.scope, key)
            return
        operation = self._operations.new(key, step, self._records.generation(key), again_at_s)
        try:
            self._operations.start(operation)
        except Exception as error:  # noqa: BLE001 - an executor may raise what it likes
            turn.count("failed")
            self._bookkeeping.hold_off(key, step, error, turn.now_s)
            return
        turn.count("started")
        self._blocked.started(step.scope, key)
        if operation.is_under_way:
            self._set_timer(operation, operation.since_s)
        tell(self._observer, lambda observer: observer.started(step))

    def _set_timer(self, operation: Operation[K, S, R], now_s: float) -> None:
        """Look at an operation when it should have been taken up, or have ended."""
        began_s, deadline_s = operation.began_s, operation.step.deadline_s
        # A deadline counts from the start, which of one in the queue is now at the earliest.
        moments = [] if deadline_s is None else [(now_s if began_s is None else began_s) + deadline_s]
        if began_s is None and self._take_up_s is not None:
            moments.append(operation.since_s + self._take_up_s)
        if moments:
            with self._bookkeeping.lock:
                late = partial(self._late.append, operation)
                operation.timer = self._bookkeeping.timers.add(min(moments), late)

    def look_at_late(self, turn: Turn[K, H, S], /) -> None:
        """Withdraw what nobody took up; count as uncertain what ran out of time."""
        while self._late:
            self._look_at(self._late[0], turn)
            del self._late[0]

    def _look_at(self, operation: Operation[K, S, R], turn: Turn[K, H, S]) -> None:
        if not operation.is_under_way:
            return
        began_s, deadline_s, verb = operation.began_s, operation.step.deadline_s, operation.step.verb
        if began_s is None:
            if self._take_up_s is not None and turn.now_s >= operation.since_s + self._take_up_s:
                lost = NotTakenUpError(verb, turn.now_s - operation.since_s)
                if self._operations.lose(operation, lost, turn.now_s):
                    return
        elif deadline_s is not None and turn.now_s >= began_s + deadline_s:
            error = DeadlineError(verb, deadline_s)
            over: Outcome[R] = Uncertain(error, still_running=True, began_s=began_s, ended_s=turn.now_s)
            self._settle(operation, over, turn)
            self._operations.ask_to_stop(operation)
            return
        self._set_timer(operation, turn.now_s)

    def _ended(self, operation: Operation[K, S, R], turn: Turn[K, H, S]) -> None:
        """The call returned, in time or late; its scope is open again."""
        with self._bookkeeping.lock:
            if operation.timer is not None:
                operation.timer.cancel()
            self._bookkeeping.due_keys.add(self._blocked.opened(operation.step.scope))
        if operation.outcome is not None:
            self._settle(operation, operation.outcome, turn)

    def _settle(self, operation: Operation[K, S, R], outcome: Outcome[R], turn: Turn[K, H, S]) -> None:
        """Let the domain say what came of it, write that down, and plan the key again."""
        key, step = operation.key, operation.step
        self._bookkeeping.add((key,))
        error = _error_of(step, outcome)
        try:
            self._records.settle(key, lambda have: self._domain.settled(have, step, outcome), step.verb)
        except Exception as raised:  # noqa: BLE001 - one key's fault must not stop the others
            _log.exception("settling %s of %r raised; it is planned again after a back-off", step.verb, key)
            error = raised
        if isinstance(outcome, Done) and error is None:
            moved = self._records.has_moved(key, operation.generation)
            if step.may_change_nothing:
                self._rest(operation, outcome, moved=moved)
            elif not moved:
                error = NoProgressError(step.verb)
            if error is None:
                self._bookkeeping.forget_step(key, step)
        if error is not None:
            after_s = outcome.again_after_s if isinstance(outcome, Failed | Uncertain) else None
            failure = self._bookkeeping.hold_off(key, step, error, self._clock.monotonic_s(), after_s)
            if error is _error_of(step, outcome) and failure.tries == 1:
                _tell_of_bug(key, failure)
        turn.count(_KINDS[type(outcome)])
        took_s = 0.0 if outcome.began_s is None else max(0.0, outcome.ended_s - outcome.began_s)
        tell(self._observer, lambda observer: observer.ended(step, outcome, took_s))

    def _rest(self, operation: Operation[K, S, R], outcome: Done[R], *, moved: bool) -> None:
        """A period is a period, whatever its step found; without one, a change is what to go on with."""
        until_s = operation.rest_until_s
        if outcome.again_after_s is not None:
            until_s = outcome.ended_s + outcome.again_after_s
        if not moved or until_s is not None:
            with self._bookkeeping.lock:
                self._bookkeeping.rests.add(
                    operation.key, operation.step, until_s, outcome.ended_s, spared=moved
                )


def _tell_of_bug(key: object, failure: Failure) -> None:
    """What only a mistake in a program raises would show in `failures` alone, for which nobody asks."""
    error = failure.error
    if is_of_bug(error):
        said = "%s of %r raised %s; it is tried again after a back-off"
        _log.error(said, failure.verb, key, error_words(error), exc_info=error)


_KINDS: dict[type, str] = {Done: "done", Failed: "failed", Uncertain: "uncertain", Cancelled: "cancelled"}


def _error_of(step: Step[S], outcome: Outcome[R]) -> Exception | None:
    match outcome:
        case Failed() | Uncertain():
            return outcome.error
        case Cancelled(asked=False):
            return CancelledOperationError(step.verb)
        case _:
            return None
