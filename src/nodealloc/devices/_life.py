"""A device plugin's life in one table; the only place that says what may follow what."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["LIFE", "Happening", "Phase"]


class Phase(enum.Enum):
    """How far a resource's plugin has come."""

    AWAITED = "awaited"
    """Known from before the restart; the plugin has not been seen since."""
    CONNECTING = "connecting"
    """Registered; its first list of devices is still to come."""
    SERVING = "serving"
    """Its list of devices is current."""
    LOST = "lost"
    """Its stream ended: devices are unhealthy, grants stand, the grace period runs."""
    GONE = "gone"
    """The grace period is over: capacity is zero, grants stand."""


class Happening(enum.Enum):
    """What can happen to it."""

    REGISTERED = "registered"
    """It registered, for the first time or again."""
    LISTED = "listed"
    """A full list of devices came."""
    ENDED = "ended"
    """The stream ended, the connection failed, or the plugin was deregistered."""
    GRACE_OVER = "grace over"
    """The grace period ran out without a new registration."""


LIFE: Mapping[tuple[Phase, Happening], Phase] = MappingProxyType(
    {
        (Phase.AWAITED, Happening.REGISTERED): Phase.CONNECTING,
        (Phase.AWAITED, Happening.GRACE_OVER): Phase.GONE,
        (Phase.CONNECTING, Happening.REGISTERED): Phase.CONNECTING,
        (Phase.CONNECTING, Happening.LISTED): Phase.SERVING,
        (Phase.CONNECTING, Happening.ENDED): Phase.LOST,
        (Phase.SERVING, Happening.REGISTERED): Phase.CONNECTING,
        (Phase.SERVING, Happening.LISTED): Phase.SERVING,
        (Phase.SERVING, Happening.ENDED): Phase.LOST,
        (Phase.LOST, Happening.REGISTERED): Phase.CONNECTING,
        (Phase.LOST, Happening.GRACE_OVER): Phase.GONE,
        (Phase.GONE, Happening.REGISTERED): Phase.CONNECTING,
    }
)
"""Where each happening leads; a pair that is not here changes nothing."""
