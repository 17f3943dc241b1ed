"""What time brings to the whole shell: looks at its own socket, and the end of waiting for strangers."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from nodealloc.devices._allocator import DeviceAllocator
from nodealloc.devices._ports import AllocatorKeeper
from nodealloc.dsw_asw import (
    Cancel,
    Clock,
    Done,
    Executor,
    Failed,
    Outcome,
    Plan,
    Reconciler,
    Step,
    View,
    World,
)
from nodealloc.errors import RetryableError, UncertainError

__all__ = ["PeriodicLooks"]

_OWN, _STRANGERS = "own socket", "strangers"


class _Domain:
    """A `Domain`: wanted are the moments at which something was due first, there is when it was done last."""

    def __init__(self, keeper: AllocatorKeeper, look: Callable[[], None], look_s: float) -> None:
        self._keeper = keeper
        self._look = look
        self._look_s = look_s

    def plan(self, view: View[str, float, float, str], /) -> Plan[float, str]:
        """Look every so often; wait for strangers once."""
        if view.want is None:
            return Plan(have=None)
        due_s = view.want
        if view.have is not None:
            if view.key == _STRANGERS:
                return Plan()
            due_s = view.have + self._look_s
        if view.now_s < due_s:
            return Plan(again_at_s=due_s)
        return Plan(steps=[Step(scope=(view.key,), verb="observe", detail=view.key)])

    def perform(self, step: Step[str], _cancel: Cancel, /) -> None | Failed[None]:
        """Look, or wait no more."""
        if step.detail == _OWN:
            self._look()
            return None
        try:
            self._keeper.alter(_awaiting_nobody)
        except (RetryableError, UncertainError) as error:
            return Failed(error, again_after_s=max(error.after_s, self._look_s))
        return None

    def settled(self, have: float | None, _step: Step[str], outcome: Outcome[None], /) -> float | None:
        """When it was done."""
        return outcome.ended_s if isinstance(outcome, Done) else have


class PeriodicLooks:
    """Looks now and then, and ends the waiting for plugins that nobody knows.

    Args:
        keeper: Holds the allocator.
        look: Looks at the own socket, and at what the keeper knows.
        executor: Runs looks.
        clock: Time.
        look_s: Between two looks.

    Attributes:
        engine: Does it.
    """

    def __init__(
        self,
        keeper: AllocatorKeeper,
        look: Callable[[], None],
        executor: Executor,
        clock: Clock,
        *,
        look_s: float,
    ) -> None:
        self._clock = clock
        self._look_s = look_s
        self._due: World[str, float] = World("device plugin looks")
        self.engine: Reconciler[str, float, float, str] = Reconciler(
            _Domain(keeper, look, look_s),
            desired=self._due,
            actual=World("device plugin looks done"),
            executor=executor,
            clock=clock,
            name="device plugin looks",
        )

    def begin(self, await_s: float | None, /) -> None:
        """From now on.

        Args:
            await_s: For how long plugins may come that nobody knows yet; None for ever.
        """
        now_s = self._clock.monotonic_s()
        self._due.put(_OWN, now_s + self._look_s, by="start")
        if await_s is not None:
            self._due.put(_STRANGERS, now_s + await_s, by="start")


def _awaiting_nobody(allocator: DeviceAllocator) -> DeviceAllocator:
    return allocator if allocator.awaited == frozenset() else attrs.evolve(allocator, awaited=frozenset())
