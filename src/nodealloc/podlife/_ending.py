"""Pure functions: the next steps of a pod that has to end, or has ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import attrs

from nodealloc.dsw_asw import Step
from nodealloc.podfacts import LifeState
from nodealloc.podlife._details import (
    BeginAgain,
    Detail,
    Forget,
    GiveUpName,
    LifePolicy,
    Remove,
    TakeBack,
)
from nodealloc.podlife._grace import effective_grace_s, stops_after
from nodealloc.podlife._life import LifeEvent
from nodealloc.podlife._look import later
from nodealloc.podlife._next import Next
from nodealloc.podlife._observed import Observed
from nodealloc.podlife._ports import Preparation
from nodealloc.podlife._record import Ending, EndingKind, PodRecord, Stopping
from nodealloc.podlife._rules import Rules
from nodealloc.podlife._starting import stop_sandbox
from nodealloc.podlife._stops import Due, containers_of, steps_to_stop
from nodealloc.podlife._wanted import PodWanted
from nodealloc.podspec import Pod, is_static

__all__ = ["asked_to_end", "clear_away", "end", "end_late", "reasons_to_end", "take_back"]


def reasons_to_end(want: PodWanted, /) -> tuple[Ending, ...]:
    """All that speaks for a pod's end, the first to be told first."""
    found = list(want.endings)
    if want.pod.deletion_timestamp:
        found.append(Ending(kind=EndingKind.DELETED))
    if want.is_orphan:
        found.append(Ending(kind=EndingKind.ORPHANED))
    elif want.is_removed:
        found.append(Ending(kind=EndingKind.REMOVED))
    return tuple(found)


def asked_to_end(
    record: PodRecord, reasons: Sequence[Ending], pod: Pod, /, *, now_s: float, rules: Rules
) -> PodRecord:
    """The record with the shortest grace that anybody asked for, counted from when it was asked.

    Args:
        record: What is remembered; its first reason stays.
        reasons: Why it has to end, at least one unless it ends already.
        pod: As it is now.
        now_s: The present.
        rules: `counts_zero_grace`, `tells_meanwhile`.
    """
    if not rules.tells_meanwhile and record.life is LifeState.TERMINATING and record.grace_s is not None:
        return record  # its containers are being stopped, and nothing else is decided before they have gone
    asked = [one.grace_s for one in reasons if one.grace_s is not None]
    grace_s = effective_grace_s(
        record.grace_s,
        own_s=pod.termination_grace_period_seconds,
        deletion_s=pod.deletion_grace_period_seconds,
        override_s=min(asked, default=None),
        rules=rules,
    )
    if record.grace_s is not None and grace_s >= record.grace_s:
        return record
    deadline_s = now_s + grace_s
    if record.deadline_s is not None:
        deadline_s = min(deadline_s, record.deadline_s)
    after = record.but(
        grace_s=grace_s,
        deadline_s=deadline_s,
        ending=record.ending or next(iter(reasons), None),
        stopping=_still_stopping(record),
    )
    moved = after.moved(_EVENTS.get(reasons[0].kind, LifeEvent.END_ASKED) if reasons else LifeEvent.END_ASKED)
    # Whoever ends a pod may give a reason that its state does not come to by itself.
    return moved if moved.life.is_ending else after.moved(LifeEvent.END_ASKED)


def _still_stopping(record: PodRecord) -> Mapping[str, Stopping]:
    """Without containers that a kubelet could not stop before: it begins anew, with the grace of this end."""
    unstopped = record.look.unstopped if record.look is not None else ()
    if not unstopped:
        return record.stopping
    return {cid: one for cid, one in record.stopping.items() if cid not in unstopped}


_EVENTS: Final = {
    EndingKind.ORPHANED: LifeEvent.FOUND_RUNNING,
    EndingKind.COMPLETED: LifeEvent.NOTHING_LEFT_TO_RUN,
}


