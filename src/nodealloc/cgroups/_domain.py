"""The rules: from limits that are wanted to cgroups that have them, a cgroup at a time; `plan` is pure."""

from __future__ import annotations

import enum
import errno
from collections.abc import Hashable
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc.cgroups._convert import PERIOD_US
from nodealloc.cgroups._errors import (
    CgroupAbsentError,
    CgroupBusyError,
    LimitRefusedError,
    MemoryInUseError,
    Process,
    QuotaInUseError,
)
from nodealloc.cgroups._life import CGROUP_LIFE, CgroupEvent, CgroupState
from nodealloc.cgroups._limits import NO_LIMIT, Limits
from nodealloc.cgroups._name import CgroupName
from nodealloc.cgroups._ports import TreeDriver
from nodealloc.cgroups._qos_tree import change_of
from nodealloc.dsw_asw import Cancel, Done, Failed, Near, Outcome, Plan, Step, View, World
from nodealloc.errors import NodeallocError

__all__ = ["APPLY", "LEAVE", "REMOVE", "Cgroups", "Kept", "Leave", "Result", "Task"]

APPLY, REMOVE = "apply", "remove"
_E = CgroupEvent


class Leave(enum.Enum):
    """One value, `LEAVE`: the cgroup stays as it is, neither written nor removed."""

    LEAVE = "leave"


LEAVE: Final = Leave.LEAVE


@attrs.frozen(kw_only=True)
class Kept:
    """What is known of a cgroup that is there.

    Attributes:
        state: Where its life stands; one that is absent has no record.
        asked: Limits that were asked for and are there.
        is_pod: Whether it is a pod's, and goes when nobody wants it.
        stuck: Processes that SIGKILL did not end.
    """

    state: CgroupState
    asked: Limits = Limits()
    is_pod: bool = False
    stuck: tuple[Process, ...] = ()

    def after(self, event: CgroupEvent, /, asked: Limits, stuck: tuple[Process, ...] = ()) -> Kept | None:
        """The same after an event; None where it is absent then."""
        state = CGROUP_LIFE.after(self.state, event)
        return (
            None if state is CgroupState.ABSENT else attrs.evolve(self, state=state, asked=asked, stuck=stuck)
        )

    def without_limits(self) -> Kept:
        """The same, with nothing known of its limits: they are written in full."""
        return attrs.evolve(self, asked=Limits())


@attrs.frozen(kw_only=True)
class Task:
    """What a step needs.

    Attributes:
        name: The cgroup.
        whole: All limits that it is to have; None to remove it.
        change: What is new of them.
        is_known: Whether it is believed to be there.
    """

    name: CgroupName
    whole: Limits | None = None
    change: Limits = Limits()
    is_known: bool = False


@attrs.frozen(kw_only=True)
class Result:
    """What a step brought, done or not.

    Attributes:
        applied: Limits that were written; None for none.
        stuck: Processes that SIGKILL did not end.
    """

    applied: Limits | None = None
    stuck: tuple[Process, ...] = ()


