"""Pure functions: what is being done of a pod, what may still come of it, and which of it nobody wants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nodealloc.dsw_asw import Running, StepScope
from nodealloc.podfacts import LifeState
from nodealloc.podlife._details import Detail, LifePolicy, MakeReady, Start, TakeBack
from nodealloc.podlife._next import Next

__all__ = ["busy_until_s", "is_at_parts", "unwanted"]

_MAKING: Final = frozenset({"run sandbox", "make", "start"})
"""Steps behind which something may appear that nobody has seen."""
_HOOKS: Final = frozenset({"post-start", "pre-stop"})


def is_at_parts(running: Sequence[Running[Detail]], /) -> bool:
    """Whether a part of it is being made ready or taken back."""
    return any(isinstance(one.detail, MakeReady | TakeBack) for one in running)


def busy_until_s(running: Sequence[Running[Detail]], policy: LifePolicy, /, *, now_s: float) -> float | None:
    """Until when something may still appear that is being made; a call that is lost is not waited for."""
    ends = [
        (one.since_s if one.began_s is None else one.began_s) + policy.call_s
        for one in running
        if one.verb in _MAKING
    ]
    return max((one for one in ends if one > now_s), default=None)


def unwanted(
    running: Sequence[Running[Detail]], answer: Next, /, *, is_current: bool, follows_edits: bool
) -> bool | tuple[StepScope, ...]:
    """Scopes of what nobody wants any more: hooks and parts, and in the end all that makes something.

    While a report is awaited nothing is decided of containers, so that no hook is unwanted by it. A start
    that has not come to its container when the pod is edited starts again, with what is wanted now.
    """
    if not running:
        return False
    ends, edition = answer.record.life is not LifeState.SYNCING, answer.record.edition
    return tuple(
        one.scope
        for one in running
        if not any(one.is_of(step) for step in answer.steps)
        and (
            (one.verb in _HOOKS and (is_current or (ends and one.verb == "post-start")))
            or isinstance(one.detail, MakeReady)
            or (follows_edits and isinstance(one.detail, Start) and one.detail.edition != edition)
            or (ends and (one.verb in _MAKING or one.verb == "pull"))
        )
    )
