"""A device plugin's life in one table; the only place that says what may follow what."""

from __future__ import annotations

import enum

from nodealloc.dsw_asw import Transition, Transitions

__all__ = ["DEVICE_LIFE", "Phase", "PluginEvent"]


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


class PluginEvent(enum.Enum):
    """What can happen to it."""

    REGISTERED = "registered"
    """It registered, for the first time or again."""
    LISTED = "listed"
    """A full list of devices came."""
    ENDED = "ended"
    """The stream ended, the connection failed, or the plugin was deregistered."""
    GRACE_OVER = "grace over"
    """The grace period ran out without a new registration."""


_S, _E = Phase, PluginEvent

DEVICE_LIFE = Transitions(
    name="plugin",
    start=_S.AWAITED,
    rows=(
        Transition(_S.AWAITED, _E.REGISTERED, _S.CONNECTING),
        Transition(_S.AWAITED, _E.GRACE_OVER, _S.GONE, "it did not come back after the restart"),
        Transition(_S.CONNECTING, _E.REGISTERED, _S.CONNECTING, "another registration counts from here on"),
        Transition(_S.CONNECTING, _E.LISTED, _S.SERVING),
        Transition(_S.CONNECTING, _E.ENDED, _S.LOST),
        Transition(_S.SERVING, _E.REGISTERED, _S.CONNECTING, "the newcomer's own list is still to come"),
        Transition(_S.SERVING, _E.LISTED, _S.SERVING, "each list takes the place of the one before"),
        Transition(_S.SERVING, _E.ENDED, _S.LOST),
        Transition(_S.LOST, _E.REGISTERED, _S.CONNECTING),
        Transition(_S.LOST, _E.GRACE_OVER, _S.GONE),
        Transition(_S.GONE, _E.REGISTERED, _S.CONNECTING),
    ),
)
"""Where each event leads; one that a phase does not take changes nothing."""
