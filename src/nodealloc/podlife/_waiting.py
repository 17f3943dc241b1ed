"""Which starts wait, for what, and what is told of that: pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from nodealloc._frozen import Frozen
from nodealloc.podfacts import PodIdentity
from nodealloc.podlife._definitions import Definitions
from nodealloc.podlife._images import PULL_FAILURES, pull_held
from nodealloc.podlife._look import StartFailure
from nodealloc.podlife._plan import Held
from nodealloc.podlife._restarts import back_off_held
from nodealloc.podlife._stops import containers_of

if TYPE_CHECKING:
    from nodealloc.podlife._plan import PodPlan
    from nodealloc.podlife._record import PodRecord
    from nodealloc.podlife._starting import Turn

__all__ = ["held_starts", "telling_of_waits"]

_CRASH_LOOP: Final = "CrashLoopBackOff"
_BACK_OFF: Final = "ImagePullBackOff"


def held_starts(turn: Turn, record: PodRecord) -> Mapping[str, Held]:
    """Container name to what its start waits for: its back-off; by a kubelet's pace also the next look."""
    held = dict(_by_pace(turn, record)) if record.look is not None else dict[str, Held]()
    if not record.restarts.entries:
        return held or Frozen()
    definitions = record.definitions or Definitions.of(record.pod)
    tried = record.starting.keys() if record.look is None else record.look.tried.keys()
    for name, end in turn.observed.ends.items():
        if name in tried or name not in record.ended:
            continue  # it was decided, and the decision is in the entries; or no end counts yet
        answer = record.restarts.asked(
            name,
            definitions.counted_by(name, compares_all=turn.rules.follows_edits),
            turn.policy.restarts,
            ended_s=record.ended[name][1],
            now_s=turn.now_s,
            exit=end.exit,
        )
        # Between looks what failed last is what is told with the next one.
        if answer.held_until_s is not None and (turn.tries_again or name not in held):
            held[name] = back_off_held(PodIdentity.of(record.pod), name, answer.delay_s, answer.held_until_s)
    return held


def _by_pace(turn: Turn, record: PodRecord) -> Mapping[str, Held]:
    """What failed waits for the next look; an image that could not be had for its back-off as well."""
    if not turn.tries_again:
        return {
            name: Held(until_s=None, reason=one.reason, message=one.message)
            for name, one in record.failures.items()
        }
    failed: Mapping[str, StartFailure] = Frozen() if record.look is None else record.look.failures
    images = {name: one.image for name, one in containers_of(record.pod).items()}
    return {
        name: Held(until_s=one.until_s, reason=one.reason, message=one.message)
        if one.reason == _BACK_OFF
        else pull_held(images.get(name, ""), one.reason, one.message, one.until_s)
        for name, one in failed.items()
        if one.reason in {*PULL_FAILURES, _BACK_OFF} and one.until_s is not None and one.until_s > turn.now_s
    }


def telling_of_waits(record: PodRecord, plan: PodPlan, /, *, is_looking: bool = True) -> PodRecord:
    """With what is to be told of containers that wait, and nothing more of those that do not.

    Args:
        record: What is remembered.
        plan: Who waits.
        is_looking: Whether it is looked at now; between a kubelet's looks nobody begins to wait.
    """
    held = [one for one in plan.steps if one.held is not None]
    if not held and not record.failures:
        return record
    stopping = {one.name for one in record.stopping.values()}
    failures = {
        name: failure
        for name, failure in record.failures.items()
        if failure.reason != _CRASH_LOOP
        and ((step := plan.step(name)) is None or step.start or step.held or name in stopping)
    }
    for one in held:
        wait = one.held
        if wait is None:
            continue
        before = record.failures.get(one.name)
        if before is not None and (wait.until_s is None or not is_looking):
            failures[one.name] = before
        elif is_looking:
            failures[one.name] = StartFailure(reason=wait.reason, message=wait.message, until_s=wait.until_s)
    return record if failures == record.failures else record.but(failures=failures)
