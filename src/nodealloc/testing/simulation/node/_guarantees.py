"""The list of guarantees that a simulated node is held to."""

from __future__ import annotations

from nodealloc.testing.simulation.node._again import FailedCallsWait, FailedFetchesWait
from nodealloc.testing.simulation.node._calling_off import EndsCallOff
from nodealloc.testing.simulation.node._clearing import (
    EachIsForgotten,
    FewRecordsStay,
    NothingIsLeft,
    RecordsGoFirst,
    RestIsHad,
    StoreIsWhole,
)
from nodealloc.testing.simulation.node._conditions import ConditionsFollow
from nodealloc.testing.simulation.node._counting import ProbesCount, ProbesKeepPace
from nodealloc.testing.simulation.node._devices import (
    DevicesAligned,
    DevicesAreWell,
    DevicesComeWhole,
    DevicesOnce,
    DevicesReported,
    DevicesStand,
    PluginsAsked,
)
from nodealloc.testing.simulation.node._duties import (
    DeadlinesEnd,
    EditsAreMade,
    HooksAreRun,
    ProbesGoOn,
    RestartsCome,
    StoppedStartAgain,
)
from nodealloc.testing.simulation.node._editing import AmountsArrive, EditsTakeNothing
from nodealloc.testing.simulation.node._ending import (
    GraceIsGiven,
    HooksFirst,
    ImagesStay,
    NewestStays,
    RestartsWait,
    SidecarsLast,
    UnheardHaveTime,
    UnwellGo,
)
from nodealloc.testing.simulation.node._guarantee import Guarantee
from nodealloc.testing.simulation.node._hanging import (
    EndedHooksAreLeft,
    HooksHaveTime,
    KilledInTime,
    MountsInTime,
)
from nodealloc.testing.simulation.node._holding import (
    Aligned,
    BytesOnce,
    CpusOnce,
    FitsTheNode,
    PlacementStands,
)
from nodealloc.testing.simulation.node._in_time import (
    EndsInTime,
    HearsInTime,
    HooksOnce,
    MadeAsWanted,
    ProbesInTime,
    StrangersGo,
    UnwellGoSoon,
)
from nodealloc.testing.simulation.node._limiting import CgroupsHold
from nodealloc.testing.simulation.node._making import (
    CommandsAreTheirs,
    FetchedByPolicy,
    MadeOfTheirOwn,
    SandboxesAreTheirs,
)
from nodealloc.testing.simulation.node._mounting import MountsAccounted
from nodealloc.testing.simulation.node._names import OneOfAName, TwinsWait
from nodealloc.testing.simulation.node._news import ReasonsStay, TakenUpSoon, ToldInTime
from nodealloc.testing.simulation.node._preempting import LeastGoFirst, VictimsAreNeeded, VictimsHearWhy
from nodealloc.testing.simulation.node._readiness import ReadinessStands, ReadyFallsFirst, ReadyIsEarned
from nodealloc.testing.simulation.node._refusals import (
    CriticalsGetRoom,
    EndingIsAwaited,
    GoesOn,
    RefusalsAreTrue,
    RefusalsSayWhy,
)
from nodealloc.testing.simulation.node._running import (
    AttemptsOnce,
    DebuggedOnce,
    FinishedStays,
    InitFirst,
    InitOnce,
    NothingAfterwards,
    NothingWithoutReason,
    OneCopy,
    OneDeadline,
    PortsOnce,
)
from nodealloc.testing.simulation.node._sharing import CpusAreSpread, CpusFreeFirst, SharersMove
from nodealloc.testing.simulation.node._slowness import HooksHoldBack, SlowCostsItself, StartupFirst
from nodealloc.testing.simulation.node._standing import NothingMoves, SandboxStays, TimesStand
from nodealloc.testing.simulation.node._stated import (
    LastEndIsTold,
    LostEndIsTold,
    PhaseIsTrue,
    StartsAreCounted,
    StartupIsEarned,
    TellsOfThese,
)
from nodealloc.testing.simulation.node._statuses import (
    CountsRise,
    EndsAreKept,
    ExitsAreTrue,
    NothingToldAfterwards,
    OverStays,
    PhasesGoOn,
    SameEnd,
    TerminalStays,
)
from nodealloc.testing.simulation.node._waiting import WaitsAreTold
from nodealloc.testing.simulation.node._when_quiet import OneSandbox, OverIsOver, WantedRuns

__all__ = ["GUARANTEES"]

GUARANTEES: tuple[type[Guarantee], ...] = (
    OneCopy,
    OneOfAName,
    TwinsWait,
    AttemptsOnce,
    DebuggedOnce,
    FinishedStays,
    OverStays,
    InitFirst,
    InitOnce,
    NothingWithoutReason,
    OneDeadline,
    GraceIsGiven,
    UnheardHaveTime,
    HooksFirst,
    SidecarsLast,
    RestartsWait,
    UnwellGo,
    ImagesStay,
    NewestStays,
    TerminalStays,
    PhasesGoOn,
    NothingToldAfterwards,
    TakenUpSoon,
    ToldInTime,
    ReasonsStay,
    WaitsAreTold,
    ReadyFallsFirst,
    ReadyIsEarned,
    ReadinessStands,
    StartupFirst,
    SlowCostsItself,
    HooksHoldBack,
    HooksHaveTime,
    EndedHooksAreLeft,
    KilledInTime,
    MountsInTime,
    CountsRise,
    ExitsAreTrue,
    EndsAreKept,
    NothingAfterwards,
    FitsTheNode,
    PortsOnce,
    CpusOnce,
    CpusFreeFirst,
    CpusAreSpread,
    SharersMove,
    BytesOnce,
    PlacementStands,
    Aligned,
    DevicesOnce,
    DevicesStand,
    DevicesAreWell,
    DevicesComeWhole,
    DevicesAligned,
    DevicesReported,
    PluginsAsked,
    MountsAccounted,
    CgroupsHold,
    NothingIsLeft,
    EachIsForgotten,
    RestIsHad,
    RecordsGoFirst,
    FewRecordsStay,
    StoreIsWhole,
    RefusalsSayWhy,
    RefusalsAreTrue,
    GoesOn,
    EditsAreMade,
    AmountsArrive,
    EditsTakeNothing,
    DeadlinesEnd,
    HooksAreRun,
    ProbesGoOn,
    RestartsCome,
    StoppedStartAgain,
    WantedRuns,
    OneSandbox,
    OverIsOver,
    EndsInTime,
    HearsInTime,
    HooksOnce,
    MadeAsWanted,
    EndsCallOff,
    MadeOfTheirOwn,
    SandboxesAreTheirs,
    FetchedByPolicy,
    CommandsAreTheirs,
    ProbesInTime,
    ProbesCount,
    ProbesKeepPace,
    StrangersGo,
    UnwellGoSoon,
    PhaseIsTrue,
    ConditionsFollow,
    StartupIsEarned,
    LastEndIsTold,
    LostEndIsTold,
    StartsAreCounted,
    EndingIsAwaited,
    VictimsAreNeeded,
    LeastGoFirst,
    VictimsHearWhy,
    CriticalsGetRoom,
    NothingMoves,
    SandboxStays,
    TimesStand,
    TellsOfThese,
    SameEnd,
    FailedCallsWait,
    FailedFetchesWait,
)
"""All of them. There is no eviction by pressure, which guarantee 5 (measure again) is about."""
