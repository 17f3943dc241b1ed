"""The life of a plugin's registration in one table."""

from __future__ import annotations

import enum

from nodealloc.dsw_asw import Transition, Transitions

__all__ = ["REGISTRATION_LIFE", "RegistrationEvent", "RegistrationState"]


class RegistrationState(enum.Enum):
    """How far a socket has come."""

    UNKNOWN = "unknown"
    """Nobody has answered there yet."""
    IDENTIFIED = "identified"
    """It has said who it is; its handler has not taken it."""
    REGISTERED = "registered"
    """Its handler has taken it."""
    UNCERTAIN = "uncertain"
    """Its handler did not return in time; whether it took it, nobody knows."""


class RegistrationEvent(enum.Enum):
    """What can happen to it."""

    ANSWERED = "answered"
    ACCEPTED = "accepted"
    OVERDUE = "overdue"
    WITHDRAWN = "withdrawn"


_S, _E = RegistrationState, RegistrationEvent

REGISTRATION_LIFE = Transitions(
    name="plugin",
    start=_S.UNKNOWN,
    rows=(
        Transition(_S.UNKNOWN, _E.ANSWERED, _S.IDENTIFIED),
        Transition(_S.IDENTIFIED, _E.ACCEPTED, _S.REGISTERED),
        Transition(_S.IDENTIFIED, _E.OVERDUE, _S.UNCERTAIN),
        Transition(_S.IDENTIFIED, _E.WITHDRAWN, _S.UNKNOWN, "gone before its handler had it"),
        Transition(_S.REGISTERED, _E.OVERDUE, _S.UNCERTAIN, "letting go takes too long"),
        Transition(_S.REGISTERED, _E.WITHDRAWN, _S.UNKNOWN),
        Transition(_S.UNCERTAIN, _E.ACCEPTED, _S.REGISTERED, "the handler came back after all"),
        Transition(_S.UNCERTAIN, _E.WITHDRAWN, _S.UNKNOWN),
    ),
)
"""What may follow what; an event that a state does not take changes nothing."""
