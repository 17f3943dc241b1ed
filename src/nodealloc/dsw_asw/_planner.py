"""Asking the domain for plans: one key's fault is that key's alone."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar, cast

from nodealloc.dsw_asw._bookkeeping import Bookkeeping
from nodealloc.dsw_asw._dependencies import Dependencies
from nodealloc.dsw_asw._errors import BadPlanError, RestlessPlanError
from nodealloc.dsw_asw._operations import Operations
from nodealloc.dsw_asw._plans import KEEP, Plan, View
from nodealloc.dsw_asw._ports import Domain
from nodealloc.dsw_asw._records import Records
from nodealloc.dsw_asw._steps import Step
from nodealloc.dsw_asw._turn import Turn
from nodealloc.dsw_asw._world import World

__all__ = ["Planner"]

K = TypeVar("K", bound=Hashable)
W = TypeVar("W")
H = TypeVar("H")
S = TypeVar("S")
R = TypeVar("R")

_log = logging.getLogger("nodealloc.dsw_asw")

_RESTLESS = 100
"""Plans in a row that change their key's record though nothing else happened."""


class Planner(Generic[K, W, H, S, R]):
    """Plans keys of one reconciler; used by one thread at a time."""

    def __init__(
        self,
        domain: Domain[K, W, H, S, R],
        *,
        desired: World[K, W],
        records: Records[K, H],
        operations: Operations[K, S, R],
        dependencies: Dependencies[K],
        bookkeeping: Bookkeeping[K],
        plans_once: bool,
    ) -> None:
        self._plans_once = plans_once
        self._domain = domain
        self._desired = desired
        self._records = records
        self._operations = operations
        self._dependencies = dependencies
        self._bookkeeping = bookkeeping
        self._rewrites: dict[K, int] = {}

    def moved_on(self, key: K, /) -> None:
        """Something happened to a key other than its plan's own change."""
        self._rewrites.pop(key, None)

    def plan(self, key: K, turn: Turn[K, H, S], /) -> None:
        """Ask the domain, and note in `turn` what it answered."""
        want, have = self._desired.get(key), self._records.have(key)
        running = self._operations.of_key(key)
        if want is None and have is None and not running:
            self._bookkeeping.forget_key(key)
            self._dependencies.forget(key)
            self._rewrites.pop(key, None)
            return
        # A plan that raised is asked again at any change: at once, if it had changed its own record before.
        if key in self._rewrites and self._bookkeeping.is_held_off(key, _planning(key), turn.now_s):
            return
        try:
            shown = tuple([one.shown() for one in running]) if running else ()
            near = self._dependencies.look(key)
            plan = self._domain.plan(
                View(key=key, want=want, have=have, now_s=turn.now_s, running=shown, near=near)
            )
            _check(plan)
            if plan.have is not KEEP and plan.have is not have and plan.have != have:
                self._intend(key, have, plan.have, turn)
            elif self._rewrites:
                self._rewrites.pop(key, None)
        except Exception as error:  # noqa: BLE001 - one key's fault must not stop the others
            _log.exception("planning %r raised; it is planned again after a back-off", key)
            turn.count("failed")
            self._bookkeeping.hold_off(key, _planning(key), error, turn.now_s)
            return
        if self._bookkeeping.has_failures(key):
            self._bookkeeping.forget_step(key, _planning(key))
            self._bookkeeping.forget_superseded(key, plan.steps, [one.step for one in running])
        self._bookkeeping.look_again(key, plan.again_at_s, turn.now_s)
        turn.plans.append((key, plan))

    def _intend(self, key: K, have: H | None, after: H | None, turn: Turn[K, H, S]) -> None:
        if not self._plans_once:  # else each plan has a reason of its own
            times = self._rewrites[key] = self._rewrites.get(key, 0) + 1
            if times > _RESTLESS:
                raise RestlessPlanError(times)
        turn.intents[key] = (have, after)


def _planning(key: Hashable) -> Step[object]:
    """What a fault of `plan` is counted under."""
    return Step(scope=(key,), verb="plan", detail=None)


def _check(plan: object) -> None:
    if not isinstance(plan, Plan):
        raise BadPlanError(plan)
    given = cast("Plan[object, object]", plan)
    for step in cast("Sequence[object]", given.steps):
        if not isinstance(step, Step):
            raise BadPlanError(step)
