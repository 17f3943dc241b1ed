"""How many containers are killed for their health within a window."""

from __future__ import annotations

from collections import deque

__all__ = ["Budget"]


class Budget:
    """Counts the verdicts that kill; not thread-safe.

    Args:
        most: In a window; None for any number.
        window_s: How long the window is, in seconds.
    """

    def __init__(self, most: int | None, window_s: float) -> None:
        self._most = most
        self._window_s = window_s
        self._spent: deque[float] = deque()

    def spend(self, now_s: float, /) -> bool:
        """Take one, where there is one left at this moment."""
        if self._most is None:
            return True
        while self._spent and now_s - self._spent[0] >= self._window_s:
            self._spent.popleft()
        if len(self._spent) >= self._most:
            return False
        self._spent.append(now_s)
        return True
