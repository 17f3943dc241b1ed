"""The engines behind `PodLives`: for lives, for orphans, for facts."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, cast

from nodealloc import _attrs as attrs
from nodealloc._back_off import BackOff
from nodealloc.checkpoint import JsonCheckpoint
from nodealloc.dsw_asw import (
    Clock,
    Executor,
    FewAtOnce,
    Journal,
    Near,
    Observer,
    Reconciler,
    Remember,
    Step,
    SystemClock,
    ThreadExecutor,
    World,
)
from nodealloc.podlife._arrivals import Orphans
from nodealloc.podlife._details import Acted, Detail, MakeReady
from nodealloc.podlife._domain import Lives, Nears
from nodealloc.podlife._facts import Facts, PodFacts
from nodealloc.podlife._in_order import InOrder
from nodealloc.podlife._listings import Listings
from nodealloc.podlife._ports import LifeTold, LifeVerdicts, Preparation
from nodealloc.podlife._record import PodRecord
from nodealloc.podlife._rules import Rules
from nodealloc.podlife._wanted import PodWanted
from nodealloc.podlife._worlds import HEARD, Worlds
from nodealloc.runtime import PodListing, RuntimeWatch

__all__ = [
    "EngineParts",
    "LifeEngine",
    "facts_engine",
    "life_engine",
    "nears_of",
    "orphans_engine",
]

LifeEngine: TypeAlias = Reconciler[str, PodWanted, PodRecord, Detail, Acted]
Rows: TypeAlias = Callable[[str, "PodRecord | None"], "Mapping[str, JsonCheckpoint | None]"]


@attrs.frozen(kw_only=True, eq=False)
class EngineParts:
    """What all engines run on; `take_up_s` is of lives: one that waits for its turn is not lost.

    `in_order` is there with threads of one's own: calls of others may run in any order, on one thread.
    """

    executor: Executor
    clock: Clock
    observer: Observer | None = None
    take_up_s: float | None = None
    in_order: InOrder | None = None

    @classmethod
    def of(
        cls,
        executor: Executor | None,
        clock: Clock | None,
        observer: Observer | None,
        /,
        *,
        preparations: Sequence[Preparation],
    ) -> EngineParts:
        """With threads of their own, and the clock of this machine, where none is given."""
        threads = _threads() if executor is None else executor
        parts = [] if executor is not None else [one.name for one in preparations if one.in_order]
        in_order = InOrder(threads, part=parts[0]) if parts else None
        return cls(
            executor=in_order or threads,
            in_order=in_order,
            take_up_s=None if executor is None else 60.0,
            clock=SystemClock() if clock is None else clock,
            observer=observer,
        )


_BATCH: Final = 8
"""Pods that one pass plans at most: the first of many are on their way while others are planned."""
_BURST: Final = 32
"""The same of very many, as of thousands that are refused: what they do is committed together."""
_TRIES_AGAIN: Final = BackOff(max_s=15.0)
"""What a sandbox or a container lacked may be there by now: a kubelet looks each 10 to 15 s."""
_STARTS: Final = {"start": 1, "make": 1, "run sandbox": 2}
"""What burdens a machine: containers before further sandboxes, so that pods are up one after the other."""


def _threads() -> Executor:
    """A thread for each call; of what burdens the machine twice as many at once as there are CPUs."""
    most = 2 * len(os.sched_getaffinity(0))
    starts = FewAtOnce(ThreadExecutor("pods"), most=most, burdens=lambda step: _STARTS.get(step.verb, 0))
    # The first pods go on to their sandboxes while others are made ready, and not all of them in step.
    return FewAtOnce(starts, most=most, burdens=_place_of_parts, held_s=0.1)


def _place_of_parts(step: Step[object]) -> int:
    """Parts of a pod before those of one for which nothing was made yet."""
    if not isinstance(step.detail, MakeReady):
        return 0
    return 2 if step.detail.new else 1


def nears_of(
    worlds: Worlds,
    watch: RuntimeWatch,
    listings: Listings,
    probes: World[str, LifeVerdicts] | None,
    told: World[str, LifeTold] | None,
) -> Nears:
    """What plans look at beside their pod."""
    return Nears(
        known=Near(watch.pods, _same),
        seen=Near(watch.seen, _same),
        listed=Near(listings.world, listings.keys_of),
        lines=Near(worlds.lines, worlds.names_of),
        verdicts=None if probes is None else Near(probes, _same),
        # Each status that is told, or decided, changes it: most of them matter to nobody here.
        told=None if told is None else Near(told, _same, lambda one: (one.is_told_unready, one.is_over)),
    )


def life_engine(
    lives: Lives,
    worlds: Worlds,
    nears: Nears,
    preparations: Sequence[Preparation],
    shared: EngineParts,
    *,
    journal: Journal[JsonCheckpoint] | None,
    rows: Rows,
) -> LifeEngine:
    """Brings pods through their lives."""
    parts = {id(one.wakes): one.wakes for one in preparations if one.wakes is not None}
    return Reconciler(
        lives,
        desired=worlds.wanted,
        actual=worlds.pods,
        executor=shared.executor,
        near=[
            *_all(nears.known, nears.seen, nears.listed, nears.lines),
            *_all(*(one for one in (nears.verdicts, nears.told) if one is not None)),
            *(Near(one, _same) for one in parts.values()),
        ],
        remember=None if journal is None else Remember(journal=journal, rows=rows),
        clock=shared.clock,
        take_up_s=shared.take_up_s,
        back_off=_TRIES_AGAIN,
        plans_once=True,
        batch=_BATCH,
        burst=_BURST,
        observer=shared.observer,
        name="pods",
    )


def orphans_engine(
    worlds: Worlds,
    seen: World[str, PodListing],
    adopt: Callable[[PodListing], None],
    shared: EngineParts,
    rules: Rules,
) -> Reconciler[str, PodListing, bool, PodListing]:
    """Takes up what only the runtime knows."""
    heard: Near[str, str, int] = Near(worlds.heard, lambda _: (HEARD,))
    wanted = Near(worlds.wanted, _same, _is_there)
    return Reconciler(
        Orphans(adopt, wanted, heard, rules),
        desired=seen,
        actual=World[str, bool]("orphans"),
        executor=shared.executor,
        near=_all(wanted, heard),
        clock=shared.clock,
        name="orphans",
    )


def facts_engine(
    worlds: Worlds, nears: Nears, shared: EngineParts, rules: Rules
) -> Reconciler[str, PodRecord, PodFacts]:
    """Derives facts from what is remembered."""
    return Reconciler(
        Facts(nears.known, rules),
        desired=worlds.pods,
        actual=worlds.facts,
        executor=shared.executor,
        near=[nears.known],
        clock=shared.clock,
        plans_once=True,
        name="facts",
    )


def _same(uid: str) -> tuple[str, ...]:
    return (uid,)


def _is_there(_wanted: object) -> bool:
    """Orphans are not wanted: how others are does not matter."""
    return True


def _all(*nears: object) -> list[Near[str, str, object]]:
    return cast("list[Near[str, str, object]]", list(nears))
