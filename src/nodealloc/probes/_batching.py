"""How long questions and answers are let come before they are dealt with together."""

from __future__ import annotations

import threading
import time
from typing import Final

from nodealloc.dsw_asw import Clock
from nodealloc.probes._lines import Key
from nodealloc.probes._schedule import Schedule

__all__ = ["Batching"]

_BATCH_S: Final = 0.04
"""What comes within it is dealt with at once: a thousand wake-ups a second cost more than their questions."""
_LONG_BATCH_S: Final = 0.1
"""The same where many are asked, none of them more often than each second or with less time to answer."""
_MANY: Final = 16
_HASTY_S: Final = 1.0


class Batching:
    """Lets the thread that asks sleep between two turns. Not thread-safe, but for `work`.

    Args:
        work: Set when somebody has a word for that thread.
        clock: Time.
    """

    def __init__(self, work: threading.Event, clock: Clock) -> None:
        self._work, self._clock = work, clock
        self._lines: set[Key] = set()
        self._hasty: set[Key] = set()
        self._turned_s = float("-inf")

    def add(self, key: Key, schedule: Schedule, /) -> None:
        """It is asked, from now on so."""
        self._lines.add(key)
        if min(schedule.period_s, schedule.timeout_s) < _HASTY_S:
            self._hasty.add(key)
        else:
            self._hasty.discard(key)

    def drop(self, key: Key, /) -> None:
        """It is asked no more."""
        self._lines.discard(key)
        self._hasty.discard(key)

    def turned(self) -> None:
        """All that had come is dealt with."""
        self._turned_s = self._clock.monotonic_s()

    def wait(self, end_s: float | None, /) -> None:
        """Sleep until enough may have come; a word shortens it.

        Args:
            end_s: When the next question runs out of time: what comes later must not count as in time.
        """
        word_s = until_s = self._turned_s + _BATCH_S
        if len(self._lines) >= _MANY and not self._hasty:
            until_s = self._turned_s + _LONG_BATCH_S
            if end_s is not None:
                until_s = max(word_s, min(until_s, end_s))
        early_s = until_s - self._clock.monotonic_s()
        if early_s > 0 and (until_s == word_s or self._work.wait(early_s)):
            time.sleep(max(0.0, word_s - self._clock.monotonic_s()))
