"""Pure functions: the next steps of a pod that is to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from nodealloc import _attrs as attrs
from nodealloc._frozen import Frozen, extended
from nodealloc.dsw_asw import Step
from nodealloc.podlife._actions import plan_pod, stops_of
from nodealloc.podlife._all_ended import all_ended
from nodealloc.podlife._definitions import Definitions
from nodealloc.podlife._details import Detail, LifePolicy
from nodealloc.podlife._forms import in_form
from nodealloc.podlife._grace import kill_grace_s, stops_after
from nodealloc.podlife._look import Decided
from nodealloc.podlife._newest import look as newest_of
from nodealloc.podlife._next import Next
from nodealloc.podlife._observed import Observed, succeeded
from nodealloc.podlife._plan import PodPlan, PodSeen, Stop, StopReason, Why
from nodealloc.podlife._ports import LifeVerdicts
from nodealloc.podlife._preparing import prepare, with_coming
from nodealloc.podlife._pruning import prune
from nodealloc.podlife._record import HookState, PodRecord, Stopping
from nodealloc.podlife._rules import Rules
from nodealloc.podlife._starting import Turn, in_new_sandbox, resizes, starts
from nodealloc.podlife._stops import Due, Stops, containers_of, steps_to_stop
from nodealloc.podlife._waiting import held_starts, telling_of_waits
from nodealloc.podspec import Pod
from nodealloc.runtime import PodReport, RunState

__all__ = ["sync"]

_EDITED: Final = frozenset({Why.CHANGED, Why.NOT_NAMED})
"""Why a container is stopped for an edit."""

_NOTHING: Final[Mapping[str, bool]] = Frozen[str, bool]()
_NO_IDS: Final = frozenset[str]()
_NOBODY: Final[Mapping[str, frozenset[str]]] = Frozen[str, frozenset[str]]()


def sync(
    uid: str,
    record: PodRecord,
    observed: Observed,
    /,
    *,
    parts: tuple[str, ...],
    verdicts: LifeVerdicts | None,
    now_s: float,
    policy: LifePolicy,
    rules: Rules,
    tries_again: bool = True,
    is_at_parts: bool = False,
) -> Next:
    """The next steps: parts that are not ready, then what the pure plan of the pod says.

    What is to be made ready for a form that comes is beside all that, and holds nothing up.
    """
    turn = Turn(
        uid=uid,
        observed=observed,
        now_s=now_s,
        policy=policy,
        rules=rules,
        tries_again=tries_again,
        parts=parts,
        is_at_parts=is_at_parts,
    )
    return with_coming(turn, _synced(turn, record, verdicts))


def _synced(turn: Turn, record: PodRecord, verdicts: LifeVerdicts | None) -> Next:
    observed = turn.observed
    preparing = prepare(turn, record)
    if preparing is not None:
        record = preparing.record
    if not observed.is_current:
        return preparing or Next(record=record)
    record = _learnt(record, observed, turn.now_s, turn.rules)
    definitions = record.definitions or Definitions.of(record.pod)
    seen = _seen(turn, record, verdicts)
    plan = plan_pod(record.pod, seen, definitions=definitions, rules=turn.rules)
    is_over = (plan.ends and not plan.makes_sandbox) or _is_over_by_phase(turn, record, seen, definitions)
    if is_over and record.coming is not None:
        # Nothing runs from which the form that comes could take anything; by that one it may go on.
        return _synced(turn, in_form(record, record.coming), verdicts)
    if record.definitions is None:
        record = record.but(definitions=definitions)
    bound = _bound(turn, record)
    to_stop = _to_stop(turn, plan, bound, is_ready=preparing is None)
    record = _counting(_stopping(turn, record, to_stop, plan), plan, observed)
    if is_over:
        return Next(record=record, is_over=True)
    stops = _stops(turn, record, ends=plan.ends)
    moments = [one for one in (stops.again_at_s, plan.again_at_s) if one is not None]
    record = telling_of_waits(stops.record, plan, is_looking=turn.tries_again)
    steps = stops.steps + prune(turn)
    if preparing is not None:
        moments += [preparing.again_at_s] if preparing.again_at_s is not None else []
        return Next(record=record, steps=steps + preparing.steps, again_at_s=min(moments, default=None))
    record, more = _begun(turn, record, plan, to_stop, bound)
    return Next(
        record=record,
        steps=steps + more,
        again_at_s=min(moments, default=None),
        decided=_decided(turn, plan, to_stop),
    )


def _is_over_by_phase(turn: Turn, record: PodRecord, seen: PodSeen, definitions: Definitions) -> bool:
    """By a kubelet's rules, as it looks at the pod: what ended is not owed a start by the look before."""
    if record.look is None or not turn.tries_again:
        return False
    newest = newest_of(seen, definitions.kubelet, keeps_ends=False).newest
    return all_ended(record.pod, newest, record.look.shown)


