"""A model that recorded rows of kind `pleg` are replayed on: what changed between two listings, whom to tell.

No node runs it. `RuntimeWatch` has a record for each pod and operations of the engine in its place; the rows
are about one loop that takes over a listing and inspects pods one after another, as the kubelet's pod
lifecycle event generator does.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

import attrs

from nodealloc._units import duration_text
from nodealloc.runtime import PodReport, RunState
from nodealloc.runtime._listing import Marks

__all__ = ["Awaited", "ChangeKind", "Pleg", "PodChange", "Relisted", "changes_of", "pleg_health", "relist"]

Awaited: TypeAlias = Mapping[str, Callable[[PodReport], bool]]
"""What somebody waits for in a pod's reports, by a key of his own."""


class ChangeKind(enum.Enum):
    """What became of a container or sandbox, or of something that was waited for."""

    STARTED = "ContainerStarted"
    DIED = "ContainerDied"
    REMOVED = "ContainerRemoved"
    CHANGED = "ContainerChanged"
    CONDITION_MET = "ConditionMet"


class PodChange(NamedTuple):
    """One thing that a listing shows and the one before it did not.

    Attributes:
        kind: What.
        id: Of the container or sandbox; "" where it is about the whole pod.
    """

    kind: ChangeKind
    id: str = ""


class Pleg(NamedTuple):
    """What is known after a listing.

    Attributes:
        marks: What each pod had, by uid, as it was last told of.
        stale: Pods whose inspection failed; they are inspected again.
        reports: The last report of each pod; None where the inspection failed.
        awaited: What is waited for, by uid.
        heard_s: When the last listing that succeeded began; None before the first.
    """

    marks: Mapping[str, Marks] = {}
    stale: frozenset[str] = frozenset()
    reports: Mapping[str, PodReport | None] = {}
    awaited: Mapping[str, Awaited] = {}
    heard_s: float | None = None


class Relisted(NamedTuple):
    """What a listing brought.

    Attributes:
        pleg: What is known now.
        changes: By uid, in order.
        inspected: Pods that were inspected, in order.
    """

    pleg: Pleg
    changes: Mapping[str, tuple[PodChange, ...]]
    inspected: tuple[str, ...]


_NOTHING: Final[Marks] = {}
_TOLD: Final = {
    RunState.RUNNING: (ChangeKind.STARTED,),
    RunState.EXITED: (ChangeKind.DIED,),
    RunState.CREATED: (ChangeKind.CHANGED,),
    RunState.UNKNOWN: (ChangeKind.CHANGED,),
}
_GONE: Final = (ChangeKind.REMOVED,)
_DIED_AND_GONE: Final = (ChangeKind.DIED, ChangeKind.REMOVED)
_STATES: Final = (None, *RunState)


def _kinds(old: RunState | None, new: RunState | None) -> tuple[ChangeKind, ...]:
    """What was made and does not run counts as unknown."""
    old = RunState.UNKNOWN if old is RunState.CREATED else old
    new = RunState.UNKNOWN if new is RunState.CREATED else new
    if old is new:
        return ()
    if new is None:
        return _GONE if old is RunState.EXITED else _DIED_AND_GONE
    return _TOLD[new]


_TABLE: Final = {(old, new): _kinds(old, new) for old in _STATES for new in _STATES}


def changes_of(before: Marks, after: Marks, /) -> tuple[PodChange, ...]:
    """What became of a pod's containers and sandboxes between two listings.

    All of it: that one is made, or not known any more, has its pod inspected and is told to nobody.

    Source: kubelet ``pleg/generic.go``, in its order: what was there first, by
    its place in the earlier listing.
    """
    if before == after:
        return ()
    found: list[PodChange] = []
    for one, old in before.items():
        new = after.get(one)
        if new is not old:
            found += [PodChange(kind, one) for kind in _TABLE[old, new]]
    for one, new in after.items():
        if one not in before:
            found += [PodChange(kind, one) for kind in _TABLE[None, new]]
    return tuple(found)


