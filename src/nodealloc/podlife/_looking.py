"""A kubelet's pace: it looks at a pod, tells of it, acts, and looks again when something changed, or late.

What failed is tried, and told, with the next look. Pure functions.

Source: kubelet ``pod_workers.go`` and ``kuberuntime_manager.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

import attrs

from nodealloc._frozen import Frozen
from nodealloc.podlife._details import Prune, Resize
from nodealloc.podlife._observed import Observed
from nodealloc.podlife._record import Look, PodRecord, StartFailure
from nodealloc.podlife._syncing import Next
from nodealloc.runtime import RunState

__all__ = ["at_its_pace", "later"]

_AGAIN_S: Final = 11.5
"""After a look that did not bring a pod where it is to be, and until the next listing: 10 to 15 s, by lot."""


class Deciding(Protocol):
    """Says what is next for a pod."""

    def __call__(self, record: PodRecord, /, *, tries_again: bool) -> Next:
        """With `tries_again` also of what failed before."""
        ...


def at_its_pace(record: PodRecord, observed: Observed, decide: Deciding, /, *, now_s: float) -> Next:
    """What is next for a pod that is looked at now and then.

    Args:
        record: What is remembered.
        observed: What is known.
        decide: The next steps of a record.
        now_s: The present.
    """
    look = record.look
    if not observed.is_current:
        return decide(record, tries_again=False)
    if look is not None and look.acts:
        answer = decide(record, tries_again=False)
        if _acts(answer):
            return answer
        look = attrs.evolve(look, acts=False, rests_s=now_s)
        record = answer.record.but(look=look)
    if not _is_due(look, record, observed, now_s):
        answer = decide(record, tries_again=False)
        if not _acts(answer):
            return _waiting(answer, now_s)
        # Something else than the runtime has spoken: a probe has it looked at, too.
    answer = decide(_looked_at(record, observed), tries_again=True)
    taken = answer.record.look
    if taken is None or not _acts(answer):
        return _waiting(answer, now_s)
    return attrs.evolve(answer, record=answer.record.but(look=attrs.evolve(taken, acts=True)))


_LISTED_S: Final = 1.0
"""What changed is seen when the runtime is listed next."""


def later(now_s: float, /) -> float:
    """When a kubelet tries again what it could not do now."""
    return now_s + _AGAIN_S


def _is_due(look: Look | None, record: PodRecord, observed: Observed, now_s: float) -> bool:
    if look is None or look.edition != record.edition:
        return True
    if not observed.ours and now_s >= look.rests_s + _LISTED_S and _has_changed(look.marks, observed.marks):
        return True
    return look.again_s is not None and now_s >= look.again_s


def _has_changed(before: Mapping[str, RunState], now: Mapping[str, RunState]) -> bool:
    """Whether anything came, changed, or went before it had ended; what goes afterwards was removed."""
    if any(before.get(one) is not state for one, state in now.items()):
        return True
    return any(state is not RunState.EXITED for one, state in before.items() if one not in now)


def _looked_at(record: PodRecord, observed: Observed) -> PodRecord:
    number = 1 if record.look is None else record.look.number + 1
    look = Look(
        number=number,
        marks=observed.marks,
        edition=record.edition,
        failures=record.failures,
        attempts=record.attempts,
    )
    return record.but(look=look, failures=Frozen[str, StartFailure]())


def _acts(answer: Next) -> bool:
    """Whether something of the pod is made or ended now; what tidies up does not count."""
    return any(not isinstance(one.detail, Prune | Resize) for one in answer.steps)


def _waiting(answer: Next, now_s: float) -> Next:
    """With the moment of the next look, where something failed or waits."""
    look = answer.record.look
    if look is None or answer.is_over:
        return answer
    if answer.record.failures and look.again_s is None:
        look = attrs.evolve(look, again_s=later(now_s))
    times = (answer.again_at_s, look.again_s, look.rests_s + _LISTED_S)
    moments = [one for one in times if one is not None and one > now_s]
    return attrs.evolve(answer, record=answer.record.but(look=look), again_at_s=min(moments, default=None))
