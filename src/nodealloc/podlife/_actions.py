"""What is to be done for a pod next: one pure function of what is wanted and what is seen.

Source: kubelet ``kuberuntime_manager.go`` and ``kuberuntime_container.go``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nodealloc._typed import typed_on_error
from nodealloc.errors import ConfigurationError
from nodealloc.podlife._definitions import Definitions
from nodealloc.podlife._draft import Draft
from nodealloc.podlife._init_walk import next_plain, walk_init
from nodealloc.podlife._plan import PodPlan, Stop, StopReason, Why
from nodealloc.podlife._rules import RIGHT
from nodealloc.podlife._sandbox import sandbox_need
from nodealloc.podspec import Container, Pod, RestartPolicy
from nodealloc.runtime import PodReport, RunState

if TYPE_CHECKING:
    from nodealloc.podlife._newest import Latest
    from nodealloc.podlife._plan import PodSeen
    from nodealloc.podlife._rules import Rules
    from nodealloc.podlife._sandbox import SandboxNeed

__all__ = ["plan_pod", "stops_of"]

# A member of an enum costs a call at each use before Python 3.12, and these are used for every container.
_CREATED: Final = RunState.CREATED
_EXITED: Final = RunState.EXITED
_RUNNING: Final = RunState.RUNNING
_UNKNOWN: Final = RunState.UNKNOWN
_POLICY_NEVER: Final = RestartPolicy.NEVER
_POLICY_ON_FAILURE: Final = RestartPolicy.ON_FAILURE


@typed_on_error
def plan_pod(
    pod: Pod, seen: PodSeen, /, *, definitions: Definitions | None = None, rules: Rules = RIGHT
) -> PodPlan:
    """Decide what is to be done for a pod next.

    Args:
        pod: As it is wanted.
        seen: As it is, and what is remembered of it.
        definitions: `Definitions.of(pod)`, which costs more than the plan; reckoned where it is None.
        rules: The right ones, or the kubelet's.

    Raises:
        ConfigurationError: What was seen is another pod's.

    Source: kubelet ``kuberuntime_manager.go``.
    """
    if seen.report.uid != pod.uid:
        raise ConfigurationError(
            f"plan_pod: the pod is {pod.uid}, and the report is of pod {seen.report.uid}; "
            "inspect the pod by its uid"
        )
    made = definitions or Definitions.of(pod)
    # What never starts again is not ended for a new sandbox.
    follows = rules.follows_edits and pod.restart_policy is not _POLICY_NEVER
    need = sandbox_need(
        seen.report, host_network=pod.host_network, definitions=made if follows else None, rules=rules
    )
    draft = Draft(pod, seen, made, rules)
    if draft.is_deleted and rules.leaves_deleted:
        draft.ends = True
        _give_reason(draft, Why.DELETED)
    elif need.changed:
        _in_new_sandbox(draft, need)
    else:
        _in_present_sandbox(draft, need.sandbox_id)
    return draft.plan(need)


@typed_on_error
def stops_of(plan: PodPlan, report: PodReport, /, *, rules: Rules = RIGHT) -> tuple[Stop, ...]:
    """Every container that a plan stops, by id; all that live where the pod ends.

    Args:
        plan: What was decided.
        report: What it was decided from.
        rules: `keeps_probe_stop`.
    """
    if not plan.ends:
        return plan.stops
    own = {one.container_id: one for one in plan.stops} if rules.keeps_probe_stop else {}
    living = [one.record for one in report.containers if one.record.state is not _EXITED]
    found = [
        own.get(one.id) or Stop(container_id=one.id, name=one.name, reason=StopReason.UNKNOWN)
        for one in living
    ]
    return tuple(sorted(found, key=lambda one: one.container_id))


def _in_new_sandbox(draft: Draft, need: SandboxNeed) -> None:
    pod, newest = draft.pod, draft.newest
    draft.ends = True
    if pod.restart_policy is _POLICY_NEVER and need.attempt and newest:
        _give_reason(draft, Why.POD_ENDS)
        return
    starting: list[Container] = []
    for one in pod.containers:
        latest = newest.get(one.name)
        is_done = latest is not None and latest.succeeded and not draft.is_owed(latest)
        if pod.restart_policy is _POLICY_ON_FAILURE and is_done:
            draft.why[one.name] = Why.SUCCEEDED
        else:
            starting.append(one)
    if not starting and _was_initialized(draft):
        _give_reason(draft, Why.POD_ENDS)
        return
    draft.makes_sandbox = True
    if pod.init_containers:
        # A new sandbox begins at the beginning, whatever ran in the one before.
        first = pod.init_containers[0].name
        draft.start(first, Why.NEW_SANDBOX)
        draft.reason_of(pod.init_containers[1:], Why.WAITS_FOR_TURN)
        draft.reason_of(starting, Why.WAITS_FOR_INIT)
    else:
        for one in starting:
            draft.start(one.name, Why.NEW_SANDBOX)
    draft.reason_of(pod.ephemeral_containers, Why.NEW_SANDBOX)


def _was_initialized(draft: Draft) -> bool:
    """Whether nothing is left to be done before main containers, of a pod that has none to start."""
    pod = draft.pod
    if draft.has_sidecars or draft.rules.keeps_init_progress:
        return any(one.name in draft.newest for one in pod.containers)
    return next_plain(draft).is_done


def _give_reason(draft: Draft, why: Why) -> None:
    pod = draft.pod
    draft.reason_of((*pod.init_containers, *pod.containers, *pod.ephemeral_containers), why)


def _in_present_sandbox(draft: Draft, sandbox_id: str) -> None:
    pod = draft.pod
    for one in pod.ephemeral_containers:
        latest = draft.newest.get(one.name)
        if latest is None:
            draft.start(one.name, Why.NEVER_RAN)
        elif latest.state is _CREATED and draft.rules.keeps_starts:
            draft.start(one.name, Why.CREATED)
        else:
            draft.why[one.name] = Why.RAN_ONCE
    if not walk_init(draft, sandbox_id):
        draft.reason_of(pod.containers, Why.POD_ENDS if draft.ends else Why.WAITS_FOR_INIT)
        return
    stay = False
    for one in pod.containers:
        latest = draft.newest.get(one.name)
        if latest is not None and latest.state is _RUNNING:
            stay = _running(draft, one, latest) or stay
        else:
            stay = _not_running(draft, one, latest) or stay
    if not stay:
        draft.ends = True
        # Sidecars live for the main containers: none is started when those are done.
        draft.starting.difference_update(one.name for one in pod.init_containers)
        draft.reason_of(pod.init_containers, Why.POD_ENDS)


def _running(draft: Draft, one: Container, latest: Latest) -> bool:
    """Decide for a main container that runs; whether the pod goes on for it."""
    name, policy = one.name, draft.pod.restart_policy
    restart = policy is not _POLICY_NEVER
    if draft.is_changed(latest):
        why, reason, message = Why.CHANGED, StopReason.NONE, f"Container {name} definition changed"
        # Another definition is another container: no restart policy speaks of it.
        restart = True
    elif draft.seen.alive.get(latest.id) is False:
        why, reason, message = (
            Why.NOT_ALIVE,
            StopReason.LIVENESS_PROBE,
            f"Container {name} failed liveness probe",
        )
    elif draft.seen.started.get(latest.id) is False:
        why, reason, message = (
            Why.NOT_STARTED,
            StopReason.STARTUP_PROBE,
            f"Container {name} failed startup probe",
        )
    else:
        draft.why[name] = Why.RUNS
        return True
    if restart:
        message += ", will be restarted"
        draft.start(name, why)
    draft.stop(name, latest, why, reason, message)
    return restart


def _not_running(draft: Draft, one: Container, latest: Latest | None) -> bool:
    """Decide for a main container that does not run; whether the pod goes on for it."""
    why, starts = _may_restart(draft, latest)
    if starts and latest is not None and latest.state is _UNKNOWN:
        draft.stop_unknown(one.name, latest, "Container")
    elif starts:
        draft.start(one.name, why)
    else:
        draft.why[one.name] = why
    return starts


def _may_restart(draft: Draft, latest: Latest | None) -> tuple[Why, bool]:
    if draft.is_deleted:
        return Why.DELETED, False
    if latest is None:
        return Why.NEVER_RAN, True
    if latest.state is _UNKNOWN:
        return Why.STATE_UNKNOWN, True
    if latest.state is _CREATED:
        return Why.CREATED, True
    policy = draft.pod.restart_policy
    if draft.is_owed(latest):
        return Why.ENDED, True
    if policy is _POLICY_NEVER:
        return (Why.SUCCEEDED if latest.succeeded else Why.STAYS_ENDED), False
    if policy is _POLICY_ON_FAILURE and latest.succeeded:
        return Why.SUCCEEDED, False
    return (Why.ENDED if latest.succeeded else Why.FAILED), True
