"""Which steps failed, and how long each has to wait."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from nodealloc._back_off import BackOff
from nodealloc.dsw_asw._steps import Failure, Scope, Step
from nodealloc.errors import RetryableError

__all__ = ["Failures"]

K = TypeVar("K", bound=Hashable)


class Failures(Generic[K]):
    """Steps that failed, by key; not thread-safe, its owner holds a lock."""

    def __init__(self, policy: BackOff) -> None:
        self._policy = policy
        self._by_key: dict[K, dict[tuple[Scope, str], Failure]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def of_key(self, key: K, /) -> tuple[Failure, ...]:
        """Every failure of a key that has not been made good."""
        return tuple(self._by_key.get(key, {}).values())

    def of_step(self, key: K, step: Step[object], /) -> Failure | None:
        """The failure that holds off a step, if its subject is still the same."""
        failure = self._by_key.get(key, {}).get((step.scope, step.verb))
        return failure if failure is not None and failure.subject == step.subject else None

    def add(self, key: K, step: Step[object], error: Exception, now_s: float, /) -> Failure:
        """Count a failure and say when the next try is due."""
        before = self.of_step(key, step)
        tries = 1 if before is None else before.tries + 1
        wait = self._policy.after(tries)
        if isinstance(error, RetryableError):
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
        self._count -= len(failures)
        failures[step.scope, step.verb] = failure
        self._count += len(failures)
        return failure

    def forget_step(self, key: K, step: Step[object], /) -> None:
        """The step succeeded."""
        self._remove(key, (step.scope, step.verb))

    def forget_key(self, key: K, /) -> None:
        """The key is gone, and its failures with it."""
        self._count -= len(self._by_key.pop(key, {}))

    def expire(self, key: K, failure: Failure, /) -> None:
        """Drop this very failure, unless a newer one took its place."""
        if self._by_key.get(key, {}).get((failure.scope, failure.verb)) is failure:
            self._remove(key, (failure.scope, failure.verb))

    def keeps_s(self) -> float:
        """How long a failure is remembered after its wait is over."""
        return 2 * self._policy.max_s

    def _remove(self, key: K, name: tuple[Scope, str]) -> None:
        failures = self._by_key.get(key)
        if failures is not None and failures.pop(name, None) is not None:
            self._count -= 1
            if not failures:
                del self._by_key[key]
