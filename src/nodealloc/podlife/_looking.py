"""A kubelet's pace: look at a pod, tell of it, act; again after a change or a whole period.

What failed is tried, and told, with the next look. Pure functions.

Source: kubelet ``pod_workers.go`` and ``kuberuntime_manager.go``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, Protocol

import attrs

from nodealloc._frozen import Frozen
from nodealloc.podfacts import Exited, LifeState
from nodealloc.podlife._details import Prune, Resize, StopContainer
from nodealloc.podlife._look import Decided, Look, StartFailure, later
from nodealloc.podlife._next import Next
from nodealloc.podlife._observed import Observed
from nodealloc.podlife._record import PodRecord
from nodealloc.podlife._rules import Rules
from nodealloc.podspec import is_static
from nodealloc.runtime import Exit, RunState

__all__ = ["at_its_pace", "at_rest", "hears_again_s"]


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
        if _acts(answer) and not _is_interrupted(answer, look, observed):
            return _decided(answer)
        record = at_rest(answer.record.but(look=look), now_s)
        look = record.look
    if look is not None and look.edition == record.edition and now_s < _known_again_s(look):
        return _until_listed(record, look, decide, now_s)
    is_news = look is None or look.edition != record.edition or _is_seen(look, observed, now_s)
    if not is_news and (look is None or look.again_s is None or now_s < look.again_s):
        answer = decide(record, tries_again=False)
        if not _acts(answer):
            return _waiting(answer, now_s)
        # Something else than the runtime has spoken: a probe has it looked at, too.
    listed_s = look.listed_s if look is not None and not is_news else _listed_s(look, now_s)
    answer = decide(_looked_at(record, observed, listed_s), tries_again=True)
    taken = answer.record.look
    if taken is None or not _acts(answer):
        return _waiting(answer, now_s)
    return _decided(attrs.evolve(answer, record=answer.record.but(look=attrs.evolve(taken, acts=True))))


def at_rest(record: PodRecord, now_s: float, /) -> PodRecord:
    """What the last look led to is done."""
    look = record.look
    return record if look is None else record.but(look=attrs.evolve(look, acts=False, rests_s=now_s))


def hears_again_s(record: PodRecord, rules: Rules, /) -> float | None:
    """From when an edit or an end counts by a kubelet's rules: a listing has to show all that was done.

    None where nothing was, or for right away.
    """
    is_looked_at = not rules.tells_meanwhile and record.life is LifeState.SYNCING
    return _known_again_s(record.look) if is_looked_at and record.look is not None else None


def _until_listed(record: PodRecord, look: Look, decide: Deciding, now_s: float) -> Next:
    """Nothing else is decided of a pod before a listing that came after the last look was done."""
    bound = attrs.evolve(look, acts=True, decided=Decided())
    answer = decide(record.but(look=bound), tries_again=False)
    if answer.is_over or _acts(answer):
        return Next(record=record, again_at_s=_known_again_s(look))
    return _waiting(attrs.evolve(answer, record=answer.record.but(look=look)), now_s)


def _is_interrupted(answer: Next, look: Look, observed: Observed) -> bool:
    """Whether something happened since a stop failed, with which the look was over."""
    left = [one.detail for one in answer.steps if not isinstance(one.detail, Prune | Resize)]
    waits = all(isinstance(one, StopContainer) and one.container_id in look.unstopped for one in left)
    return waits and _has_changed(look.marks, observed.marks)


def _decided(answer: Next) -> Next:
    """With what the look led to, if it is the first that was decided of containers."""
    look = answer.record.look
    if look is None or look.decided is not None or answer.decided is None:
        return answer
    look = attrs.evolve(look, decided=answer.decided)
    return attrs.evolve(answer, record=answer.record.but(look=look))


_LISTED_S: Final = 1.0
"""What changed is seen when the runtime is listed next: so often, whatever is done between."""
_KNOWN_S: Final = 0.1
"""So long after a listing begins what it shows is known, at the latest."""


def _is_seen(look: Look, observed: Observed, now_s: float) -> bool:
    """Whether a listing since what was done shows that something changed."""
    return not observed.ours and now_s >= _known_again_s(look) and _has_changed(look.marks, observed.marks)


def _listed_s(look: Look | None, now_s: float) -> float:
    """When the listing began that shows what is news now; before a pod came, in the middle between two."""
    if look is None:
        return now_s - _LISTED_S / 2
    began_s = _listed_again_s(look)
    return began_s if began_s <= now_s <= began_s + 2 * _KNOWN_S else now_s


def _known_again_s(look: Look) -> float:
    """When is known what the first listing shows after what the look led to was done."""
    return _listed_again_s(look) + _KNOWN_S


def _listed_again_s(look: Look) -> float:
    """When the runtime is listed first after what the look led to was done."""
    periods = math.floor((look.rests_s - look.listed_s) / _LISTED_S) + 1
    return look.listed_s + max(1, periods) * _LISTED_S


def _has_changed(before: Mapping[str, RunState], now: Mapping[str, RunState]) -> bool:
    """Whether anything came, changed, or went before it had ended; what goes afterwards was removed."""
    if any(before.get(one) is not state for one, state in now.items()):
        return True
    return any(state is not RunState.EXITED for one, state in before.items() if one not in now)


def _looked_at(record: PodRecord, observed: Observed, listed_s: float) -> PodRecord:
    number = 1 if record.look is None else record.look.number + 1
    look = Look(
        number=number,
        marks=observed.marks,
        edition=record.edition,
        failures=record.failures,
        attempts=_attempts(record, observed),
        shown=_shown(record, observed),
        listed_s=listed_s,
    )
    # What the look before stopped to start again, and could not start, ended like any other.
    nothing = Frozen[str, str]()
    return record.but(look=look, failures=Frozen[str, StartFailure](), owed=nothing, owed_here=nothing)


def _attempts(record: PodRecord, observed: Observed) -> Mapping[str, int]:
    """The newest attempt of each container, without what was tried and the runtime does not have."""
    there = {(one.record.name, one.record.attempt) for one in observed.report.containers}
    missing = {
        name: one.attempt - 1
        for name, one in record.starting.items()
        if one.attempt == record.attempts.get(name) and (name, one.attempt) not in there
    }
    return Frozen[str, int]({**record.attempts, **missing}) if missing else record.attempts


def _shown(record: PodRecord, observed: Observed) -> Mapping[str, bool]:
    """Of what is gone what the look before knew; of all else the newest instance."""
    newest = {
        one.record.name: _succeeded(one.exit)
        for one in reversed(observed.report.containers)
        if one.record.state is not RunState.CREATED
    }
    before = record.look.shown if record.look is not None else _told_before(record, observed)
    return Frozen[str, bool]({**before, **newest})


def _told_before(record: PodRecord, observed: Observed) -> Mapping[str, bool]:
    """What an agent before this one told of containers: a kubelet reads it back from an API server.

    Of a static pod nobody tells it.
    """
    if is_static(record.pod):
        return {}
    ends = observed.ends_by_id
    return {
        name: one.container_id in ends and _succeeded(ends[one.container_id].exit)
        for name, one in record.begun.items()
    }


def _succeeded(how: Exit | None) -> bool:
    return isinstance(how, Exited) and how.code == 0


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
    times = (answer.again_at_s, look.again_s, _known_again_s(look))
    moments = [one for one in times if one is not None and one > now_s]
    return attrs.evolve(answer, record=answer.record.but(look=look), again_at_s=min(moments, default=None))
