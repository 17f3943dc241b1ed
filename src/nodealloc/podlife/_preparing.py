"""Pure functions: parts that are to be made ready, for the form of a pod that runs and the one that comes."""

from __future__ import annotations

from nodealloc import _attrs as attrs
from nodealloc.dsw_asw import Step
from nodealloc.podlife._details import Detail, MakeReady
from nodealloc.podlife._forms import unready
from nodealloc.podlife._next import Next
from nodealloc.podlife._record import PodRecord
from nodealloc.podlife._starting import Turn

__all__ = ["prepared", "with_coming"]


def prepared(turn: Turn, record: PodRecord, /) -> Next | None:
    """Parts that are not ready for the form that is acted upon; None where all are."""
    names = unready(record, turn.parts)
    if not names:
        return None
    new = tuple(one for one in names if one not in record.made)
    if new:
        record = record.but(made=(*record.made, *new))
    step = _make_ready(turn, MakeReady(names, record.edition, record.pod, new))
    return Next(record=record, steps=(step,), again_at_s=_again_at_s(turn, record))


def with_coming(turn: Turn, answer: Next, /) -> Next:
    """With what is to be made ready for the form that comes; it is asked for before the one that runs."""
    record, coming = answer.record, answer.record.coming
    names = () if coming is None else tuple([one for one in turn.parts if one not in coming.ready])
    if coming is None or not names:
        return answer
    new = tuple(one for one in names if one not in record.made)
    if new:
        record = record.but(made=(*record.made, *new))
    again_at_s = _again_at_s(turn, record)
    moments = [one for one in (answer.again_at_s, again_at_s) if one is not None]
    step = _make_ready(turn, MakeReady(names, coming.edition, coming.pod, new))
    return attrs.evolve(
        answer, record=record, steps=(step, *answer.steps), again_at_s=min(moments, default=None)
    )


def _make_ready(turn: Turn, detail: MakeReady) -> Step[Detail]:
    """Parts that follow each other as one step, so that they are one commit and one thread.

    One that has to wait ends it, and is the first of the next.
    """
    return Step(
        scope=("pod", turn.uid, "parts"),
        verb=f"make ready {detail.names[0]}",
        detail=detail,
        subject=(detail.names[0], detail.edition),
        deadline_s=turn.policy.prepare_s,
        may_change_nothing=True,
    )


def _again_at_s(turn: Turn, record: PodRecord) -> float | None:
    """When parts are asked again; while one is on its way its end is what is waited for."""
    if turn.is_at_parts:
        return None
    waits = record.waits_for
    return turn.now_s + (turn.policy.again_s if waits is None else waits.after_s)
