"""The list of guarantees that a simulated node is held to."""

from __future__ import annotations

from nodealloc.testing.simulation.node._devices import (
    DevicesAligned,
    DevicesOnce,
    DevicesStand,
    PluginsAsked,
)
from nodealloc.testing.simulation.node._ending import (
    GraceIsGiven,
    HooksFirst,
    ImagesStay,
    RestartsWait,
    SidecarsLast,
    UnwellGo,
)
from nodealloc.testing.simulation.node._guarantee import Guarantee
from nodealloc.testing.simulation.node._holding import Aligned, BytesOnce, CpusOnce, PlacementStands
from nodealloc.testing.simulation.node._mounting import MountsAccounted, NothingIsLeft
from nodealloc.testing.simulation.node._running import (
    AttemptsOnce,
    FinishedStays,
    InitOnce,
    NothingAfterwards,
    NothingWithoutReason,
    OneCopy,
    OneDeadline,
    OneOfAName,
)
from nodealloc.testing.simulation.node._slowness import SlowCostsItself, StartupOnce
from nodealloc.testing.simulation.node._told import (
    CountsRise,
    EndsAreKept,
    ExitsAreTrue,
    NothingToldAfterwards,
    PhasesGoOn,
    ReadinessStands,
    ReadyFallsFirst,
    ReadyIsEarned,
    RefusalsAreTrue,
    RefusalsSayWhy,
    SameEnd,
    TerminalStays,
)

__all__ = ["GUARANTEES"]

GUARANTEES: tuple[type[Guarantee], ...] = (
    OneCopy,
    OneOfAName,
    AttemptsOnce,
    FinishedStays,
    InitOnce,
    NothingWithoutReason,
    OneDeadline,
    GraceIsGiven,
    HooksFirst,
    SidecarsLast,
    RestartsWait,
    UnwellGo,
    ImagesStay,
    TerminalStays,
    PhasesGoOn,
    NothingToldAfterwards,
    ReadyFallsFirst,
    ReadyIsEarned,
    ReadinessStands,
    StartupOnce,
    SlowCostsItself,
    CountsRise,
    ExitsAreTrue,
    EndsAreKept,
    NothingAfterwards,
    CpusOnce,
    BytesOnce,
    PlacementStands,
    Aligned,
    DevicesOnce,
    DevicesStand,
    DevicesAligned,
    PluginsAsked,
    MountsAccounted,
    NothingIsLeft,
    RefusalsSayWhy,
    RefusalsAreTrue,
    SameEnd,
)
"""All of them. Guarantee 5 (eviction measures again) has no room on this node yet."""