def _begun(
    turn: Turn, record: PodRecord, plan: PodPlan, to_stop: Sequence[Stop], bound: Decided | None
) -> tuple[PodRecord, tuple[Step[Detail], ...]]:
    """What is made: a sandbox once what was in the last one has gone, or containers in the one there is."""
    if plan.ends:
        return (record, ()) if turn.observed.running else in_new_sandbox(turn, record, plan)
    record, more = _starts(turn, record, plan, to_stop, bound)
    record, resized = resizes(turn, record, plan)
    return record, (*more, *resized)


def _bound(turn: Turn, record: PodRecord) -> Decided | None:
    """What alone may be begun of its containers; None for whatever is due.

    By a kubelet's rules, while that is done which it decided as it looked last.
    """
    look = record.look
    return None if turn.tries_again or look is None or not look.acts else look.decided


def _to_stop(turn: Turn, plan: PodPlan, bound: Decided | None, *, is_ready: bool) -> tuple[Stop, ...]:
    """Containers that are to be stopped, in whose order a kubelet stops one after the other.

    A form that is not ready yet, or may not come in, takes nothing from what runs.
    """
    report = turn.observed.report
    found = stops_of(plan, report, rules=turn.rules)
    if bound is not None:
        found = tuple([one for one in found if one.container_id in bound.stops])
    if is_ready or plan.ends or not turn.rules.follows_edits:
        return found
    edited_out = _edited_out(plan, report)
    return tuple([one for one in found if one.container_id not in edited_out])


def _edited_out(plan: PodPlan, report: PodReport) -> frozenset[str]:
    """Ids of containers that were made here, run well, and are to be stopped for an edit alone."""
    stops = {one.stop.container_id for one in plan.steps if one.stop and one.why in _EDITED}
    return frozenset(
        [one.record.id for one in report.containers if one.record.id in stops and one.record.definition]
    )


def _starts(
    turn: Turn, record: PodRecord, plan: PodPlan, to_stop: Sequence[Stop], bound: Decided | None
) -> tuple[PodRecord, tuple[Step[Detail], ...]]:
    """What is started; by a kubelet's rules once all that is to be stopped has gone."""
    if to_stop and not turn.rules.tells_meanwhile:
        return record, ()
    only = None if bound is None else bound.starts - {one.name for one in plan.stops}
    return starts(turn, record, plan, only=only)


def _decided(turn: Turn, plan: PodPlan, to_stop: Sequence[Stop]) -> Decided | None:
    """What a look has led to with this; None where nobody looks."""
    if turn.rules.tells_meanwhile:
        return None
    return Decided(stops=frozenset([one.container_id for one in to_stop]), starts=frozenset(plan.starts))


def _seen(turn: Turn, record: PodRecord, verdicts: LifeVerdicts | None) -> PodSeen:
    """What the pure plan is made from."""
    report = turn.observed.report
    return PodSeen(
        report=report,
        alive=_NOTHING if verdicts is None else verdicts.alive,
        started=_NOTHING if verdicts is None else verdicts.started,
        completed=_completed(record, report),
        ends=turn.observed.ends,
        end_ids=turn.observed.end_ids,
        held=held_starts(turn, record),
        resized=record.resized,
        owed=frozenset(record.owed.values()) if record.owed else _NO_IDS,
    )


