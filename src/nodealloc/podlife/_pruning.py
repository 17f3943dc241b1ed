"""Pure functions: which records of a pod that goes on nobody needs any more."""

from __future__ import annotations

from collections import Counter

from nodealloc.dsw_asw import Step
from nodealloc.podlife._details import Detail, Prune
from nodealloc.podlife._starting import Turn
from nodealloc.runtime import RunState

__all__ = ["prune"]


def prune(turn: Turn, /) -> tuple[Step[Detail], ...]:
    """Remove all but the newest dead instances whose ends are stored, and sandboxes that are empty and old.

    Source: kubelet ``pod_container_deletor.go``, ``kuberuntime_gc.go``; here at once, not once a minute;
    by a kubelet's rules sandboxes stay for that (`clears_away`).
    """
    report = turn.observed.report
    if len(report.containers) < _FEWEST and len(report.sandboxes) < _FEWEST:
        return ()
    if not turn.tries_again:
        return ()  # a kubelet does it when it looks
    containers, sandboxes = _dead(turn), _empty(turn) if turn.rules.clears_away else ()
    if not containers and not sandboxes:
        return ()
    detail = Prune(sandboxes, containers)
    step: Step[Detail] = Step(
        scope=("pod", turn.uid, "records"),
        verb="prune",
        detail=detail,
        deadline_s=turn.policy.call_s,
        subject=detail,
    )
    return (step,)


def _dead(turn: Turn) -> tuple[str, ...]:
    """Instances that have ended, or were never started, with enough newer ones of their name."""
    ends, ours = turn.observed.ends_by_id, turn.observed.ours
    containers: list[str] = []
    seen: set[str] = set()
    dead: Counter[str] = Counter()
    for one in turn.observed.report.containers:
        record, is_newest = one.record, one.record.name not in seen
        seen.add(record.name)
        is_left = record.state is RunState.CREATED and not is_newest
        if record.state is RunState.EXITED or (is_left and not turn.rules.keeps_starts):
            # One whose end nobody knows may be one that was made, never started, and just removed. By a
            # kubelet's rules one that was made and never started is one more dead one.
            is_known = is_left or record.id in ends
            dead[record.name] += is_known
            goes = is_known and dead[record.name] > turn.policy.dead_kept
        else:
            # One that was made and never started is used as long as it is the newest.
            goes = is_left
        if goes and record.id not in ours:
            containers.append(record.id)
    return tuple(containers)


def _empty(turn: Turn) -> tuple[str, ...]:
    """Sandboxes behind the newest that are not ready, and hold no container."""
    report, ours = turn.observed.report, turn.observed.ours
    in_use = {one.record.sandbox_id for one in report.containers}
    return tuple(
        one.record.id
        for one in report.sandboxes[1:]
        if not one.record.is_ready and one.record.id not in in_use and one.record.id not in ours
    )


_FEWEST = 2
"""With fewer of each nothing is behind another."""
