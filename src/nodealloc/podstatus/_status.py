"""Decide all that is told of a pod."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from nodealloc._addresses import told_addresses
from nodealloc._arguments import wrong
from nodealloc._typed import typed_on_error
from nodealloc.podfacts import (
    ConditionStatus,
    ContainerTerminated,
    ExitUnknown,
    PodCondition,
    PodPhase,
    PodStatus,
)
from nodealloc.podspec import qos_class
from nodealloc.podstatus._conditions import (
    DISRUPTION_TARGET,
    OWNED,
    READY,
    READY_TO_START,
    SCHEDULED,
    conditions_of,
    replaced,
)
from nodealloc.podstatus._containers import (
    UNKNOWN,
    ContainerStatuses,
    containers_of,
    has_run,
    has_succeeded,
)
from nodealloc.podstatus._health import with_health
from nodealloc.podstatus._observed import Observed, ToldEnding
from nodealloc.podstatus._phase import phase_of
from nodealloc.podstatus._rules import RIGHT, Rules
from nodealloc.runtime import RunState

__all__ = ["status_of"]

_NOTHING = PodStatus()


@typed_on_error
def status_of(
    observed: Observed,
    previous: PodStatus | None = None,
    /,
    *,
    node_ips: Sequence[str] = (),
    runtime: str = "containerd",
    are_probed: bool = True,
    rules: Rules = RIGHT,
) -> PodStatus:
    """What is to be told of a pod, without the times of its conditions.

    Args:
        observed: What is known of it.
        previous: What was told last; None where nothing was since the start.
        node_ips: Addresses of the node; the family of the first one goes first.
        runtime: Scheme of container ids, as the runtime names itself.
        are_probed: Whether somebody probes the pod by now; only a kubelet's answer depends on it.
        rules: Whose.

    Source: kubelet ``kubelet_pods.go``.
    """
    theirs = observed.source_status or _NOTHING
    before = theirs if previous is None else previous
    pod = observed.pod
    told = containers_of(observed, before, rules, runtime=runtime)
    told = with_health(
        told,
        {one.name: one for one in pod.all_containers},
        observed.health,
        rules,
        previous=before.all_containers,
        are_probed=are_probed,
    )
    if observed.refused and observed.ending is not None:
        return _refused(observed, observed.ending, before, node_ips)
    phase, reason, message = _phase(observed, told, before, rules)
    others = _others(observed, theirs, before)
    own = conditions_of(pod, told.counted, phase, report=observed.report, others=others)
    own = _known(own, observed, before, rules)
    return PodStatus(
        phase=phase,
        reason=reason,
        message=message,
        conditions=(*others, *own, PodCondition(type=SCHEDULED, status=ConditionStatus.TRUE)),
        init_containers=told.init,
        containers=told.main,
        ephemeral_containers=told.ephemeral,
        qos=qos_class(pod),
        pod_ips=_pod_ips(observed, before, node_ips, rules),
        host_ips=_in_order(node_ips, node_ips),
        started_unix_s=before.started_unix_s if previous else observed.noticed_unix_s,
    )


def _refused(observed: Observed, ending: ToldEnding, before: PodStatus, node_ips: Sequence[str]) -> PodStatus:
    """Nothing was made of it, so there is nothing else to tell."""
    return PodStatus(
        phase=PodPhase.FAILED,
        reason=ending.reason,
        message=f"Pod was rejected: {ending.message}",  # a kubelet's words, which people look for
        qos=qos_class(observed.pod),
        host_ips=_in_order(node_ips, node_ips),
        started_unix_s=before.started_unix_s or observed.noticed_unix_s,
    )


def _phase(
    observed: Observed, told: ContainerStatuses, before: PodStatus, rules: Rules
) -> tuple[PodPhase, str, str]:
    """The phase, with its reason and message."""
    theirs = observed.source_status or _NOTHING
    if rules.keeps_end:
        for one in (before, theirs):
            if one.phase is not None and one.phase.is_terminal:
                return one.phase, one.reason, one.message
    fixed = theirs.phase if theirs.phase and theirs.phase.is_terminal else None
    phase = _by_containers(observed, told, before, rules)
    if not phase.is_terminal:
        phase = before.phase if before.phase and before.phase.is_terminal else fixed or phase
    reason = message = ""
    if phase is before.phase:
        reason, message = before.reason or theirs.reason, before.message or theirs.message
    ending = observed.ending
    if ending is not None and _is_due(ending, observed, rules):
        phase, reason, message = PodPhase.FAILED, ending.reason, ending.message
    elif rules.tells_unknown and phase is PodPhase.FAILED and not reason:
        reason, message = _why_unknown(told)
    return fixed or phase, reason, message


def _is_due(ending: ToldEnding, observed: Observed, rules: Rules) -> bool:
    """Whether it is told that somebody ended the pod: once it is over; by a kubelet, a victim before that."""
    if rules.ends_once_over:
        return _is_over(observed, rules)
    return not (ending.disruption and observed.is_over)


def _by_containers(observed: Observed, told: ContainerStatuses, before: PodStatus, rules: Rules) -> PodPhase:
    pod, is_over = observed.pod, _is_over(observed, rules)
    counted = told.counted
    if not rules.stays_running:
        # A kubelet decides the phase before it knows which sidecars have started.
        counted = (*(attrs.evolve(one, started=None) for one in told.init), *told.main)
    phase = phase_of(pod, counted, is_over=is_over, static=observed.static, rules=rules)
    if rules.ends_once_over and phase.is_terminal is not is_over:
        # Not over: held back, for something of it may run. Over: what never began has failed.
        phase = (
            PodPhase.FAILED
            if is_over
            else PodPhase.RUNNING
            if any(map(has_run, told.main))
            else PodPhase.PENDING
        )
    is_up = before.phase is PodPhase.RUNNING or (bool(told.main) and all(map(has_run, told.main)))
    return PodPhase.RUNNING if rules.stays_running and phase is PodPhase.PENDING and is_up else phase


def _is_over(observed: Observed, rules: Rules) -> bool:
    """Whether nothing of it runs or ever will; a report of something that runs has not caught up yet."""
    reported = observed.report.containers if observed.report else ()
    is_alive = rules.ends_once_over and any(one.record.state is RunState.RUNNING for one in reported)
    return observed.is_over and not is_alive


def _why_unknown(told: ContainerStatuses) -> tuple[str, str]:
    """Reason and message for a pod of which nobody knows that it failed; nothing for one that did."""
    ends = {one.name: one.state for one in told.counted if isinstance(one.state, ContainerTerminated)}
    unknown = [name for name, state in ends.items() if isinstance(state.exit, ExitUnknown)]
    failed = [name for name, state in ends.items() if name not in unknown and not has_succeeded(state)]
    if failed or not unknown:
        return "", ""
    return UNKNOWN, f"nobody knows how containers ended: [{' '.join(unknown)}]"


def _others(observed: Observed, theirs: PodStatus, before: PodStatus) -> tuple[PodCondition, ...]:
    """Conditions of others, and whom the pod is a victim of."""
    kept = tuple(one for one in theirs.conditions if one.type not in OWNED)
    victim = before.condition(DISRUPTION_TARGET)
    ending = observed.ending
    if ending is not None and ending.disruption:
        victim = PodCondition(
            type=DISRUPTION_TARGET,
            status=ConditionStatus.TRUE,
            reason=ending.disruption,
            message=ending.message,
        )
    return kept if victim is None else replaced(kept, victim)


def _known(
    own: tuple[PodCondition, ...], observed: Observed, before: PodStatus, rules: Rules
) -> tuple[PodCondition, ...]:
    """With what was told of a sandbox that nobody could ask about, and not ready where the pod ends."""
    sandbox = before.condition(READY_TO_START)
    if observed.report is None and sandbox is not None:
        own = replaced(own, attrs.evolve(sandbox, last_transition_unix_s=None))
    return _unready(own) if rules.ready_falls_first and observed.is_ending else own


def _unready(conditions: tuple[PodCondition, ...]) -> tuple[PodCondition, ...]:
    """Not ready, whatever its containers are: it was decided that it ends."""
    falls = PodCondition(
        type=READY, status=ConditionStatus.FALSE, reason="PodEnding", message="the pod is being ended"
    )
    return tuple(
        falls if one.type == READY and one.status is ConditionStatus.TRUE else one for one in conditions
    )


def _pod_ips(observed: Observed, before: PodStatus, node_ips: Sequence[str], rules: Rules) -> tuple[str, ...]:
    """Its addresses now; those that it had, while it ends or nobody can ask."""
    report = observed.report
    ips = report.ips if report else ()
    if observed.pod.host_network and not ips and rules.names_node:
        ips = tuple(node_ips)
    if rules.keeps_addresses and not ips and (report is None or observed.is_ending):
        ips = before.pod_ips
    return _in_order(ips, node_ips)


def _in_order(ips: Iterable[str], node_ips: Sequence[str]) -> tuple[str, ...]:
    """One address of each family, the node's own family first."""
    try:
        return told_addresses(tuple(ips), tuple(node_ips))
    except ValueError:
        expected = "addresses in a list or tuple, such as ('10.0.0.1',)"
        raise wrong("status_of: node_ips", node_ips, expected) from None
