"""How often the longest tests repeat what they do."""

from __future__ import annotations

import os

__all__ = ["often", "stride"]


def often(times: int) -> int:
    """So many times; in CI, which has half an hour for everything, a quarter of them."""
    return times // 4 if "CI" in os.environ else times


def stride() -> int:
    """From one of many moments to the next that is tried: each of them; in CI every third."""
    return 3 if "CI" in os.environ else 1
