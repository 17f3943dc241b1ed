"""Values only: the signals that eviction watches, and what a threshold amounts to."""

from __future__ import annotations

import re
import struct
from typing import Final

from nodealloc.podspec import Quantity

__all__ = ["EVICTION_SIGNALS", "SIGNALS", "threshold_amount"]

EVICTION_SIGNALS: Final = {"memory.available": "memory", "nodefs.available": "ephemeral-storage"}
"""Hard eviction thresholds that are held back, and from which resource."""

SIGNALS: Final = frozenset(
    {*EVICTION_SIGNALS, "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree"}
    | {"containerfs.available", "containerfs.inodesFree", "allocatableMemory.available", "pid.available"}
)
"""All signals that the kubelet knows."""


_OFF: Final = "100"
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)


def threshold_amount(text: str, capacity: Quantity, /) -> Quantity | None:
    """Amount of a hard eviction threshold, or None if it is neither percentage nor amount above 0.

    Nothing is `0%`, and so is `100%`, which is written to have none. A percentage is a number of
    single precision, as recorded: 10% of 17179869184 is 1717986944.
    """
    if not text.endswith("%"):
        try:
            amount = Quantity.parse(text)
        except ValueError:
            return None
        return amount if amount.nanos > 0 else None
    percent = text.removesuffix("%")
    if percent == _OFF:
        return Quantity(format=capacity.format)
    if not _NUMBER.fullmatch(percent) or not 0 <= float(percent) <= 100:
        return None
    part = _single(_single(float(percent)) / 100)
    # Whole units, as everything that is evicted for is counted in them.
    return Quantity(nanos=int(capacity.value * part) * 10**9, format=capacity.format)


def _single(value: float) -> float:
    """The nearest number of single precision."""
    return float(struct.unpack("f", struct.pack("f", value))[0])