def relist(
    pleg: Pleg,
    listing: Mapping[str, Marks] | None,
    inspect: Callable[[str], PodReport | None],
    /,
    *,
    now_s: float,
    awaited: Mapping[str, Awaited] | None = None,
) -> Relisted:
    """Take over one listing, and inspect whom it concerns: who changed, failed last time or is awaited.

    Args:
        pleg: What was known.
        listing: Ids and states of every pod that has any; None where the listing failed.
        inspect: From a uid to the pod's report, or None where that failed.
        now_s: When the listing began.
        awaited: What else is waited for from now on, by uid.

    Source: kubelet ``pleg/generic.go``.
    """
    waiting = dict(pleg.awaited)
    for uid, wanted in (awaited or {}).items():
        waiting[uid] = {**waiting.get(uid, {}), **wanted}
    if listing is None:
        return Relisted(pleg._replace(awaited=waiting), {}, ())
    turn = _Turn(pleg, waiting)
    marks, stale = pleg.marks, pleg.stale
    for uid in {**marks, **dict.fromkeys(stale), **listing}:
        after = listing.get(uid)
        if after is None or uid in waiting or uid in stale or marks.get(uid) != after:
            turn.pod(uid, after, inspect)
    turn.forget(listing)
    return Relisted(
        Pleg(turn.marks, frozenset(turn.stale), turn.reports, waiting, now_s),
        turn.changes,
        tuple(turn.inspected),
    )


class _Turn:
    """One relisting under way."""

    __slots__ = ("changes", "inspected", "marks", "reports", "stale", "waiting")

    def __init__(self, pleg: Pleg, waiting: dict[str, Awaited]) -> None:
        self.marks = dict(pleg.marks)
        self.reports = dict(pleg.reports)
        self.stale = set(pleg.stale)
        self.waiting = waiting
        self.changes: dict[str, tuple[PodChange, ...]] = {}
        self.inspected: list[str] = []

    def pod(self, uid: str, after: Marks | None, inspect: Callable[[str], PodReport | None]) -> None:
        """One pod that has to be looked at."""
        before = self.marks.get(uid, _NOTHING)
        told = changes_of(before, after or _NOTHING)
        if after is None:
            self.reports.pop(uid, None)
            self.marks.pop(uid, None)
            self.stale.discard(uid)
        elif told or uid in self.stale or uid in self.waiting:
            self.inspected.append(uid)
            report = inspect(uid)
            if report is None:  # what changed is told once the pod can be inspected
                self.reports[uid] = None
                self.stale.add(uid)
                return
            told += self._taken(uid, after, report)
        else:
            self.marks[uid] = after
        told = tuple(one for one in told if one.kind is not ChangeKind.CHANGED)
        if told:
            self.changes[uid] = told

    def _taken(self, uid: str, after: Marks, report: PodReport) -> tuple[PodChange, ...]:
        self.marks[uid] = after
        self.stale.discard(uid)
        if not report.ips:
            report = _with_kept_addresses(report, self.reports.get(uid))
        self.reports[uid] = report
        return self._met(uid, report) if uid in self.waiting else ()

    def forget(self, listing: Mapping[str, Marks]) -> None:
        """Nobody waits for a pod of which nothing is left."""
        for uid in self.waiting.keys() - listing.keys():
            del self.waiting[uid]

    def _met(self, uid: str, report: PodReport) -> tuple[PodChange, ...]:
        wanted = self.waiting[uid]
        left = {key: met for key, met in wanted.items() if not met(report)}
        if len(left) == len(wanted):
            return ()
        if left:
            self.waiting[uid] = left
        else:
            del self.waiting[uid]
        return (PodChange(ChangeKind.CONDITION_MET),)


def _with_kept_addresses(report: PodReport, earlier: PodReport | None) -> PodReport:
    """A pod without a ready sandbox keeps the addresses that it had, for whoever reports on it."""
    if earlier is None or not earlier.ips or any(one.record.is_ready for one in report.sandboxes):
        return report
    return attrs.evolve(report, ips=earlier.ips)


def pleg_health(pleg: Pleg, now_s: float, /, *, threshold_s: float = 180.0) -> str:
    """Why the listings count as stalled, in words; "" while they come.

    Source: kubelet ``pleg/generic.go``: 3 min.
    """
    if pleg.heard_s is None:
        return "pleg has yet to be successful"
    silent_s = now_s - pleg.heard_s
    if silent_s <= threshold_s:
        return ""
    return (
        f"pleg was last seen active {duration_text(silent_s)} ago; threshold is {duration_text(threshold_s)}"
    )
