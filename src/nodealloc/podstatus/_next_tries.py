"""When containers that wait are tried next, in words that stay the same while that does."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import attrs

from nodealloc.podstatus._observed import Observed

__all__ = ["NextTries"]


class NextTries:
    """Adds to each failure when the next try may be, as a moment of the wall clock.

    A moment is worked out once for each failure: told again, it is the same second.
    """

    def __init__(self) -> None:
        self._said: dict[str, dict[tuple[str, float], str]] = {}

    def said(self, uid: str, observed: Observed, /, *, now_s: float, now_unix_s: float) -> Observed:
        """With the moment behind the message of each failure that waits for one.

        Args:
            uid: Of which pod.
            observed: What is known of it; its failures are on the engine's clock.
            now_s: The present there.
            now_unix_s: The same in Unix seconds.
        """
        before = self._said.pop(uid, {})
        failures = dict(observed.start_failures)
        said: dict[tuple[str, float], str] = {}
        for name, failure in failures.items():
            if failure.until_s is None:
                continue
            at = (name, failure.until_s)
            said[at] = before.get(at) or _moment(now_unix_s + failure.until_s - now_s)
            words = f"next try at {said[at]}"
            message = f"{failure.message}; {words}" if failure.message else words
            failures[name] = attrs.evolve(failure, message=message)
        if not said:
            return observed
        self._said[uid] = said
        return attrs.evolve(observed, start_failures=failures)

    def forget(self, uid: str, /) -> None:
        """A pod is gone."""
        self._said.pop(uid, None)


def _moment(unix_s: float) -> str:
    return datetime.fromtimestamp(math.floor(unix_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
