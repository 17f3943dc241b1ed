"""Values only: the signals that eviction watches, and what a threshold amounts to."""

from __future__ import annotations

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


def threshold_amount(text: str, capacity: Quantity, /) -> Quantity | None:
    """Amount of a hard eviction threshold, or None if it is neither amount nor percentage."""
    try:
        if not text.endswith("%"):
            amount = Quantity.parse(text)
            return amount if amount.nanos >= 0 else None
        part = Quantity.parse(text.removesuffix("%"))
    except ValueError:
        return None
    if not 0 <= part.nanos <= 100 * 10**9:
        return None
    # Whole units, as everything that is evicted for is counted in them.
    return Quantity(nanos=capacity.nanos * part.nanos // (100 * 10**18) * 10**9, format=capacity.format)
