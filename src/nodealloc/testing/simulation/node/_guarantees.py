"""The list of guarantees that a simulated node is held to."""

from __future__ import annotations

from nodealloc.testing.simulation.node._ending import GraceIsGiven, HooksFirst, ImagesStay, RestartsWait
from nodealloc.testing.simulation.node._guarantee import Guarantee
from nodealloc.testing.simulation.node._holding import CpusOnce, PlacementStands
from nodealloc.testing.simulation.node._mounting import MountsAccounted
from nodealloc.testing.simulation.node._running import (
    AttemptsOnce,
    FinishedStays,
    InitOnce,
    NothingAfterwards,
    NothingWithoutReason,
    OneCopy,
    OneDeadline,
)
from nodealloc.testing.simulation.node._told import (
    CountsRise,
    ExitsAreTrue,
    NothingToldAfterwards,
    PhasesGoOn,
    ReadinessStands,
    ReadyFallsFirst,
    RefusalsSayWhy,
    SameEnd,
    TerminalStays,
)

__all__ = ["GUARANTEES"]

GUARANTEES: tuple[type[Guarantee], ...] = (
    OneCopy,
    AttemptsOnce,
    FinishedStays,
    InitOnce,
    NothingWithoutReason,
    OneDeadline,
    GraceIsGiven,
    HooksFirst,
    RestartsWait,
    ImagesStay,
    TerminalStays,
    PhasesGoOn,
    NothingToldAfterwards,
    ReadyFallsFirst,
    ReadinessStands,
    CountsRise,
    ExitsAreTrue,
    NothingAfterwards,
    CpusOnce,
    PlacementStands,
    MountsAccounted,
    RefusalsSayWhy,
    SameEnd,
)
"""All of them. Guarantee 5 (eviction measures again) has no room on this node yet."""
