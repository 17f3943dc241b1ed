"""Durations as Go writes them."""

from __future__ import annotations

import re
from typing import Final

from nodealloc._typed import typed
from nodealloc.errors import ConfigurationError

__all__ = ["duration_s", "is_zero"]

_UNITS_S: Final = {
    "h": 3600.0,
    "m": 60.0,
    "s": 1.0,
    "ms": 0.001,
    "us": 1e-6,
    "\u00b5s": 1e-6,
    "\u03bcs": 1e-6,
    "ns": 1e-9,
}
"""The sign for micro has two places in Unicode."""
_MOST_S: Final = 9_223_372_036.0
"""Go counts nanoseconds in 63 bits."""
_PART: Final = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(h|ms|m|s|us|\u00b5s|\u03bcs|ns)")


@typed
def duration_s(text: str, /) -> float:
    """A duration such as `1m30s`, in seconds; `0` needs no unit.

    Raises:
        ConfigurationError: It is none, a negative one, or longer than 2562047 hours.

    Source: Go ``time.ParseDuration``, without signs.

    >>> duration_s("1m30s"), duration_s("500ms")
    (90.0, 0.5)
    """
    parts = _PART.findall(text)
    if text != "0" and (not parts or "".join(map("".join, parts)) != text):
        raise ConfigurationError(f"{text[:40]!r} is no duration; write 90s, 1m30s, 500ms")
    found = sum(float(number) * _UNITS_S[unit] for number, unit in parts)
    if found > _MOST_S:
        raise ConfigurationError(f"{text[:40]!r} is longer than any duration; write 2562047h at most")
    return found


def is_zero(text: str, /) -> bool:
    """Whether a text is a duration of nothing, however it is written; Go cuts off what is below 1 ns."""
    try:
        return duration_s(text) < _UNITS_S["ns"]
    except ConfigurationError:
        return False
