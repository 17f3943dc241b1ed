"""One answer for all who ask the same at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, NoReturn, TypeVar

__all__ = ["SharedAnswer"]

T = TypeVar("T")


class SharedAnswer(Generic[T]):
    """Asks one at a time: who comes meanwhile waits for a call that begins after that, and shares it.

    So nobody gets an answer that is older than the question, and however many
    ask, one call is under way and one is to come. Thread-safe.

    Args:
        ask: Takes as long as it may take, and no longer.
    """

    def __init__(self, ask: Callable[[], T]) -> None:
        self._ask = ask
        self._turns = threading.Condition()
        self._begun = self._ended = 0
        self._last: Callable[[], T] = ask

    def get(self) -> T:
        """An answer that began after this was called; raises what `ask` raised."""
        with self._turns:
            needed = self._begun + 1
            while self._ended < needed and self._begun > self._ended:
                self._turns.wait()
            if self._ended < needed:
                self._begun = needed = self._begun + 1
                told = None
            else:
                told = self._last
        return self._asked(needed) if told is None else told()

    def _asked(self, number: int) -> T:
        try:
            value = self._ask()
        except BaseException as error:
            self._over(number, _raising(error))
            raise
        self._over(number, lambda: value)
        return value

    def _over(self, number: int, told: Callable[[], T]) -> None:
        with self._turns:
            self._ended, self._last = number, told
            self._turns.notify_all()


def _raising(error: BaseException) -> Callable[[], NoReturn]:
    def raising() -> NoReturn:
        raise error

    return raising
