"""What the runtime says that it did, beside what its listing shows: pure functions.

Who says yes and does nothing is asked again after a back-off, and that is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

from nodealloc import _attrs as attrs
from nodealloc._back_off import BackOff
from nodealloc._frozen import extended
from nodealloc.dsw_asw import Failure, Step
from nodealloc.errors import RetryableError
from nodealloc.podlife._details import (
    Acted,
    Detail,
    Prune,
    Remove,
    RunSandbox,
    Start,
    StopContainer,
    StopSandbox,
)
from nodealloc.podlife._observed import Observed
from nodealloc.podlife._record import PodRecord, Unheeded
from nodealloc.runtime import RunState

__all__ = ["NotHeededError", "answered", "asked_again", "failures_of", "looked_after", "spared"]


@attrs.define
class NotHeededError(RetryableError):
    """The runtime said that it did something, and its listing shows that it did not.

    Attributes:
        what: What it said yes to, and when first.
        after_s: When it is asked again, in seconds from its last answer.
    """

    what: Unheeded
    after_s: float = 0.0

    def __str__(self) -> str:
        """`stop of container app (c-2): the runtime said yes 3 times, first at 12 s …`."""
        one = self.what
        whose = f"container {one.name} ({one.id})" if one.name else one.id or "a sandbox without an id"
        times = "once" if one.times == 1 else f"{one.times} times"
        return (
            f"{one.verb} of {whose}: the runtime said yes {times}, first at {one.since_s:.0f} s of the "
            "engine's clock, and nothing came of it; look at the runtime, it is asked again by and by"
        )


_Asked: TypeAlias = tuple[str, Literal["stop", "kill", "remove", "start", "stop sandbox", "run sandbox"], str]
"""A key that tells requests apart, what is asked, and the id that it is asked of."""


def answered(have: PodRecord, detail: Detail, acted: Acted, now_s: float, policy: BackOff, /) -> PodRecord:
    """With what the runtime said yes to; the next listing shows whether it did it.

    Args:
        have: The record before.
        detail: What it was asked.
        acted: Its answer.
        now_s: When that came.
        policy: How long is waited before it is asked again.
    """
    asked = have.asked
    for key, verb, id_ in _asked(detail, acted):
        before = asked.get(key)
        times = 1 if before is None else before.times + 1
        asked = extended(
            asked,
            key,
            Unheeded(
                verb=verb,
                id=id_,
                name=_name(detail),
                times=times,
                since_s=now_s if before is None else before.since_s,
                again_s=now_s + policy.after(times),
            ),
        )
    return have if asked is have.asked else have.but(asked=asked)


def looked_after(record: PodRecord, observed: Observed, /) -> PodRecord:
    """Without what was done, and with a mark at what a listing shows undone."""
    if not record.asked or not observed.is_shown:
        return record
    asked: dict[str, Unheeded] = {}
    states = {one.record.id: one.record.state for one in observed.report.containers}
    boxes = {one.record.id: one.record.is_ready for one in observed.report.sandboxes}
    for key, one in record.asked.items():
        if one.id in observed.ours:
            asked[key] = one
        elif _is_undone(one, states, boxes):
            asked[key] = one if one.is_undone else attrs.evolve(one, is_undone=True)
    return record if asked == record.asked else record.but(asked=asked)


def spared(
    record: PodRecord, steps: tuple[Step[Detail], ...], now_s: float, /
) -> tuple[tuple[Step[Detail], ...], float | None]:
    """Steps without requests whose time has not come again, and when the first of those comes."""
    if not record.asked:
        return steps, None
    kept: list[Step[Detail]] = []
    moments: list[float] = []
    for step in steps:
        waits = {
            id_: one.again_s
            for key, _, id_ in _asked(step.detail, None)
            if (one := record.asked.get(key)) is not None and one.is_undone and one.again_s > now_s
        }
        moments += waits.values()
        left = _without(step, waits) if waits else step
        if left is not None:
            kept.append(left)
    return tuple(kept), min(moments, default=None)


def asked_again(record: PodRecord | None, detail: Detail, /) -> tuple[Unheeded, ...]:
    """Of what a step asks for: what the runtime said that it did, and did not."""
    if record is None or not record.asked:
        return ()
    found = (record.asked.get(key) for key, _, _ in _asked(detail, None))
    return tuple(one for one in found if one is not None and one.is_undone)


def failures_of(uid: str, record: PodRecord | None, /) -> tuple[Failure, ...]:
    """What the runtime did not do of what it said, as failures of a pod's steps."""
    asked = () if record is None else record.asked.values()
    return tuple(
        Failure(
            scope=("pod", uid, one.verb, one.id),
            verb=one.verb,
            subject=one.id,
            error=NotHeededError(one),
            tries=one.times,
            due_s=one.again_s,
        )
        for one in asked
        if one.is_undone
    )


def _without(step: Step[Detail], ids: Mapping[str, float]) -> Step[Detail] | None:
    """A step without some of the ids that it is about; None where nothing is left."""
    detail = step.detail
    if not isinstance(detail, Remove | Prune):
        return None
    boxes = tuple(one for one in detail.sandboxes if one not in ids)
    runs = tuple(one for one in detail.containers if one not in ids)
    if not boxes and not runs:
        return None
    left = attrs.evolve(detail, sandboxes=boxes, containers=runs)
    return attrs.evolve(step, detail=left, subject=left)


def _asked(detail: Detail, acted: Acted | None) -> Iterator[_Asked]:
    match detail:
        case StopContainer(container_id=cid, until_s=until_s, kills=kills):
            # A sooner deadline is another request, which waits for nothing.
            yield f"{'kill' if kills else 'stop'} {cid} {until_s}", "kill" if kills else "stop", cid
        case StopSandbox(sandbox_id=sid):
            yield f"stop {sid}", "stop sandbox", sid
        case Remove() | Prune():
            for one in (*detail.containers, *detail.sandboxes):
                yield f"remove {one}", "remove", one
        case Start(container_id=cid, only_makes=False):
            made = cid or ("" if acted is None else acted.id)
            if made:
                yield f"start {made}", "start", made
        case RunSandbox():
            yield "run sandbox", "run sandbox", "" if acted is None else acted.id
        case _:
            return


def _name(detail: Detail) -> str:
    return detail.container if isinstance(detail, StopContainer | Start) else ""


def _is_undone(one: Unheeded, states: Mapping[str, RunState], boxes: Mapping[str, bool]) -> bool:
    match one.verb:
        case "stop" | "kill":
            state = states.get(one.id)
            return state is not None and state.may_run
        case "stop sandbox":
            return boxes.get(one.id, False)
        case "start":
            return states.get(one.id) is RunState.CREATED
        case "run sandbox":
            return one.id not in boxes
        case _:
            return one.id in states or one.id in boxes
