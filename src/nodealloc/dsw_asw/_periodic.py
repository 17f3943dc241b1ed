"""Work that time alone brings: a call each so often, on an engine like all other work."""

from __future__ import annotations

import math
from collections.abc import Callable

from nodealloc._arguments import wrong
from nodealloc._typed import typed
from nodealloc.dsw_asw._clock import SystemClock
from nodealloc.dsw_asw._executors import ThreadExecutor
from nodealloc.dsw_asw._plans import Plan, View
from nodealloc.dsw_asw._ports import Cancel, Clock, Executor
from nodealloc.dsw_asw._reconciler import Reconciler
from nodealloc.dsw_asw._steps import Done, Outcome, Step
from nodealloc.dsw_asw._world import World

__all__ = ["Periodic"]


class _Turns:
    """A `Domain` of one key: there is the number of the turn that comes next."""

    def __init__(self, look: Callable[[int], object], began_s: float, every_s: float) -> None:
        self._look, self._began_s, self._every_s = look, began_s, every_s

    def plan(self, view: View[str, bool, int, int], /) -> Plan[int, int]:
        due_s = self._began_s + (view.have or 0) * self._every_s
        if view.running:
            return Plan()
        if view.now_s < due_s:
            return Plan(again_at_s=due_s)
        turn = math.floor((view.now_s - self._began_s) / self._every_s)
        return Plan(steps=[Step(scope=(view.key,), verb="look", detail=max(turn, view.have or 0))])

    def perform(self, step: Step[int], _cancel: Cancel, /) -> None:
        self._look(step.detail)

    def settled(self, have: int | None, step: Step[int], outcome: Outcome[None], /) -> int | None:
        return step.detail + 1 if isinstance(outcome, Done) else have


class Periodic(Reconciler[str, bool, int, int, None]):
    """Calls something each so often: never two calls at a time, and a turn that was slept over is left out.

    A call that raises is made again after its back-off.

    Args:
        look: Is called with the number of its turn, counted in periods from the first one, 0.
        every_s: Seconds from one turn to the next; more than 0.
        first_s: Seconds to the first turn.
        executor: Runs the calls; by default a thread for each.
        clock: Time.
        name: For threads and messages.

    Raises:
        ConfigurationError: A period that is not above 0.

    Example:
        >>> from nodealloc.dsw_asw import InlineExecutor
        >>> turns: list[int] = []
        >>> looks = Periodic(turns.append, every_s=60.0, executor=InlineExecutor(), name="looks")
        >>> looks.run_until_quiet().done, turns
        (1, [0])

    Source: ours.
    """

    @typed
    def __init__(
        self,
        look: Callable[[int], object],
        *,
        every_s: float,
        first_s: float = 0.0,
        executor: Executor | None = None,
        clock: Clock | None = None,
        name: str,
    ) -> None:
        if not (math.isfinite(every_s) and every_s > 0):
            raise wrong("Periodic.every_s", every_s, "seconds above 0")
        timed: Clock = SystemClock() if clock is None else clock
        wanted: World[str, bool] = World(name)
        wanted.put(name, True)  # noqa: FBT003 - a world takes any value
        super().__init__(
            _Turns(look, timed.monotonic_s() + first_s, every_s),
            desired=wanted,
            actual=World[str, int](f"turns of {name}"),
            executor=ThreadExecutor(name) if executor is None else executor,
            clock=timed,
            resync_s=None,
            name=name,
        )
