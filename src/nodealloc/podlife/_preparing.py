"""Pure functions: parts that are to be made ready, for the form of a pod that runs and the one that comes."""

from __future__ import annotations

from nodealloc import _attrs as attrs
from nodealloc.dsw_asw import Step
from nodealloc.podlife._details import Detail, MakeReady
from nodealloc.podlife._forms import unready
from nodealloc.podlife._next import Next
from nodealloc.podlife._record import PodRecord
from nodealloc.podlife._starting import Turn
from nodealloc.podspec import Pod

__all__ = ["prepare", "with_coming"]


def prepare(turn: Turn, record: PodRecord, /) -> Next | None:
    """Parts that are not ready for the form that is acted upon; None where all are."""
    names = unready(record, turn.parts)
    return _made_ready(turn, record, names, record.edition, record.pod) if names else None


def with_coming(turn: Turn, answer: Next, /) -> Next:
    """With what is to be made ready for the form that comes; it is asked for before the one that runs."""
    coming = answer.record.coming
    names = () if coming is None else tuple([one for one in turn.parts if one not in coming.ready])
    if coming is None or not names:
        return answer
    more = _made_ready(turn, answer.record, names, coming.edition, coming.pod)
    moments = [one for one in (answer.again_at_s, more.again_at_s) if one is not None]
    return attrs.evolve(
        answer,
        record=more.record,
        steps=(*more.steps, *answer.steps),
        again_at_s=min(moments, default=None),
    )


def _made_ready(turn: Turn, record: PodRecord, names: tuple[str, ...], edition: int, pod: Pod) -> Next:
    """Parts that follow each other as one step, so that they are one commit and one thread.

    One that has to wait ends it, and is the first of the next.
    """
    new = tuple(one for one in names if one not in record.made)
    if new:
        record = record.but(made=(*record.made, *new))
    step: Step[Detail] = Step(
        scope=("pod", turn.uid, "parts"),
        verb=f"make ready {names[0]}",
        detail=MakeReady(names, edition, pod, new),
        subject=(names[0], edition),
        deadline_s=turn.policy.prepare_s,
        may_change_nothing=True,
    )
    return Next(record=record, steps=(step,), again_at_s=_again_at_s(turn, record))


def _again_at_s(turn: Turn, record: PodRecord) -> float | None:
    """When parts are asked again; while one is on its way its end is what is waited for."""
    if turn.is_at_parts:
        return None
    waits = record.waits_for
    return turn.now_s + (turn.policy.again_s if waits is None else waits.after_s)
