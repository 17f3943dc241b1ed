"""Pure functions: what is known of a pod, from the runtime's word and from what our own calls did since."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc.podfacts import Exited, ExitUnknown
from nodealloc.podlife._record import Ours, PodRecord
from nodealloc.podlife._rules import RIGHT, Rules
from nodealloc.runtime import (
    OOM_KILLED,
    ContainerEnd,
    ContainerReport,
    PodKnown,
    PodListing,
    PodReport,
    RunState,
    SandboxReport,
)

__all__ = ["Observed", "observe", "with_lost"]


_NOBODY: Final = frozenset[str]()


@attrs.frozen(kw_only=True)
class Observed:
    """A pod at one moment.

    Attributes:
        report: Its sandboxes and containers.
        is_current: Whether the runtime was asked since our last call, and nothing is in doubt:
            only then anything is made.
        is_shown: Like `is_current`, but a call whose time is over does not count: what it may still
            make is ended once a listing shows it.
        fault: Why it is in doubt, in words; "" for nothing.
        ends: Container name to its newest end.
        end_ids: Container name to the id of that instance.
        ends_by_id: Every end that is stored, by id: those records may go.
        marks: Ids and states of what is known of the runtime, but for what was made and has not begun.
        ours: What our calls did and no listing shows yet.
        lost: Ids of instances that were told to start and that the runtime does not know.
    """

    report: PodReport
    is_current: bool
    is_shown: bool = False
    fault: str = ""
    ends: Mapping[str, ContainerEnd] = attrs.field(factory=dict[str, ContainerEnd])
    end_ids: Mapping[str, str] = attrs.field(factory=dict[str, str])
    ends_by_id: Mapping[str, ContainerEnd] = attrs.field(factory=dict[str, ContainerEnd])
    marks: Mapping[str, RunState] = attrs.field(factory=dict[str, RunState])
    ours: Mapping[str, Ours] = attrs.field(factory=dict[str, Ours])
    lost: frozenset[str] = frozenset()

    @property
    def running(self) -> tuple[str, ...]:
        """Ids of containers that run, or may."""
        return tuple(one.record.id for one in self.report.containers if one.record.state.may_run)

    @property
    def ended_by_us(self) -> Mapping[str, str]:
        """Newest instances that our own call has ended and that nobody has inspected since, by name.

        The back-off counts their ends all the same: what follows them may start before the inspection.
        """
        if not self.ours:
            return {}
        newest = {one.record.name: one.record for one in reversed(self.report.containers)}
        return {
            name: one.id
            for name, one in newest.items()
            if one.state is RunState.EXITED and one.id in self.ours and one.id not in self.ends_by_id
        }


def observe(
    uid: str,
    record: PodRecord,
    known: PodKnown | None,
    seen: PodListing | None,
    listing: int | None,
    /,
    *,
    rules: Rules = RIGHT,
) -> Observed:
    """What is known of a pod.

    Args:
        uid: Which.
        record: What is remembered, with what our calls did.
        known: What the runtime's watch knows.
        seen: What the newest listing shows.
        listing: Number of the newest listing; None before the first.
        rules: `keeps_init_progress`: ends count whose records are gone; `keeps_starts`.
    """
    known = PodKnown(uid=uid) if known is None else known
    report = known.report or PodReport(uid=uid)
    is_known = known.is_current(seen)
    ours = {
        one: mine
        for one, mine in record.ours.items()
        if listing is None or listing < mine.number or not is_known
    }
    if ours:
        report = _with_ours(report, ours)
    is_pending = any(listing is None or listing < mine.number for mine in ours.values())
    shown = None if known.fault else listing
    is_sure = shown is not None and record.doubt is not None and shown >= record.doubt
    are_others_shown = shown is not None and record.doubt is None and not is_pending
    ends: dict[str, ContainerEnd] = {}
    ids: dict[str, str] = {}
    there = {one.record.id for one in report.containers}
    lost = _lost(record, there, ours, is_current=is_sure and is_known) if rules.keeps_starts else _NOBODY
    for cid, end in with_lost(known.ends, record, lost).items():
        if cid not in there and (not rules.keeps_init_progress or _is_older(end, record)):
            continue
        newest = ends.get(end.name)
        if newest is None or newest.attempt <= end.attempt:
            ends[end.name] = end
            ids[end.name] = cid
    return Observed(
        report=report,
        # While a call is out a listing has to show what the others did: an end says nothing of what was
        # made before it and never listed.
        is_shown=is_known and (is_sure or are_others_shown),
        # What our calls did is known without asking again, as long as nothing else is in doubt.
        is_current=is_sure and (is_known or is_pending),
        fault=known.fault,
        ends=ends,
        end_ids=ids,
        ends_by_id=known.ends,
        marks={one: state for one, state in known.marks.items() if state is not RunState.CREATED},
        ours=record.ours if len(ours) == len(record.ours) else ours,
        lost=lost,
    )


def _lost(
    record: PodRecord, there: Collection[str], ours: Collection[str], *, is_current: bool
) -> frozenset[str]:
    """Ids of instances that were told to start and that no listing since then shows."""
    found = [
        one.container_id
        for one in record.begun.values()
        if one.container_id not in there and (one.is_lost or (is_current and one.container_id not in ours))
    ]
    return frozenset(found) if found else _NOBODY


def with_lost(
    ends: Mapping[str, ContainerEnd], record: PodRecord, lost: Collection[str], /
) -> Mapping[str, ContainerEnd]:
    """Ends by id, with those of instances that ran and that nobody saw."""
    found = {
        one.container_id: ContainerEnd(
            name=name,
            attempt=one.attempt,
            exit=ExitUnknown(),
            reason="ContainerStatusUnknown",
            message="it was started, and its record was gone before anybody saw it",
        )
        for name, one in record.begun.items()
        if one.container_id in lost and one.container_id not in ends
    }
    return {**ends, **found} if found else ends


def _is_older(end: ContainerEnd, record: PodRecord) -> bool:
    """Whether it ended before its pod came: of a pod of the same uid that was there before."""
    return end.finished_unix_s is not None and end.finished_unix_s < record.noticed_unix_s


def _with_ours(report: PodReport, ours: Mapping[str, Ours]) -> PodReport:
    boxes = {one.record.id: one for one in report.sandboxes}
    runs = {one.record.id: one for one in report.containers}
    for one, mine in ours.items():
        if isinstance(mine.report, SandboxReport):
            boxes.setdefault(one, mine.report)
        elif isinstance(mine.report, ContainerReport):
            runs[one] = mine.report
        elif one in boxes:
            box = boxes[one]
            boxes[one] = attrs.evolve(box, record=attrs.evolve(box.record, is_ready=False))
        elif one in runs and runs[one].exit is None:
            run = runs[one]
            gone = attrs.evolve(run.record, state=RunState.EXITED)
            runs[one] = attrs.evolve(run, record=gone, exit=ExitUnknown())
    made = PodReport.of(report.uid, boxes.values(), runs.values())
    return made if made.ips or not report.ips else attrs.evolve(made, ips=report.ips)


def succeeded(end: ContainerEnd | None, /) -> bool:
    """Whether an init container is over with this end.

    With exit status 0, and not where memory ran out: it may have lost a child.
    """
    if end is None or end.reason == OOM_KILLED:
        return False
    return isinstance(end.exit, Exited) and end.exit.code == 0
