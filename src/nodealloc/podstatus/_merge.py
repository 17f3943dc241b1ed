"""Decide what to send to whoever holds a pod's status too, and whether two statuses differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nodealloc import _attrs as attrs
from nodealloc._typed import typed, typed_on_error
from nodealloc.podfacts import (
    ConditionStatus,
    ContainerStatus,
    ContainerTerminated,
    PodCondition,
    PodStatus,
)
from nodealloc.podspec import Pod, RestartPolicy
from nodealloc.podstatus._conditions import CONTAINERS_READY, DISRUPTION_TARGET, OWNED, READY, ended, replaced
from nodealloc.podstatus._containers import has_succeeded, init_has_succeeded
from nodealloc.podstatus._rules import RIGHT, Rules

__all__ = ["StatusOddity", "merge_status", "oddities_of", "same_status", "since"]


@attrs.frozen(kw_only=True)
class StatusOddity:
    """Something that was seen of a container and cannot be.

    Attributes:
        container: Its name.
        message: What, for people.
        revived: It had ended for good, and was seen alive; else the status tells of
            other containers than the pod has.
    """

    container: str
    message: str
    revived: bool = True


@typed
def merge_status(
    theirs: PodStatus, ours: PodStatus, /, *, could_run: bool, now_unix_s: float | None
) -> PodStatus:
    """What to send to an API server, or to anybody else to whom others write too.

    Conditions of others stay as they have them. A terminal phase is held back
    while containers could run, and a pod in one is not ready.

    Args:
        theirs: The status that they hold.
        ours: The status that is true for the node.
        could_run: Whether containers of the pod may be running.
        now_unix_s: For conditions that change on the way.

    Source: kubelet ``status/status_manager.go``.
    """
    ends = ours.is_terminal and not theirs.is_terminal
    conditions = tuple(one for one in theirs.conditions if one.type not in OWNED)
    for one in ours.conditions:
        if one.type in OWNED:
            conditions = (*conditions, one)
        elif one.type == DISRUPTION_TARGET and ends and not could_run:
            conditions = replaced(conditions, since(one, theirs, now_unix_s))
    made = attrs.evolve(ours, conditions=conditions, carried={**theirs.carried, **ours.carried})
    if ends and could_run:
        made = attrs.evolve(made, phase=theirs.phase, reason=theirs.reason, message=theirs.message)
    return _unready(made, now_unix_s)


@typed_on_error
def same_status(before: PodStatus, after: PodStatus, /, *, rules: Rules = RIGHT) -> bool:
    """Whether a status says nothing new, as far as the node writes it.

    The order of conditions does not count, nor does since when they are as they are.

    Source: kubelet ``status/status_manager.go``.
    """
    if not rules.sees_dropped:
        before = attrs.evolve(before, conditions=_named(before, after))
    if _own(before) != _own(after):
        return False
    return _rest(before) == _rest(after)


def oddities_of(
    pod: Pod, before: PodStatus, after: PodStatus, /, *, rules: Rules = RIGHT
) -> tuple[StatusOddity, ...]:
    """What cannot be, if `before` was true: containers that ended for good, and live.

    A kubelet starts an init container again for which memory ran out, and each of them in another sandbox,
    and takes that for one of these (`resolves_oddities`).

    Source: kubelet ``status/status_manager.go``.
    """
    return tuple(_oddities(pod, before, after, rules))


def since(one: PodCondition, before: PodStatus, now_unix_s: float | None, /) -> PodCondition:
    """The condition with the time since when it is as it is."""
    old = before.condition(one.type)
    at_unix_s = now_unix_s
    if old is not None and old.status is one.status:
        at_unix_s = old.last_transition_unix_s
        if (old.reason, old.message, old.carried) == (one.reason, one.message, one.carried):
            return old
    if one.last_transition_unix_s == at_unix_s:
        return one
    return attrs.evolve(one, last_transition_unix_s=at_unix_s)


def _unready(status: PodStatus, now_unix_s: float | None) -> PodStatus:
    """Not ready, where its phase is terminal."""
    phase = status.phase
    if phase is None or not phase.is_terminal:
        return status
    told = [status.condition(type_) for type_ in (READY, CONTAINERS_READY)]
    if not any(one is not None and one.status is ConditionStatus.TRUE for one in told):
        return status
    conditions = status.conditions
    for type_ in (CONTAINERS_READY, READY):
        conditions = replaced(conditions, since(ended(type_, phase), status, now_unix_s))
    return attrs.evolve(status, conditions=conditions)


def _rest(status: PodStatus) -> tuple[object, ...]:
    """Without what others write."""
    return (
        status.phase,
        status.reason,
        status.message,
        status.init_containers,
        status.containers,
        status.ephemeral_containers,
        status.qos,
        status.pod_ips,
        status.host_ips,
        status.started_unix_s,
    )


def _named(status: PodStatus, other: PodStatus) -> tuple[PodCondition, ...]:
    return tuple(one for one in status.conditions if other.condition(one.type) is not None)


def _own(status: PodStatus) -> Mapping[str, tuple[object, ...]]:
    return {
        one.type: (one.status, one.reason, one.message)
        for one in status.conditions
        if one.type in OWNED or one.type == DISRUPTION_TARGET
    }


def _oddities(pod: Pod, before: PodStatus, after: PodStatus, rules: Rules) -> Iterator[StatusOddity]:
    if pod.restart_policy is RestartPolicy.ALWAYS:
        return
    alive = _alive(after.containers)
    for old in before.containers:
        if _is_final(old, pod, is_done=has_succeeded(old.state)) and old.name in alive:
            yield StatusOddity(container=old.name, message=_revived(f"container {old.name}"))
    alive = _alive(after.init_containers)
    for at, old in enumerate(before.init_containers):
        known = pod.init_containers[at] if at < len(pod.init_containers) else None
        if known is None or known.name != old.name:
            message = f"found mismatch between pod spec and status, container: {old.name}"
            yield StatusOddity(container=old.name, message=message, revived=False)
        elif not known.restartable and old.name in alive:
            is_done = init_has_succeeded(old.state, rules)
            is_another = rules.resolves_oddities and _is_another(old, after)
            if _is_final(old, pod, is_done=is_done) and not is_another:
                yield StatusOddity(container=old.name, message=_revived(f"init container {old.name}"))


def _revived(what: str) -> str:
    return f"terminated {what} attempted illegal transition to non-terminated state"


def _is_final(old: ContainerStatus, pod: Pod, *, is_done: bool) -> bool:
    """Whether it ended, and never starts again; `is_done` where it succeeded."""
    if not isinstance(old.state, ContainerTerminated):
        return False
    return is_done or pod.restart_policy is not RestartPolicy.ON_FAILURE


def _is_another(old: ContainerStatus, after: PodStatus) -> bool:
    """Whether a later instance runs: in another sandbox those that had succeeded run again."""
    now = after.container(old.name)
    had = old.state.container_id if isinstance(old.state, ContainerTerminated) else None
    return now is not None and None not in {had, now.container_id} and now.container_id != had


def _alive(statuses: tuple[ContainerStatus, ...]) -> frozenset[str]:
    return frozenset(one.name for one in statuses if not isinstance(one.state, ContainerTerminated))
