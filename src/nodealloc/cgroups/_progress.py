"""What ended since the last report, kept as it ends, and how a removal goes that has not ended."""

from __future__ import annotations

import threading

from nodealloc.cgroups._domain import Kept, Result, Task
from nodealloc.cgroups._limits import Limits
from nodealloc.cgroups._name import CgroupName
from nodealloc.cgroups._report import Removal, RemovalState
from nodealloc.dsw_asw import Done, Failed, Failure, Observer, Outcome, Step, Summary, tell

__all__ = ["Ended", "Progress", "removal_under_way"]


class Ended:
    """What ended since the last report."""

    def __init__(self) -> None:
        self.applied: dict[CgroupName, Limits] = {}
        self.removed: dict[CgroupName, None] = {}
        self.tried: set[CgroupName] = set()


class Progress:
    """An `Observer` that keeps what the next report tells, and passes all on to another one."""

    def __init__(self, other: Observer | None) -> None:
        self._other = other
        self._lock = threading.Lock()
        self._ended = Ended()

    def take(self) -> Ended:
        """What ended since the last call."""
        with self._lock:
            taken, self._ended = self._ended, Ended()
        return taken

    def started(self, step: Step[object], /) -> None:
        """See `Observer`."""
        if self._other is not None:
            tell(self._other, lambda observer: observer.started(step))

    def ended(self, step: Step[object], outcome: Outcome[object], took_s: float, /) -> None:
        """See `Observer`."""
        task = step.detail
        if isinstance(task, Task):
            with self._lock:
                self._note(task, outcome)
        if self._other is not None:
            tell(self._other, lambda observer: observer.ended(step, outcome, took_s))

    def passed(self, summary: Summary, /) -> None:
        """See `Observer`."""
        if self._other is not None:
            tell(self._other, lambda observer: observer.passed(summary))

    def _note(self, task: Task, outcome: Outcome[object]) -> None:
        match outcome:
            case (
                Done(result=Result(applied=Limits() as applied))
                | Failed(known=Result(applied=Limits() as applied))
            ):
                self._ended.applied[task.name] = applied.over(self._ended.applied.get(task.name, Limits()))
            case Done():
                self._ended.removed[task.name] = None
            case _:
                self._ended.tried.add(task.name)


def removal_under_way(
    name: CgroupName, kept: Kept | None, failure: Failure | None, now_s: float, /, *, tried: bool, runs: bool
) -> Removal:
    """How a removal goes that has not ended."""
    if runs or failure is None:
        return Removal(name=name, state=RemovalState.IN_FLIGHT)
    return Removal(
        name=name,
        state=RemovalState.STUCK if tried else RemovalState.BACKING_OFF,
        after_s=max(0.0, failure.due_s - now_s),
        failures=failure.tries,
        stuck=kept.stuck if kept else (),
        reason=str(failure.error),
    )
