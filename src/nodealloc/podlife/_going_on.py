"""What a kubelet does before it hears anything else of a pod: all that its last look led to. Pure.

Source: kubelet ``pod_workers.go``, ``kubelet.go``: what makes and ends containers is not called off.
"""

from __future__ import annotations

from collections.abc import Sequence

from nodealloc.dsw_asw import Running, Step
from nodealloc.podfacts import LifeState
from nodealloc.podlife._details import (
    Detail,
    Hook,
    LifePolicy,
    Pull,
    RunSandbox,
    Start,
    StopContainer,
    StopSandbox,
)
from nodealloc.podlife._observed import Observed
from nodealloc.podlife._record import PodRecord
from nodealloc.podlife._rules import Rules

__all__ = ["goes_on", "is_at_work"]

_WORK = RunSandbox | Start | Pull | Hook | StopContainer | StopSandbox
"""Steps that nobody calls off; what makes parts of a pod ready is not among them."""


def is_at_work(record: PodRecord, rules: Rules, /) -> bool:
    """Whether something is still being done that a look led to, by a kubelet's rules."""
    look = record.look
    return not rules.tells_meanwhile and record.life is LifeState.SYNCING and look is not None and look.acts


def goes_on(
    steps: Sequence[Step[Detail]],
    before: PodRecord,
    observed: Observed,
    running: Sequence[Running[Detail]],
    /,
    *,
    now_s: float,
    policy: LifePolicy,
) -> bool:
    """Whether one of the steps goes on, or is tried for the first time: what failed waits for the next look.

    Args:
        steps: What is next.
        before: The record before they were decided.
        observed: What is known; as long as that is in doubt, for what is on its way is waited.
        running: What is being done.
        now_s: The present.
        policy: When a call is overdue, and how late a stop may be.
    """
    if not observed.is_current:
        return not observed.fault and (before.doubt is not None or _is_called(running, now_s, policy))
    on = {(one.scope, one.verb) for one in running if isinstance(one.detail, _WORK)}
    return any((one.scope, one.verb) in on or _is_first(one.detail, before, now_s, policy) for one in steps)


def _is_called(running: Sequence[Running[Detail]], now_s: float, policy: LifePolicy) -> bool:
    begun = [one.since_s if one.began_s is None else one.began_s for one in running]
    return any(one + policy.call_s > now_s for one in begun)


def _is_first(detail: Detail, before: PodRecord, now_s: float, policy: LifePolicy) -> bool:
    match detail:
        case Start() | Pull() | Hook():
            return True
        case StopContainer():
            has_failed = before.look is not None and detail.container_id in before.look.unstopped
            return not has_failed and now_s < detail.until_s + policy.term_s
        case RunSandbox():
            return before.sandbox_attempt < detail.attempt
        case _:
            return False
