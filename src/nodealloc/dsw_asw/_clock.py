"""The machine's clock."""

from __future__ import annotations

import time

__all__ = ["SystemClock"]


class SystemClock:
    """The machine's monotonic clock."""

    def monotonic_s(self) -> float:
        """Seconds since some fixed moment."""
        return time.monotonic()