def end(
    uid: str,
    record: PodRecord,
    observed: Observed,
    /,
    *,
    is_busy: bool,
    waits_until_s: float | None,
    now_s: float,
    policy: LifePolicy,
    rules: Rules,
) -> Next:
    """The next steps of a pod that terminates: hooks and stops under one deadline, then its sandboxes.

    Args:
        uid: Which.
        record: What is remembered; its deadline counts.
        observed: What is known.
        is_busy: Whether something of it is just being made.
        waits_until_s: Until when others may still be told that it is not ready: nothing of
            it is asked to end before that, except what was before, if only by its hook; None for no waiting.
        now_s: The present.
        policy: How patient to be.
        rules: `skips_stopped`, `stops_ready`, `keeps_starts`, `follows_edits`.
    """
    asked = _asked(record, observed, rules)
    if asked:
        # What is about to start may run, until a listing says that it does not.
        is_known = observed.is_shown and not is_busy
        doubtful = () if is_known or not rules.keeps_starts else tuple(record.starting)
        due = _due(record, observed, asked, doubtful, now_s=now_s, rules=rules)
        if waits_until_s is not None:
            begun = record.stopping.keys() | record.pre_stop.keys()
            due = [one for one in due if one.record.id in begun]
        stops = steps_to_stop(uid, record, due, now_s=now_s, policy=policy, rules=rules, doubtful=doubtful)
        moments = [one for one in (stops.again_at_s, waits_until_s) if one is not None]
        return Next(record=stops.record, steps=stops.steps, again_at_s=min(moments, default=None))
    boxes = [
        one.record.id
        for one in observed.report.sandboxes
        if one.record.is_ready or not (rules.stops_ready or one.record.id in record.stopped)
    ]
    deadline_s = now_s if record.deadline_s is None else record.deadline_s
    if boxes and record.starting and (is_busy or not observed.is_shown) and now_s < deadline_s:
        # What was about to start may run: the end of its sandbox would leave it no time.
        return Next(record=record, again_at_s=deadline_s)
    if boxes and observed.running and is_static(record.pod) and _is_removed(record):
        # What it could not ask to end a kubelet tries again later, unless it hears of the pod before.
        record = record.but(tries_at_s=later(now_s))
    if boxes:
        return Next(record=record, steps=tuple(stop_sandbox(uid, one, policy) for one in boxes))
    if record.attempts and record.tries_at_s is not None and now_s < record.tries_at_s:
        return Next(record=record, again_at_s=record.tries_at_s)
    if is_busy or not observed.is_shown:
        return Next(record=record)
    event = LifeEvent.CONTAINERS_GONE if record.made else LifeEvent.NOTHING_TO_TAKE_BACK
    return Next(record=attrs.evolve(record.moved(event), starting={}, stopping={}, images={}))


def _is_removed(record: PodRecord) -> bool:
    return record.ending is not None and record.ending.kind is EndingKind.REMOVED


def _asked(record: PodRecord, observed: Observed, rules: Rules) -> frozenset[str]:
    """Ids of containers that are asked to end; a kubelet knows nothing of those that its pod has no more.

    They end with their sandbox.
    """
    running = frozenset(observed.running)
    if rules.follows_edits:
        return running
    names = containers_of(record.pod)
    reports = observed.report.containers
    return frozenset(
        [one.record.id for one in reports if one.record.id in running and one.record.name in names]
    )


def _due(
    record: PodRecord,
    observed: Observed,
    asked: Collection[str],
    doubtful: Collection[str],
    *,
    now_s: float,
    rules: Rules,
) -> list[Due]:
    """Who has to end, and until when."""
    records = [one.record for one in observed.report.containers if one.record.id in asked]
    after = stops_after(record.pod, {*(one.name for one in records), *doubtful}, rules=rules)
    deadline_s = now_s if record.deadline_s is None else record.deadline_s
    grace_s = record.grace_s or 0.0
    due: list[Due] = []
    for one in records:
        own = record.stopping.get(one.id)
        is_sooner = own is not None and own.deadline_s < deadline_s
        due.append(
            Due(
                record=one,
                deadline_s=own.deadline_s if own is not None and is_sooner else deadline_s,
                grace_s=own.grace_s if own is not None and is_sooner else grace_s,
                after=after.get(one.name, ()),
            )
        )
    return due