def _learnt(record: PodRecord, observed: Observed, now_s: float, rules: Rules) -> PodRecord:
    """With what the runtime's word settles: who ended, who was made, which init containers succeeded."""
    found: dict[str, object] = {}
    attempts = _attempts(record, observed)
    if attempts != record.attempts:
        found["attempts"] = attempts
    ended = {
        name: (cid, now_s)
        for name, cid in {**observed.end_ids, **observed.ended_by_us}.items()
        if record.ended.get(name, ("", 0.0))[0] != cid and record.stopped.get(name) != cid
    }
    if ended:
        found["ended"] = {**record.ended, **ended}
    if record.pod.init_containers and (completed := _succeeded(record, observed)) != record.completed:
        found["completed"] = completed
    if observed.lost:
        found["begun"] = {
            name: attrs.evolve(one, is_lost=True) if one.container_id in observed.lost else one
            for name, one in record.begun.items()
        }
    if record.starting:
        starting = {
            name: made for name, made in record.starting.items() if not _has_run(name, made.attempt, observed)
        }
        if len(starting) != len(record.starting):
            found["starting"] = starting
            # The next instance looks for its image anew, though nobody heard that this one had started.
            found["images"] = {
                name: image
                for name, image in record.images.items()
                if name in starting or name not in record.starting
            }
    if record.stopping or record.post_start or record.pre_stop or record.resized:
        live = {one.record.id for one in observed.report.containers if one.record.state is not _EXITED}
        # What turned out never to have run has nothing to stop, and nothing of its name waits for it.
        kept = {"stopping": set(observed.running), "post_start": live, "pre_stop": live, "resized": live}
        for field, ids in kept.items():
            before = cast("Mapping[str, object]", getattr(record, field))
            if any(cid not in ids for cid in before):
                found[field] = {cid: one for cid, one in before.items() if cid in ids}
    if "starting" in found and rules.keeps_starts and (owed := _owed_hooks(record, observed)):
        found["post_start"] = {
            **cast("Mapping[str, HookState]", found.get("post_start", record.post_start)),
            **owed,
        }
    return record.but(**found) if found else record


def _owed_hooks(record: PodRecord, observed: Observed) -> Mapping[str, HookState]:
    """Post-start hooks of instances that run, and of whose start nobody had heard: its answer was lost."""
    containers = containers_of(record.pod)
    owed: dict[str, HookState] = {}
    for one in observed.report.containers:
        made, container = record.starting.get(one.record.name), containers.get(one.record.name)
        if made is None or one.record.attempt != made.attempt or one.record.state is not RunState.RUNNING:
            continue
        if container is not None and container.lifecycle is not None and container.lifecycle.post_start:
            owed[one.record.id] = record.post_start.get(one.record.id, HookState.WAITS)
    return owed


_EXITED: Final = RunState.EXITED


def _attempts(record: PodRecord, observed: Observed) -> Mapping[str, int]:
    """The newest attempt of each container that anybody knows of."""
    attempts = dict(record.attempts)
    for one in observed.report.containers:
        name, attempt = one.record.name, one.record.attempt
        if attempt > attempts.get(name, -1):
            attempts[name] = attempt
    for name, end in observed.ends.items():
        if end.attempt > attempts.get(name, -1):
            attempts[name] = end.attempt
    return attempts


def _succeeded(record: PodRecord, observed: Observed) -> Mapping[str, str]:
    init = {one.name for one in record.pod.init_containers if not one.restartable}
    return {
        **record.completed,
        **{
            one.record.name: one.record.sandbox_id
            for one in reversed(observed.report.containers)
            if one.record.name in init
            and one.record.state is _EXITED
            and succeeded(observed.ends_by_id.get(one.record.id))
        },
    }


