"""Decide the conditions that a node tells of a pod."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import attrs

from nodealloc.podfacts import ConditionStatus, ContainerStatus, PodCondition, PodPhase
from nodealloc.podspec import Container, Pod
from nodealloc.podstatus._phase import has_begun
from nodealloc.runtime import PodReport

__all__ = [
    "CONTAINERS_READY",
    "DISRUPTION_TARGET",
    "INITIALIZED",
    "OWNED",
    "READY",
    "READY_TO_START",
    "SCHEDULED",
    "conditions_of",
    "ended",
    "ready_conditions",
    "replaced",
]

SCHEDULED: Final = "PodScheduled"
READY: Final = "Ready"
INITIALIZED: Final = "Initialized"
CONTAINERS_READY: Final = "ContainersReady"
READY_TO_START: Final = "PodReadyToStartContainers"
DISRUPTION_TARGET: Final = "DisruptionTarget"
OWNED: Final = frozenset({SCHEDULED, READY, INITIALIZED, CONTAINERS_READY, READY_TO_START})
"""Conditions that the node alone writes; `DisruptionTarget` it shares with others."""

_TRUE, _FALSE = ConditionStatus.TRUE, ConditionStatus.FALSE
_NO_STATUSES: Final = "UnknownContainerStatuses"
_COMPLETED: Final = "PodCompleted"


def conditions_of(
    pod: Pod,
    statuses: Sequence[ContainerStatus] | None,
    phase: PodPhase,
    /,
    *,
    report: PodReport | None,
    others: Iterable[PodCondition] = (),
) -> tuple[PodCondition, ...]:
    """Ready to start containers, initialized, ready, containers ready: in this order.

    Args:
        pod: What it asks for.
        statuses: Of its init and main containers; None where nothing is known of any.
        phase: As decided already.
        report: What the runtime says of its sandboxes.
        others: Conditions of others, which its readiness gates may name.

    Source: kubelet ``status/generate.go``.
    """
    has_sandbox = report is not None and not report.why_no_sandbox(host_network=pod.host_network)
    can_start = PodCondition(type=READY_TO_START, status=_TRUE if has_sandbox else _FALSE)
    is_through = _initialized(pod, statuses, phase)
    # Of a node's own conditions a gate may name those that do not follow from it.
    there = (*others, can_start, is_through)
    return (can_start, is_through, *ready_conditions(pod, statuses, phase, others=there))


def ready_conditions(
    pod: Pod,
    statuses: Sequence[ContainerStatus] | None,
    phase: PodPhase | None,
    /,
    *,
    others: Iterable[PodCondition] = (),
) -> tuple[PodCondition, PodCondition]:
    """Whether the pod is ready, and whether its containers are."""
    containers = _containers_ready(pod, statuses, phase)
    if containers.status is not _TRUE:
        return attrs.evolve(containers, type=READY), containers
    there: dict[str, PodCondition] = {}
    for one in others:
        there.setdefault(one.type, one)
    lacks = [_gate(one.condition_type, there) for one in pod.readiness_gates]
    if message := ", ".join(filter(None, lacks)):
        gated = PodCondition(type=READY, status=_FALSE, reason="ReadinessGatesNotReady", message=message)
        return gated, containers
    return PodCondition(type=READY, status=_TRUE), containers


def ended(type_: str, phase: PodPhase, /) -> PodCondition:
    """`Ready` or `ContainersReady` of a pod in a terminal phase."""
    reason = _COMPLETED if phase is PodPhase.SUCCEEDED else "PodFailed"
    return PodCondition(type=type_, status=_FALSE, reason=reason)


def replaced(conditions: Iterable[PodCondition], one: PodCondition, /) -> tuple[PodCondition, ...]:
    """With a condition in place of the first of its type, or at the end."""
    found = list(conditions)
    at = next((at for at, other in enumerate(found) if other.type == one.type), len(found))
    found[at : at + 1] = [one]
    return tuple(found)


def _containers_ready(
    pod: Pod, statuses: Sequence[ContainerStatus] | None, phase: PodPhase | None
) -> PodCondition:
    if statuses is None:
        return PodCondition(type=CONTAINERS_READY, status=_FALSE, reason=_NO_STATUSES)
    counted = [one for one in pod.init_containers if one.restartable] + [*pod.containers]
    unknown, unready = _split(counted, statuses, lambda _, status: status.ready)
    if phase is PodPhase.FAILED or (phase is PodPhase.SUCCEEDED and not unknown):
        return ended(CONTAINERS_READY, phase)
    if message := _message(unknown=unknown, unready=unready):
        return PodCondition(
            type=CONTAINERS_READY, status=_FALSE, reason="ContainersNotReady", message=message
        )
    return PodCondition(type=CONTAINERS_READY, status=_TRUE)


def _initialized(pod: Pod, statuses: Sequence[ContainerStatus] | None, phase: PodPhase) -> PodCondition:
    if statuses is None and pod.init_containers:
        return PodCondition(type=INITIALIZED, status=_FALSE, reason=_NO_STATUSES)
    known = statuses or ()
    unknown, incomplete = _split(pod.init_containers, known, _is_through)
    if phase is PodPhase.SUCCEEDED and not unknown:
        return PodCondition(type=INITIALIZED, status=_TRUE, reason=_COMPLETED)
    message = _message(unknown=unknown, incomplete=incomplete)
    # Sidecars that start again do not undo what is done.
    if not message or has_begun(pod, {one.name: one for one in known}):
        return PodCondition(type=INITIALIZED, status=_TRUE)
    return PodCondition(type=INITIALIZED, status=_FALSE, reason="ContainersNotInitialized", message=message)


def _is_through(container: Container, status: ContainerStatus) -> bool:
    return status.started is True if container.restartable else status.ready


def _split(
    containers: Iterable[Container],
    statuses: Sequence[ContainerStatus],
    is_well: Callable[[Container, ContainerStatus], bool],
) -> tuple[list[str], list[str]]:
    """Names of those that nothing is told of, and of those that are not well."""
    told = {one.name: one for one in statuses}
    unknown = [one.name for one in containers if one.name not in told]
    unwell = [one.name for one in containers if one.name in told and not is_well(one, told[one.name])]
    return unknown, unwell


def _message(**names: list[str]) -> str:
    return ", ".join(
        f"containers with {what} status: [{' '.join(which)}]" for what, which in names.items() if which
    )


def _gate(type_: str, there: Mapping[str, PodCondition]) -> str:
    found = there.get(type_)
    if found is None:
        return f'corresponding condition of pod readiness gate "{type_}" does not exist.'
    if found.status is _TRUE:
        return ""
    return f'the status of pod readiness gate "{type_}" is not "True", but {found.status.value}'