def take_back(
    uid: str,
    record: PodRecord,
    preparations: Sequence[Preparation],
    /,
    *,
    is_at_parts: bool,
    now_s: float,
    policy: LifePolicy,
) -> Next:
    """The last part that was made ready goes first; one that this program does not know is passed over.

    While one is on its way (`is_at_parts`) its end is what is waited for, and no moment.
    """
    known = {one.name for one in preparations}
    left = tuple(name for name in record.made if name in known)
    if not left:
        return Next(record=attrs.evolve(record.moved(LifeEvent.TAKEN_BACK), made=(), waits_for=None))
    name = left[-1]
    waits = record.waits_for
    step: Step[Detail] = Step(
        scope=("pod", uid, "parts"),
        verb=f"take back {name}",
        detail=TakeBack(name, record.pod),
        subject=name,
        deadline_s=policy.prepare_s,
        may_change_nothing=True,
    )
    again_at_s = now_s + (policy.again_s if waits is None else waits.after_s)
    return Next(record=record, steps=(step,), again_at_s=None if is_at_parts else again_at_s)


def clear_away(
    uid: str,
    record: PodRecord,
    want: PodWanted,
    observed: Observed,
    /,
    *,
    holds_name: bool,
    looked_s: float,
    policy: LifePolicy,
    rules: Rules,
) -> Next:
    """What is left of a pod that has finished: its name at once, the rest when no source has it.

    Args:
        uid: Which.
        record: What is remembered.
        want: What was said of it.
        observed: What is known.
        holds_name: Whether nobody else of its name may start yet.
        looked_s: When a kubelet would have looked after all pods the last time.
        policy: How often it does.
        rules: `clears_away`.
    """
    full_name = record.pod.full_name
    if not (want.is_removed or want.is_orphan):
        if not holds_name:
            return Next(record=record)
        name: Step[Detail] = Step(
            scope=("pod", uid, "name"),
            verb="give up name",
            detail=GiveUpName(full_name),
            may_change_nothing=True,
        )
        return Next(record=record, steps=(name,))
    if not observed.is_shown:
        return Next(record=record)
    if not rules.clears_away:
        return _look_after(uid, record, want, looked_s=looked_s, period_s=policy.look_after_s)
    boxes = tuple(one.record.id for one in observed.report.sandboxes)
    runs = tuple(one.record.id for one in observed.report.containers)
    detail: Detail = Remove(boxes, runs) if boxes or runs else Forget(full_name)
    verb = "remove" if boxes or runs else "forget"
    step: Step[Detail] = Step(
        scope=("pod", uid, "records"), verb=verb, detail=detail, deadline_s=policy.call_s, subject=detail
    )
    return Next(record=record, steps=(step,))


def end_late(uid: str, observed: Observed, policy: LifePolicy, /) -> tuple[Step[Detail], ...]:
    """Stop sandboxes of a finished pod in which something runs: a call that came late made it."""
    if not observed.is_shown:
        return ()
    running = set(observed.running)
    boxes = {one.record.sandbox_id: None for one in observed.report.containers if one.record.id in running}
    return tuple(stop_sandbox(uid, one, policy) for one in boxes)


def _look_after(uid: str, record: PodRecord, want: PodWanted, *, looked_s: float, period_s: float) -> Next:
    """What a kubelet does about it when it looks next: what the runtime has of it stays there."""
    if record.finished_s is None:
        record = record.but(finished_s=looked_s)
    if record.finished_s == looked_s:
        return Next(record=record, again_at_s=looked_s + period_s)
    detail: Detail = Forget(record.pod.full_name)
    if want.again is not None:
        detail = BeginAgain(want.again, want.said_unix_s)
    step: Step[Detail] = Step(
        scope=("pod", uid, "records"),
        verb="forget" if want.again is None else "begin again",
        detail=detail,
        subject=detail,
        may_change_nothing=True,
    )
    return Next(record=record, steps=(step,))