def _has_run(name: str, attempt: int, observed: Observed) -> bool:
    """Whether an instance that was to be made was seen to run, or to have ended."""
    end = observed.ends.get(name)
    return (end is not None and attempt <= end.attempt) or any(
        one.record.name == name and attempt <= one.record.attempt and one.record.state is not RunState.CREATED
        for one in observed.report.containers
    )


def _completed(record: PodRecord, report: PodReport) -> frozenset[str]:
    box = report.sandbox
    if box is None:
        return frozenset()
    return frozenset(name for name, sandbox in record.completed.items() if sandbox == box.record.id)


def _stopping(turn: Turn, record: PodRecord, to_stop: Sequence[Stop], plan: PodPlan) -> PodRecord:
    """With a deadline for each container that is stopped though the pod goes on; it is set once.

    For a kubelet's next one when the one before it has gone.
    """
    stopping, stopped, owed, owed_here = record.stopping, record.stopped, record.owed, record.owed_here
    if not (turn.rules.tells_meanwhile or plan.ends):
        to_stop = () if stopping else to_stop[:1]
    for stop in to_stop:
        if stop.container_id not in stopping:
            grace_s = _grace_s(record.pod, stop)
            if _starts_again(plan, stop):
                owed = extended(owed, stop.name, stop.container_id)
                owed_here = extended(owed_here, stop.name, stop.container_id)
            if not turn.rules.counts_stopped:
                stopped = extended(stopped, stop.name, stop.container_id)
            stopping = extended(
                stopping,
                stop.container_id,
                Stopping(
                    name=stop.name,
                    deadline_s=turn.now_s + grace_s,
                    grace_s=grace_s,
                    reason=stop.reason,
                    message=stop.message,
                ),
            )
    if stopping is record.stopping:
        return record
    return record.but(stopping=stopping, stopped=stopped, owed=owed, owed_here=owed_here)


def _starts_again(plan: PodPlan, stop: Stop) -> bool:
    """Whether a container is stopped to start again, whatever its policy says of how it ends."""
    step = plan.step(stop.name)
    if step is None or (plan.ends and not plan.makes_sandbox):
        return False
    # A kubelet makes the sandbox for it, and asks its policy when it looks at the pod after that.
    waits = plan.makes_sandbox and step.why is Why.WAITS_FOR_INIT
    return step.start or step.held is not None or waits


def _counting(record: PodRecord, plan: PodPlan, observed: Observed) -> PodRecord:
    """With the ends that count from now on: of instances that were stopped, and whose successors wait."""
    if not record.stopped:
        return record
    held = {one.name for one in plan.steps if one.held is not None}
    left = {
        name: cid for name, cid in record.stopped.items() if not (name in held and cid in observed.ends_by_id)
    }
    return record if len(left) == len(record.stopped) else record.but(stopped=left)


def _grace_s(pod: Pod, stop: Stop) -> float:
    one = containers_of(pod).get(stop.name)
    probe = None
    if one is not None and stop.reason is StopReason.LIVENESS_PROBE:
        probe = one.liveness_probe
    elif one is not None and stop.reason is StopReason.STARTUP_PROBE:
        probe = one.startup_probe
    return kill_grace_s(
        own_s=pod.termination_grace_period_seconds,
        probe_s=None if probe is None else probe.termination_grace_period_seconds,
    )


def _stops(turn: Turn, record: PodRecord, *, ends: bool) -> Stops:
    """Carry out the stops that were decided: each by itself, or all (`ends`) in the order of an end."""
    if not record.stopping:
        return Stops(record=record, steps=(), again_at_s=None)
    running = set(turn.observed.running)
    records = [one.record for one in turn.observed.report.containers if one.record.id in running]
    names = {one.name for one in records}
    after = stops_after(record.pod, names, rules=turn.rules) if ends else _NOBODY
    due = [
        Due(record=one, deadline_s=stop.deadline_s, grace_s=stop.grace_s, after=after.get(one.name, ()))
        for one in records
        if (stop := record.stopping.get(one.id)) is not None
    ]
    return steps_to_stop(turn.uid, record, due, now_s=turn.now_s, policy=turn.policy, rules=turn.rules)
