"""The one table of a pod's life."""

from __future__ import annotations

import enum
from typing import Final

from nodealloc.dsw_asw import Transition, Transitions
from nodealloc.podfacts import LifeState

__all__ = ["POD_LIFE", "LifeEvent"]


class LifeEvent(enum.Enum):
    """What happens to a pod on its node."""

    MAY_START = "may start"
    """Nobody of its name is left, or its name does not matter."""
    END_ASKED = "end asked"
    """A source, the node or its deadline wants it to end."""
    FOUND_RUNNING = "found running"
    """Only the runtime knows it: an orphan."""
    FOUND_ENDED = "found ended"
    """It comes with a phase that is final, and nothing of it runs."""
    NOTHING_LEFT_TO_RUN = "nothing left to run"
    """Its containers have ended, and none starts again."""
    CONTAINERS_GONE = "containers gone"
    """No container of it runs, and none is being started."""
    NOTHING_TO_TAKE_BACK = "nothing to take back"
    """None runs, and nothing was ever made for it: it never started, or only the runtime knew it."""
    TAKEN_BACK = "taken back"
    """What was made for it is gone: volumes, devices, its cgroup."""


_S, _E = LifeState, LifeEvent

POD_LIFE: Final = Transitions(
    name="pod",
    start=LifeState.WAITING,
    rows=(
        Transition(
            _S.WAITING, _E.MAY_START, _S.SYNCING, "one pod of a name at a time, in the order they came"
        ),
        Transition(_S.WAITING, _E.END_ASKED, _S.TERMINATING, "nothing of it was ever started"),
        Transition(_S.WAITING, _E.FOUND_RUNNING, _S.TERMINATING, "an orphan of the runtime; nobody wants it"),
        Transition(_S.WAITING, _E.FOUND_ENDED, _S.TERMINATED, "it ended before this node knew of it"),
        Transition(_S.SYNCING, _E.END_ASKED, _S.TERMINATING),
        Transition(_S.SYNCING, _E.NOTHING_LEFT_TO_RUN, _S.TERMINATING),
        Transition(_S.TERMINATING, _E.END_ASKED, _S.TERMINATING, "the grace only shrinks"),
        Transition(_S.TERMINATING, _E.CONTAINERS_GONE, _S.TERMINATED),
        Transition(_S.TERMINATING, _E.NOTHING_TO_TAKE_BACK, _S.FINISHED),
        Transition(_S.TERMINATED, _E.TAKEN_BACK, _S.FINISHED),
    ),
)
"""How far a pod has come; an event that a state does not take changes nothing, so there is no way back."""
