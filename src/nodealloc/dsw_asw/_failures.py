"""Which steps are held off: those that failed, and those that rest."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Generic, TypeAlias, TypeVar

from nodealloc._back_off import BackOff
from nodealloc.dsw_asw._steps import Failure, Step, StepScope
from nodealloc.errors import RetryableError, UncertainError

__all__ = ["Failures", "Name", "RestingSteps", "name_of"]

K = TypeVar("K", bound=Hashable)

Name: TypeAlias = tuple[StepScope, str, Hashable]
"""What tells the steps of a key apart: two that share a scope and a verb are done for different subjects."""


def name_of(step: Step[object] | Failure, /) -> Name:
    """Its scope, its verb and its subject."""
    return step.scope, step.verb, step.subject


class Failures(Generic[K]):
    """Steps that failed, by key; not thread-safe, its owner holds a lock.

    Attributes:
        count: How many there are; may be read without the owner's lock.
    """

    def __init__(self, policy: BackOff) -> None:
        self._policy = policy
        self._by_key: dict[K, dict[Name, Failure]] = {}
        self.count = 0

    def of_key(self, key: K, /) -> tuple[Failure, ...]:
        """Every failure of a key that has not been made good."""
        return tuple(self._by_key.get(key, {}).values())

    def of_step(self, key: K, step: Step[object], /) -> Failure | None:
        """The failure that holds off a step; another subject's does not."""
        failures = self._by_key.get(key)
        return None if failures is None else failures.get(name_of(step))

    def add(
        self, key: K, step: Step[object], error: Exception, now_s: float, after_s: float | None = None, /
    ) -> Failure:
        """Count a failure and say when the next try is due.

        Args:
            key: Whose.
            step: What failed.
            error: Why.
            now_s: Now, on the engine's clock.
            after_s: The domain's own rule for the wait; None for the back-off's.
        """
        before = self.of_step(key, step)
        tries = 1 if before is None else before.tries + 1
        wait = self._policy.after(tries) if after_s is None else after_s
        if after_s is None and isinstance(error, RetryableError | UncertainError):
            wait = max(wait, error.after_s)
        failure = Failure(
            scope=step.scope,
            verb=step.verb,
            subject=step.subject,
            error=error,
            tries=tries,
            due_s=now_s + wait,
        )
        failures = self._by_key.setdefault(key, {})
        self.count -= len(failures)
        failures[name_of(step)] = failure
        self.count += len(failures)
        return failure

    def forget_step(self, key: K, step: Step[object] | Failure, /) -> None:
        """The step succeeded, or is not asked for any more."""
        if key in self._by_key:
            self._remove(key, name_of(step))

    def forget_key(self, key: K, /) -> None:
        """The key is gone, and its failures with it."""
        self.count -= len(self._by_key.pop(key, {}))

    def expire(self, key: K, failure: Failure, /) -> None:
        """Drop this very failure, unless a newer one took its place."""
        if self._by_key.get(key, {}).get(name_of(failure)) is failure:
            self._remove(key, name_of(failure))

    def keeps_s(self) -> float:
        """How long a failure is remembered after its wait is over."""
        return 2 * self._policy.max_s

    def _remove(self, key: K, name: Name) -> None:
        failures = self._by_key.get(key)
        if failures is not None and failures.pop(name, None) is not None:
            self.count -= 1
            if not failures:
                del self._by_key[key]


class RestingSteps(Generic[K]):
    """Steps that did what they could for now: they rest until their plan wants to look again."""

    def __init__(self) -> None:
        self._by_key: dict[K, dict[Name, tuple[object, float]]] = {}
        self._spared: dict[K, str] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def add(
        self, key: K, step: Step[object], until_s: float | None, now_s: float, /, *, spared: bool = False
    ) -> None:
        """Let a step rest.

        Args:
            key: Whose.
            step: Which.
            until_s: Until when; None until a record changes.
            now_s: Now; what has rested until then is forgotten.
            spared: Its own result is a change that is still to come, and does not end the rest.
        """
        rests = {name: rest for name, rest in self._by_key.get(key, {}).items() if rest[1] > now_s}
        rests[name_of(step)] = (step.detail, math.inf if until_s is None else until_s)
        self._by_key[key] = rests
        if spared:
            self._spared[key] = step.verb

    def until_s(self, key: K, step: Step[object], /) -> float | None:
        """Until when this very step rests; infinite until a record changes, None where it does not."""
        rest = self._by_key.get(key, {}).get(name_of(step)) if self._by_key else None
        return rest[1] if rest is not None and rest[0] == step.detail else None

    def changed(self, key: K, by: tuple[str, ...], /) -> None:
        """A record changed: nothing of the key rests any more, unless the step wrote it itself."""
        if self._by_key and (not self._spared or (self._spared.pop(key, None),) != by):
            self._by_key.pop(key, None)

    def end(self, key: K, /) -> None:
        """Somebody asked, or the key is gone: nothing of it rests any more."""
        self._by_key.pop(key, None)
        self._spared.pop(key, None)
