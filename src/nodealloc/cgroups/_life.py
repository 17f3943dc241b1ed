"""The life of one cgroup in one table."""

from __future__ import annotations

import enum

from nodealloc.dsw_asw import Transition, Transitions

__all__ = ["CGROUP_LIFE", "CgroupEvent", "CgroupState"]


class CgroupState(enum.Enum):
    """What is known of a cgroup."""

    ABSENT = "absent"
    """It is not there, as far as anybody looked."""
    PRESENT = "present"
    """It is there, with the limits that were asked for last."""
    STUCK = "stuck"
    """It was to go, and something in it does not."""


class CgroupEvent(enum.Enum):
    """What can happen to it."""

    FOUND = "found"
    """The tree was read, and it is there."""
    WRITTEN = "written"
    """It was made, or its limits were written."""
    LOST = "lost"
    """Somebody else removed it."""
    REMOVED = "removed"
    """All in it was killed, and it was removed."""
    RESISTED = "resisted"
    """It could not be removed."""


_S, _E = CgroupState, CgroupEvent

CGROUP_LIFE = Transitions(
    name="cgroup",
    start=_S.ABSENT,
    rows=(
        Transition(_S.ABSENT, _E.FOUND, _S.PRESENT, "made by an earlier life, or by somebody else"),
        Transition(_S.ABSENT, _E.WRITTEN, _S.PRESENT),
        Transition(_S.PRESENT, _E.WRITTEN, _S.PRESENT, "a limit changed"),
        Transition(_S.PRESENT, _E.LOST, _S.ABSENT),
        Transition(_S.PRESENT, _E.REMOVED, _S.ABSENT),
        Transition(_S.PRESENT, _E.RESISTED, _S.STUCK),
        Transition(_S.STUCK, _E.WRITTEN, _S.PRESENT, "the same pod is wanted again"),
        Transition(_S.STUCK, _E.LOST, _S.ABSENT),
        Transition(_S.STUCK, _E.REMOVED, _S.ABSENT),
        Transition(_S.STUCK, _E.RESISTED, _S.STUCK, "tried again later, and later"),
    ),
)
"""What may follow what; an event that a state does not take changes nothing."""
