"""A `Domain` of the engine: what is wanted of each pod, and what is remembered of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc.dsw_asw import (
    Cancel,
    Done,
    Failed,
    Near,
    Outcome,
    Plan,
    Step,
    Uncertain,
    View,
)
from nodealloc.podfacts import LifeState
from nodealloc.podlife._details import Acted, Detail, LifePolicy, uid_of
from nodealloc.podlife._ending import asked_to_end, clear_away, end, end_late, reasons_to_end, take_back
from nodealloc.podlife._forms import as_wanted
from nodealloc.podlife._going_on import goes_on, is_at_work
from nodealloc.podlife._heeding import answered, looked_after, spared
from nodealloc.podlife._life import LifeEvent
from nodealloc.podlife._look import later
from nodealloc.podlife._looking import Deciding, at_its_pace, at_rest, hears_again_s
from nodealloc.podlife._next import Next
from nodealloc.podlife._observed import Observed, observe
from nodealloc.podlife._performing import Performer
from nodealloc.podlife._ports import LifeTold, LifeVerdicts, Preparation
from nodealloc.podlife._record import Ending, EndingKind, PodRecord
from nodealloc.podlife._rules import Rules
from nodealloc.podlife._settling import settle
from nodealloc.podlife._syncing import sync
from nodealloc.podlife._taken_up import as_the_runtime_knows
from nodealloc.podlife._under_way import busy_until_s, is_at_parts, unwanted
from nodealloc.podlife._wanted import PodWanted
from nodealloc.podspec import Pod, is_static
from nodealloc.runtime import PodKnown, PodListing
from nodealloc.verdicts import NotYet

__all__ = ["Lives", "Nears"]

_FINAL: Final = frozenset({"Succeeded", "Failed"})
PodView = View[str, PodWanted, PodRecord, Detail]


@attrs.frozen(kw_only=True, eq=False)
class Nears:
    """What plans look at beside their pod.

    Attributes:
        known: What is known of the pod's containers.
        seen: What the newest listing shows.
        listed: Number of a listing that the pod waited for, or a higher one where it waits for none.
        lines: Full name to the static pods that want it, the one that has it first.
        verdicts: What probes say; None where nothing is probed.
        told: What others were told; None where nobody is waited for.
    """

    known: Near[str, str, PodKnown]
    seen: Near[str, str, PodListing]
    listed: Near[str, str, int]
    lines: Near[str, str, tuple[str, ...]]
    verdicts: Near[str, str, LifeVerdicts] | None = None
    told: Near[str, str, LifeTold] | None = None


class Lives:
    """Plans, performs and settles the steps of pods' lives.

    Args:
        nears: What plans look at.
        performer: Does the steps.
        preparations: Parts of a pod, in their order.
        policy: How patient to be.
        rules: Where the kubelet is wrong.
        began_s: When looking after pods began, on the engine's clock.
    """

    def __init__(
        self,
        nears: Nears,
        performer: Performer,
        preparations: Sequence[Preparation],
        policy: LifePolicy,
        rules: Rules,
        *,
        began_s: float = 0.0,
    ) -> None:
        self._began_s = began_s
        self._nears = nears
        self._performer = performer
        self._preparations = tuple(preparations)
        self._parts = tuple([one.name for one in preparations])
        self._policy = policy
        self._rules = rules

    def plan(self, view: PodView, /) -> Plan[PodRecord, Detail]:
        """The next steps of one pod, by the table of its life."""
        want = view.want
        if want is None:
            return Plan(have=None, cancel=True)
        record = view.have
        if record is None:
            record = PodRecord(pod=want.pod).but(noticed_s=view.now_s, noticed_unix_s=want.said_unix_s)
        observed = self._observed(view, record)
        if observed.ours is not record.ours:
            record = record.but(ours=observed.ours)
        record = looked_after(record, observed)
        answer = self._going_on(record, want, observed, view)
        if answer is None:
            if view.have is not None:
                waits = self._edits_wait(record, want)
                record = as_wanted(record, want, parts=self._parts, waits=waits)
            answer = self._next(self._moved(record, want, observed, view), want, observed, view)
        steps, asked_s = spared(answer.record, answer.steps, view.now_s)
        return Plan(
            have=answer.record,
            steps=steps,
            again_at_s=_sooner(answer, asked_s).again_at_s,
            cancel=unwanted(
                view.running,
                answer,
                is_current=observed.is_current,
                follows_edits=self._rules.follows_edits,
            ),
        )

    def perform(
        self, step: Step[Detail], cancel: Cancel, /
    ) -> Acted | Done[Acted] | Failed[Acted] | Uncertain[Acted]:
        """Do a step."""
        return self._performer.perform(step, cancel)

    def settled(
        self, have: PodRecord | None, step: Step[Detail], outcome: Outcome[Acted], /
    ) -> PodRecord | None:
        """What is remembered after a step."""
        if have is None:
            return None
        awaited = self._performer.awaited(uid_of(step))
        after = settle(have, step, outcome, rules=self._rules, awaited=awaited)
        if after is None or not isinstance(outcome, Done):
            return after
        return answered(after, step.detail, outcome.result, outcome.ended_s, self._policy.asks_again)

    def _observed(self, view: PodView, record: PodRecord) -> Observed:
        uid, nears = view.key, self._nears
        listed = max(view.of(nears.listed).values(), default=None)
        return observe(
            uid,
            record,
            view.of(nears.known).get(uid),
            view.of(nears.seen).get(uid),
            listed,
            rules=self._rules,
        )

    def _going_on(self, record: PodRecord, want: PodWanted, observed: Observed, view: PodView) -> Next | None:
        """What a kubelet does before it hears that a pod is to be another, or to end; None for nothing."""
        if record.pod is want.pod and not reasons_to_end(want):
            return None
        now_s = view.now_s
        if is_at_work(record, self._rules):
            answer = self._deciding(observed, view)(record, tries_again=False)
            if goes_on(answer.steps, record, observed, view.running, now_s=now_s, policy=self._policy):
                return answer
            record = at_rest(record, now_s)
        until_s = hears_again_s(record, self._rules)
        return None if until_s is None or now_s >= until_s else Next(record=record, again_at_s=until_s)

    def _edits_wait(self, record: PodRecord, want: PodWanted) -> bool:
        """Whether what runs goes on as it is until another form's parts are ready; a kubelet acts at once."""
        is_running = record.life is LifeState.SYNCING and record.sandbox_attempt >= 0
        return self._rules.follows_edits and is_running and not reasons_to_end(want)

    def _moved(self, record: PodRecord, want: PodWanted, observed: Observed, view: PodView) -> PodRecord:
        """Whether it may start, and whether it has to end."""
        now_s, rules, pod = view.now_s, self._rules, want.pod
        if record.life.is_ending and (record.life is not LifeState.TERMINATING or self._is_unheard(want)):
            return record
        reasons = reasons_to_end(want)
        if record.life is LifeState.WAITING and not reasons:
            record = self._let_in(record, want, observed, view)
        deadline_s = _active_deadline_s(record, pod)
        if record.life is LifeState.SYNCING and deadline_s is not None and now_s >= deadline_s:
            reasons = (*reasons, _TOO_LONG)
        if record.life is LifeState.SYNCING and not reasons and pod.status.get("phase") in _FINAL:
            reasons = (Ending(kind=EndingKind.COMPLETED),)
        if reasons or record.life is LifeState.TERMINATING:
            record = asked_to_end(record, reasons, pod, now_s=now_s, rules=rules)
        return self._telling(record, now_s)

    def _telling(self, record: PodRecord, now_s: float) -> PodRecord:
        """With how long others may take to hear that it ends, if it does."""
        if record.told_by_s is None and record.life is LifeState.TERMINATING:
            return record.but(told_by_s=now_s + self._policy.told_s)
        return record

    def _is_unheard(self, want: PodWanted) -> bool:
        """Whether a kubelet knows nothing of it yet; by the right rules it goes on to end."""
        return not (self._rules.remembers_pods or want.is_known)

    def _let_in(self, record: PodRecord, want: PodWanted, observed: Observed, view: PodView) -> PodRecord:
        """One pod of a name at a time; one that ended before this node knew of it is not started."""
        if want.pod.status.get("phase") in _FINAL and not record.made:
            if not observed.is_current:
                return record
            if not observed.running and not any(one.record.is_ready for one in observed.report.sandboxes):
                return record.moved(LifeEvent.FOUND_ENDED)
        if is_static(want.pod):
            line = view.of(self._nears.lines).get(want.pod.full_name, ())
            tries_at_s, now_s = record.tries_at_s, view.now_s
            if line and line[0] != view.key:
                if not self._rules.tells_meanwhile and (tries_at_s is None or now_s >= tries_at_s):
                    record = record.but(tries_at_s=later(now_s))
                waits = NotYet(blocker=line[0], message="another pod of its name has not finished")
                return record if record.waits_for == waits else record.but(waits_for=waits)
            if tries_at_s is not None and now_s < tries_at_s:
                return record
        return record.moved(LifeEvent.MAY_START).but(waits_for=None)

    def _next(self, record: PodRecord, want: PodWanted, observed: Observed, view: PodView) -> Next:
        """The steps of the state that it is in, or that this leads to."""
        uid, now_s, policy = view.key, view.now_s, self._policy
        match record.life:
            case LifeState.WAITING:
                return Next(record=record, again_at_s=record.tries_at_s)
            case LifeState.SYNCING | LifeState.TERMINATING if self._is_unheard(want):
                return Next(record=record)
            case LifeState.SYNCING:
                answer = self._synced(record, want.pod, observed, view)
            case LifeState.TERMINATING:
                answer = self._terminated(record, observed, view)
            case LifeState.TERMINATED:
                answer = take_back(
                    uid,
                    record,
                    self._preparations,
                    is_at_parts=is_at_parts(view.running),
                    now_s=now_s,
                    policy=policy,
                )
            case LifeState.FINISHED if self._rules.clears_away and (late := end_late(uid, observed, policy)):
                return Next(record=record, steps=late)
            case LifeState.FINISHED if (kept_until_s := self._kept_until_s(record, want, view)) is not None:
                return Next(record=record, again_at_s=kept_until_s)
            case LifeState.FINISHED:
                line = view.of(self._nears.lines).get(record.pod.full_name, ())
                return clear_away(
                    uid,
                    record,
                    want,
                    observed,
                    holds_name=uid in line,
                    looked_s=self._looked_s(now_s),
                    policy=policy,
                    rules=self._rules,
                )
        if answer.record.life is record.life:
            return answer
        return self._next(answer.record, want, observed, view)

    def _terminated(self, record: PodRecord, observed: Observed, view: PodView) -> Next:
        now_s, policy, pod = view.now_s, self._policy, record.pod
        is_out = record.ending is not None and record.ending.kind is EndingKind.REFUSED
        is_unknown = is_out and not self._rules.remembers_pods
        if is_unknown:
            record = record.but(pod=as_the_runtime_knows(pod, view.of(self._nears.seen).get(view.key)))
        busy_s = busy_until_s(view.running, policy, now_s=now_s)
        answer = end(
            view.key,
            record,
            observed,
            is_busy=busy_s is not None,
            waits_until_s=self._waits_until_s(record, view),
            now_s=now_s,
            policy=policy,
            rules=self._rules,
        )
        if is_unknown:
            answer = attrs.evolve(answer, record=answer.record.but(pod=pod))
        return _sooner(answer, busy_s)

    def _waits_until_s(self, record: PodRecord, view: PodView) -> float | None:
        """Until when others may still be told that it is not ready; None where nobody is waited for."""
        if self._nears.told is None or record.told_by_s is None or record.deadline_s is None:
            return None
        told = view.of(self._nears.told).get(view.key)
        if told is None:
            # Somebody may just be telling of it for the first time; of one that nobody wants nobody tells.
            if record.ending is not None and record.ending.kind is EndingKind.ORPHANED:
                return None
        elif told.is_told_unready:
            return None
        until_s = min(record.told_by_s, record.deadline_s - self._policy.kept_s(record.grace_s or 0.0))
        return until_s if view.now_s < until_s else None

    def _kept_until_s(self, record: PodRecord, want: PodWanted, view: PodView) -> float | None:
        """Until when a pod that has ended is known, so that its end can be remembered by who tells of it.

        A journal that refused them is tried again by each in its own time.
        """
        if self._nears.told is None or record.deadline_s is None or not (want.is_removed or want.is_orphan):
            return None
        told = view.of(self._nears.told).get(view.key)
        if told is None or told.is_over:
            return None
        until_s = record.deadline_s + _KEPT_S
        return until_s if view.now_s < until_s else None

    def _looked_s(self, now_s: float) -> float:
        period_s = self._policy.look_after_s
        return self._began_s + (now_s - self._began_s) // period_s * period_s

    def _deciding(self, observed: Observed, view: PodView) -> Deciding:
        verdicts = None if self._nears.verdicts is None else view.of(self._nears.verdicts).get(view.key)

        def decide(record: PodRecord, /, *, tries_again: bool) -> Next:
            return sync(
                view.key,
                record,
                observed,
                parts=self._parts,
                verdicts=verdicts,
                now_s=view.now_s,
                policy=self._policy,
                rules=self._rules,
                tries_again=tries_again,
                is_at_parts=is_at_parts(view.running),
            )

        return decide

    def _synced(self, record: PodRecord, pod: Pod, observed: Observed, view: PodView) -> Next:
        decide = self._deciding(observed, view)
        if self._rules.tells_meanwhile:
            answer = decide(record, tries_again=True)
        else:
            answer = at_its_pace(record, observed, decide, now_s=view.now_s)
        if answer.is_over:
            over = (Ending(kind=EndingKind.COMPLETED),)
            ends = asked_to_end(answer.record, over, record.pod, now_s=view.now_s, rules=self._rules)
            return Next(record=self._telling(ends, view.now_s))
        return _sooner(answer, _active_deadline_s(record, pod))


_KEPT_S: Final = 60.0
"""So long past its deadline a pod is kept for others at most."""
_TOO_LONG: Final = Ending(
    kind=EndingKind.DEADLINE,
    reason="DeadlineExceeded",
    message="Pod was active on the node longer than the specified deadline",
)


def _active_deadline_s(record: PodRecord, pod: Pod) -> float | None:
    """When it was active for as long as it may be, by its newest form."""
    seconds = pod.active_deadline_seconds
    return None if seconds is None else record.noticed_s + seconds


def _sooner(answer: Next, moment_s: float | None) -> Next:
    if moment_s is None or (answer.again_at_s is not None and answer.again_at_s <= moment_s):
        return answer
    return attrs.evolve(answer, again_at_s=moment_s)
