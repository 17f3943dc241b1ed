"""How often the longest tests repeat what they do."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["in_turn", "often", "stride"]

T = TypeVar("T")


def often(times: int) -> int:
    """So many times; in CI, which has half an hour for everything, a quarter of them."""
    return times // 4 if "CI" in os.environ else times


def in_turn(items: Sequence[T]) -> Sequence[T]:
    """All of them; in CI a quarter, each day another one."""
    return items[dt.datetime.now(dt.UTC).toordinal() % 4 :: 4] if "CI" in os.environ else items


def stride() -> int:
    """From one of many moments to the next that is tried: each of them; in CI every third."""
    return 3 if "CI" in os.environ else 1