class Cgroups:
    """A `Domain` of `nodealloc.dsw_asw`: wanted are limits by cgroup, there is what was written.

    A cgroup is made once its parent is there. What stands in nobody's way is
    left alone: other people's limits, and cgroups that are no pod's.

    Args:
        driver: Writes.
        root: Cgroup of all pods.
        classes: Cgroups of the classes below it, whose memory limit waits at what is used.
        kept: What is there; cgroups that somebody else removed are dropped from it.

    Attributes:
        above: Cgroups that others stand below, of those that are there. Told apart
            from their limits, whose changes are no reason to look at a thousand pods.
        parents: Where a plan sees whether its parent is there.
    """

    def __init__(
        self,
        driver: TreeDriver,
        root: CgroupName,
        classes: frozenset[CgroupName],
        kept: World[CgroupName, Kept],
    ) -> None:
        self._driver = driver
        self._root = root
        self._classes = classes
        self._kept = kept
        self.above: World[CgroupName, CgroupState] = World("cgroups above others")
        self.parents: Near[CgroupName, CgroupName, CgroupState] = Near(self.above, lambda name: [name.parent])

    def plan(self, view: View[CgroupName, Limits | Leave, Kept, Task], /) -> Plan[Kept, Task]:
        """Write what is new, where the parent is there; remove pods that nobody wants."""
        name, want, have = view.key, view.want, view.have
        if want is LEAVE:
            return Plan()
        if want is None:
            if have is None or not have.is_pod:
                return Plan()
            return Plan(steps=[Step(scope=(name,), verb=REMOVE, detail=Task(name=name))])
        if name != self._root and name.parent not in view.of(self.parents):
            return Plan()
        before = have.asked if have is not None and have.state is CgroupState.PRESENT else None
        change = want if before is None else change_of(want, before)
        if before is not None and not change:
            return Plan()
        task = Task(name=name, whole=want, change=change, is_known=have is not None)
        return Plan(
            steps=[
                Step(scope=(name,), verb=APPLY, detail=task, phase=len(name.parts), subject=_subject(want))
            ]
        )

    def perform(self, step: Step[Task], _cancel: Cancel, /) -> Result | Failed[Result]:
        """Write, or kill and remove."""
        task = step.detail
        return self._remove(task.name) if task.whole is None else self._apply(task, task.whole)

    def settled(self, have: Kept | None, step: Step[Task], outcome: Outcome[Result], /) -> Kept | None:
        """What is there after a step."""
        task = step.detail
        is_pod = task.name != self._root and task.name not in self._classes
        known = have or Kept(state=CgroupState.ABSENT, is_pod=is_pod)
        match outcome:
            case Done(result=Result(applied=Limits() as applied)):
                before = known.asked if task.is_known else Limits()
                return known.after(_E.WRITTEN, applied.over(before))
            case Failed(known=Result(applied=Limits() as applied)):  # as far as it goes
                return known.after(_E.WRITTEN, applied.over(known.asked))
            case Done():
                return known.after(_E.REMOVED, Limits())
            case Failed(known=Result() as result):
                return known.after(_E.RESISTED, Limits(), result.stuck)
            case _:
                return have

    def lost(self, gone: CgroupName, /) -> bool:
        """Somebody removed a cgroup, and with it all below: they are to be written in full."""
        names = [name for name in self._kept.snapshot() if name == gone or name.is_below(gone)]
        for name in names:
            self.above.drop(name, by="lost")
            self._kept.alter(name, lambda kept: kept and kept.after(_E.LOST, Limits()), by="lost")
        return bool(names)

    def _remove(self, name: CgroupName) -> Result | Failed[Result]:
        stuck: tuple[Process, ...] = ()
        try:
            stuck = self._driver.kill(name)
            self._driver.remove(name)
        except CgroupBusyError as error:
            return Failed(error, known=Result(stuck=error.processes or stuck))
        except NodeallocError as error:
            return Failed(error, known=Result(stuck=stuck))
        return Result()

    def _apply(self, task: Task, whole: Limits) -> Result | Failed[Result]:
        name, change = task.name, task.change
        if task.is_known and self._driver.read(name) is None:
            # Somebody removed it; made anew with the change alone, it would lack all other limits.
            change = whole
        fault = self._below_usage(name, change) if task.is_known else None
        if fault is not None:
            if name not in self._classes:
                raise fault
            change = attrs.evolve(change, memory_bytes=fault.used_bytes)
        try:
            self._driver.apply(name, change)
        except CgroupAbsentError as error:
            if self.lost(error.name):
                return Failed(error, again_after_s=0.0)  # it is made anew first
            raise
        except LimitRefusedError as refused:
            if not (task.is_known and self._lowers_quota(name, change, refused)):
                if name == self._root or name in self._classes or self._driver.read(name) is None:
                    raise
                # It is there, and which limits it has is not known: it goes when nobody wants it any more.
                return Failed(refused, known=Result(applied=Limits()))
            # Containers are changed once their pod may come in: what it waits for is their quota alone.
            wanted_us = change.cpu_quota_us or 0
            change = change.only(change.asked.keys() - {"cpu_quota_us"})
            self._driver.apply(name, change)
            return Failed(QuotaInUseError(name, wanted_us), known=Result(applied=change))
        if name == self._root or name in self._classes:
            self.above.put(name, CgroupState.PRESENT, by="apply")
        result = Result(applied=change)
        return result if fault is None else Failed(fault, known=result)

    def _lowers_quota(self, name: CgroupName, change: Limits, refused: LimitRefusedError) -> bool:
        """Whether v1 refused a quota that is less than before: it takes none below one further down."""
        is_quota = refused.errno == errno.EINVAL and refused.path.endswith("/cpu.cfs_quota_us")
        had, wanted_us = self._driver.read(name), change.cpu_quota_us
        if not is_quota or had is None or wanted_us is None or had.cpu_quota_us is None:
            return False
        had_us, had_period_us = had.cpu_quota_us, had.cpu_period_us or PERIOD_US
        return had_us == NO_LIMIT or wanted_us * had_period_us < had_us * (change.cpu_period_us or PERIOD_US)

    def _below_usage(self, name: CgroupName, change: Limits) -> MemoryInUseError | None:
        """A memory limit below what is used would have the kernel kill in the cgroup, or refuse."""
        if change.memory_bytes is None or change.memory_bytes < 0:
            return None
        try:
            used = self._driver.stats(name).memory_bytes or 0
        except CgroupAbsentError:  # a crash left it in some hierarchies only; it is about to be completed
            return None
        return MemoryInUseError(name, change.memory_bytes, used) if change.memory_bytes < used else None


def _subject(limits: Limits) -> Hashable:
    """What tells limits apart: others than those that were refused are tried at once."""
    pages = tuple(sorted(limits.hugepage_bytes.items()))
    return pages, tuple((name, value) for name, value in limits.asked.items() if name != "hugepage_bytes")
