"""What a reconciler keeps about keys between passes: when to look at which, and what is held off."""

from __future__ import annotations

import math
import threading
from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from typing import Generic, TypeVar

from nodealloc._back_off import BackOff
from nodealloc.dsw_asw._due_keys import DueKeys
from nodealloc.dsw_asw._failures import Failures, Name, RestingSteps, name_of
from nodealloc.dsw_asw._steps import Failure, Step
from nodealloc.dsw_asw._timers import Timer, Timers

__all__ = ["Bookkeeping"]

K = TypeVar("K", bound=Hashable)

_SOONEST_S = 0.001
"""What is to be looked at again at once, or in the past, is looked at after this."""


class Bookkeeping(Generic[K]):
    """Due keys, failures, rests and timers of one reconciler, behind one lock that nobody calls out under.

    Args:
        back_off: How long a failed step waits.
        resync_s: Seconds between looks at every key; None for never.
    """

    def __init__(self, back_off: BackOff, resync_s: float | None) -> None:
        self.lock = threading.RLock()
        self.due_keys: DueKeys[K]  # set by the owner, whose worlds it watches
        self.timers = Timers()
        self.failures = Failures[K](back_off)
        self.rests = RestingSteps[K]()
        self._resync_s = resync_s
        self._looks: dict[K, Timer] = {}
        self._held: dict[K, dict[Name, tuple[Timer, Timer]]] = {}

    def begin(self, due_keys: DueKeys[K], now_s: float) -> None:
        """Start with what is due."""
        self.due_keys = due_keys
        self.plan_resync(now_s)

    def plan_resync(self, now_s: float) -> None:
        """Look at every key after `resync_s`, in batches, and again after that."""
        if self._resync_s is not None:
            self.timers.add(now_s + max(self._resync_s, _SOONEST_S), self._resync)

    def forgo_resync(self) -> None:
        """Plan no look at every key any more, and leave out the one that is planned."""
        self._resync_s = None

    def add(self, keys: Iterable[K], /) -> None:
        """Look at these in the next pass."""
        with self.lock:
            self.due_keys.add(keys)

    def look_again(self, key: K, at_s: float | None, now_s: float) -> None:
        """Look at a key at a moment; replaces what was set for it before."""
        if at_s is None and key not in self._looks:
            return
        with self.lock:
            before = self._looks.pop(key, None)
            if before is not None:
                before.cancel()
            if at_s is not None:
                due_s = max(at_s, now_s + _SOONEST_S)
                self._looks[key] = self.timers.add(due_s, partial(self._look, key))

    def is_held_off(self, key: K, step: Step[object], now_s: float) -> bool:
        """Whether a step failed a short while ago, or rests."""
        if key not in self._held and not self.rests:
            return False
        with self.lock:
            failure = self.failures.of_step(key, step)
            if failure is not None and failure.due_s > now_s:
                return True
            rests_until_s = self.rests.until_s(key, step)
            if rests_until_s is None or rests_until_s <= now_s:
                return False
            before = self._looks.get(key)
            if rests_until_s < math.inf and (before is None or before.due_s > rests_until_s):
                self.look_again(key, rests_until_s, now_s)
            return True

    def hold_off(
        self, key: K, step: Step[object], error: Exception, now_s: float, after_s: float | None = None
    ) -> Failure:
        """A step failed: try again after its back-off, or after the domain's own wait."""
        with self.lock:
            failure = self.failures.add(key, step, error, now_s, after_s)
            expires_s = failure.due_s + self.failures.keeps_s()
            held = self._held.setdefault(key, {})
            self._cancel(held.pop(name_of(step), None))
            held[name_of(step)] = (
                self.timers.add(failure.due_s, partial(self.due_keys.add, (key,))),
                self.timers.add(expires_s, partial(self._expire, key, failure)),
            )
            return failure

    def has_failures(self, key: K) -> bool:
        """Whether any step of a key failed and was not made good."""
        return key in self._held

    def forget_superseded(
        self, key: K, planned: Sequence[Step[object]], busy: Iterable[Step[object]]
    ) -> None:
        """A plan asks for the same as what failed, for other subjects alone: nobody waits for that failure.

        A domain may leave out of its plan what waits for a step that runs: that is still to be done.
        """
        names = {(step.scope, step.verb) for step in planned}.difference(
            (step.scope, step.verb) for step in busy
        )
        kept = {name_of(step) for step in planned}
        for failure in self.failures.of_key(key):
            if (failure.scope, failure.verb) in names and name_of(failure) not in kept:
                self.forget_step(key, failure)

    def forget_step(self, key: K, step: Step[object] | Failure) -> None:
        """The step succeeded, or is not asked for any more."""
        if key not in self._held:
            return
        with self.lock:
            self.failures.forget_step(key, step)
            held = self._held.get(key, {})
            self._cancel(held.pop(name_of(step), None))
            if not held:
                self._held.pop(key, None)

    def forget_failures(self, key: K) -> None:
        """Hold nothing of a key off any more."""
        with self.lock:
            self.rests.end(key)
            self.failures.forget_key(key)
            for timers in self._held.pop(key, {}).values():
                self._cancel(timers)

    def forget_key(self, key: K) -> None:
        """The key is gone."""
        with self.lock:
            self.look_again(key, None, 0.0)
            if key in self._held:
                self.forget_failures(key)
            self.rests.end(key)

    def _look(self, key: K) -> None:
        self._looks.pop(key, None)
        self.due_keys.add((key,))

    def _expire(self, key: K, failure: Failure) -> None:
        self.failures.expire(key, failure)
        held = self._held.get(key, {})
        held.pop(name_of(failure), None)
        if not held:
            self._held.pop(key, None)

    def _resync(self) -> None:
        if self._resync_s is not None:
            self.due_keys.resync()
            self.plan_resync(self.timers.now_s)

    @staticmethod
    def _cancel(timers: tuple[Timer, Timer] | None) -> None:
        for timer in timers or ():
            timer.cancel()
