"""How often the longest tests repeat what they do."""

from __future__ import annotations

import os

__all__ = ["often"]


def often(times: int) -> int:
    """So many times; in CI, which has half an hour for everything, a quarter of them."""
    return times // 4 if "CI" in os.environ else times
