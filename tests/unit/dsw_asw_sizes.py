"""A domain whose keys have sizes, on a machine that is a dict, with everything in the test's hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from nodealloc.dsw_asw import (
    Cancel,
    Done,
    Executor,
    Outcome,
    Plan,
    Reconciler,
    Step,
    Uncertain,
    View,
    World,
)
from nodealloc.testing.dsw_asw import ManualExecutor, RecordingObserver, VirtualClock, run_to_rest

__all__ = ["Bench", "Detail", "SizeStep", "SizeView", "Sizes", "busy", "lacks"]

Detail: TypeAlias = tuple[str, int | None]
SizeStep: TypeAlias = Step[Detail]
SizeView: TypeAlias = View[str, int, int, Detail]


class Sizes:
    """Keys have sizes; a fault can be put in anywhere."""

    def __init__(self) -> None:
        self.machine: dict[str, int] = {}
        self.calls = 0
        self.plans = 0
        self.fault: Callable[[str], None] = lambda _key: None
        self.deadline_s: float | None = None
        self.subject: object = None
        self.records = True

    def plan(self, view: SizeView, /) -> Plan[int, Detail]:
        """Set what differs."""
        self.plans += 1
        if view.key == "unplannable":
            raise TypeError(view.key)
        if view.want == view.have:
            return Plan()
        step = Step(
            scope=(view.key,),
            verb="set",
            detail=(view.key, view.want),
            deadline_s=self.deadline_s,
            subject=str(self.subject),
            phase=0 if view.want is None else 1,
        )
        return Plan(steps=[step])

    def perform(self, step: SizeStep, _cancel: Cancel, /) -> None:
        """Fail if told so, or do it."""
        self.calls += 1
        key, want = step.detail
        self.fault(key)
        self.machine.pop(key, None)
        if want is not None:
            self.machine[key] = want

    def settled(self, have: int | None, step: SizeStep, outcome: Outcome[None], /) -> int | None:
        """As it was set; -1 is uncertain."""
        if isinstance(outcome, Done) and self.records:
            return step.detail[1]
        return -1 if isinstance(outcome, Uncertain) else have


class Bench:
    """A reconciler of sizes with everything in the test's hand."""

    def __init__(
        self, executor: Executor | None = None, *, domain: Sizes | None = None, **options: object
    ) -> None:
        self.desired: World[str, int] = World("desired")
        self.actual: World[str, int] = World("actual")
        self.domain = Sizes() if domain is None else domain
        self.clock = VirtualClock()
        self.executor = ManualExecutor()
        self.observer = RecordingObserver()
        self.reconciler = Reconciler(
            self.domain,
            desired=self.desired,
            actual=self.actual,
            executor=self.executor if executor is None else executor,
            clock=self.clock if executor is None else None,
            observer=self.observer,
            **options,  # type: ignore[arg-type]
        )

    def rest(self) -> None:
        """Let everything happen that is due."""
        run_to_rest(self.reconciler, self.executor, self.clock)


def busy(times: int) -> Callable[[str], None]:
    """Fail so many times, then work."""
    left = [times]

    def fault(_key: str) -> None:
        if left[0]:
            left[0] -= 1
            raise OSError("busy")

    return fault


def lacks(_key: str, want: int | None, have: int | None) -> str:
    """What the tests wait for."""
    return "" if want == have else f"has {have}, wants {want}"
