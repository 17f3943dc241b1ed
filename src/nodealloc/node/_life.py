"""How far a node's start has come, in one table."""

from __future__ import annotations

import enum

from nodealloc.dsw_asw import Transition, Transitions

__all__ = ["NODE_LIFE", "NodeEvent", "NodeState"]


class NodeState(enum.Enum):
    """What a node knows; only one that is ready admits what it does not hold yet."""

    NEW = "new"
    """Nothing was loaded."""
    CLEAN = "clean"
    """Everything is as it was; the store has not been written since."""
    REPORTED = "reported"
    """Something changed, and nobody has accepted it."""
    ACCEPTED = "accepted"
    """What is held is remembered; what runs is not known."""
    READY = "ready"
    """What is held and what runs are known."""


class NodeEvent(enum.Enum):
    """What can happen to it."""

    LOADED_CLEAN = "loaded clean"
    LOADED_CHANGED = "loaded changed"
    WRITTEN = "written"
    ANSWERED = "answered"


_S, _E = NodeState, NodeEvent

NODE_LIFE = Transitions(
    name="node",
    start=_S.NEW,
    rows=(
        Transition(_S.NEW, _E.LOADED_CLEAN, _S.CLEAN),
        Transition(_S.NEW, _E.LOADED_CHANGED, _S.REPORTED),
        Transition(_S.CLEAN, _E.WRITTEN, _S.ACCEPTED, "by itself, once the store can be written"),
        Transition(_S.REPORTED, _E.WRITTEN, _S.ACCEPTED, "accept() was called"),
        Transition(_S.ACCEPTED, _E.ANSWERED, _S.READY, "the runtime, once; at once where there is none"),
    ),
)
"""What may follow what; an event that a state does not take changes nothing."""
