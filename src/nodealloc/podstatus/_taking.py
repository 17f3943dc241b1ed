"""Decide what is kept of a status: versions, times, limits, and what cannot be."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc._typed import typed_on_error
from nodealloc.podfacts import (
    ConditionStatus,
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    PodCondition,
    PodPhase,
    PodStatus,
)
from nodealloc.podspec import Pod
from nodealloc.podstatus._conditions import (
    CONTAINERS_READY,
    DISRUPTION_TARGET,
    OWNED,
    READY,
    ended,
    ready_conditions,
    replaced,
)
from nodealloc.podstatus._containers import LOST, has_run, has_succeeded, runs
from nodealloc.podstatus._merge import StatusOddity, oddities_of, same_status, since
from nodealloc.podstatus._rules import RIGHT, Rules

__all__ = ["Told", "end_status", "leave", "take_status", "with_verdict"]

_WIDEST: Final = 4
"""Bytes of a character at most."""
_REVIVED: Final = "The container was seen alive after it had ended for good"
_MOST_ODDITIES: Final = 16
_MESSAGE_BYTES: Final = 12 * 1024
"""Termination messages of all containers of a pod together."""


@attrs.frozen(kw_only=True)
class Told:
    """What is true of a pod, and how much of it was told.

    Attributes:
        status: What is true.
        version: Counts its changes, from 1.
        is_over: Nothing of the pod runs, or ever will.
        told_version: The newest version that was told; 0 for none.
        told_phase: The phase that was told with it.
        is_leaving: The pod is gone; told that, nothing is left.
        sidecars: Its init containers that keep running; how it ended depends on them.
        oddities: What was seen of it and cannot be, the newest few.
        knows_end: Whether this was decided knowing that the pod ends; forgotten with the process.
    """

    status: PodStatus
    version: int = 1
    is_over: bool = False
    told_version: int = 0
    told_phase: PodPhase | None = None
    is_leaving: bool = False
    sidecars: frozenset[str] = frozenset()
    oddities: tuple[StatusOddity, ...] = ()
    knows_end: bool = False

    @property
    def is_told(self) -> bool:
        """Whether what is true was told."""
        return self.told_version >= self.version

    @property
    def was_told(self) -> bool:
        """Whether anything of the pod was told."""
        return self.told_version > 0

    @property
    def is_told_unready(self) -> bool:
        """Whether a pod that ends was told to be not ready, and nothing else of it is on its way."""
        ready = self.status.condition(READY)
        return self.knows_end and self.is_told and (ready is None or ready.status is not ConditionStatus.TRUE)


@typed_on_error
def take_status(
    known: Told | None,
    pod: Pod,
    status: PodStatus,
    /,
    *,
    source_status: PodStatus | None = None,
    is_over: bool = False,
    always: bool = False,
    static: bool = False,
    now_unix_s: float,
    rules: Rules = RIGHT,
) -> Told | None:
    """What is kept after a new status of a pod; the same where that says nothing new.

    That a pod is over is kept without a new version where its status was the same before.

    Args:
        known: What was kept; None for a pod that nothing is known of.
        pod: Which.
        status: The new status; times of its conditions do not count.
        source_status: What its source holds as its status, for a pod that nothing is known of.
        is_over: Nothing of the pod runs, or ever will.
        always: It counts as new even where it says nothing new.
        static: The pod comes from a source of the node's own.
        now_unix_s: For what changed.
        rules: Whose.

    Source: kubelet ``status/status_manager.go``.
    """
    before = known.status if known else source_status or PodStatus()
    oddities = oddities_of(pod, before, status, rules=rules)
    if oddities and not rules.resolves_oddities:
        return known
    status = _resolved(pod, status, before, oddities)
    timed = tuple(
        since(one, before, now_unix_s) if one.type in OWNED or one.type == DISRUPTION_TARGET else one
        for one in status.conditions
    )
    if before.started_unix_s is not None:
        started = before.started_unix_s
    else:
        started = now_unix_s if status.started_unix_s is None else status.started_unix_s
    status = _normal(attrs.evolve(status, conditions=timed, started_unix_s=started), pod)
    sidecars = frozenset(one.name for one in pod.init_containers if one.restartable)
    if known is None:
        return Told(status=status, is_over=is_over, sidecars=sidecars, oddities=oddities)
    if not always and same_status(known.status, status, rules=rules):
        # Nothing to tell; whoever keeps the pod for others waits for that it is over all the same.
        return attrs.evolve(known, is_over=True) if is_over and not known.is_over else known
    over = is_over or (known.is_over and (rules.ends_static or not static))
    return attrs.evolve(
        known,
        status=status,
        version=known.version + 1,
        is_over=over,
        sidecars=sidecars,
        oddities=tuple(dict.fromkeys((*known.oddities, *oddities)))[-_MOST_ODDITIES:],
    )


def end_status(
    pod: Pod,
    status: PodStatus,
    /,
    *,
    source_status: PodStatus | None = None,
    static: bool = False,
    rules: Rules = RIGHT,
) -> PodStatus:
    """The status of a pod of which nothing is left: what did not end is lost, and its phase is terminal.

    Args:
        pod: Which.
        status: What was kept.
        source_status: What its source holds as its status; only a kubelet's answer depends on it.
        static: The pod comes from a source of the node's own.
        rules: Whose.

    Source: kubelet ``status/status_manager.go``.
    """
    judged = status if rules.knows_begun else source_status or PodStatus()
    sidecars = frozenset(one.name for one in pod.init_containers if one.restartable)
    made = _without_living(status, rules, has_begun=_was_initialized(judged, sidecars, pod))
    if status.is_terminal or (static and not rules.ends_static):
        return made
    return attrs.evolve(made, phase=PodPhase.FAILED)


def leave(known: Told, /, *, now_unix_s: float) -> Told:
    """What is kept of a pod that is gone: its end is told first, and is terminal."""
    if known.is_leaving:
        return known
    status = known.status
    if not status.is_terminal:
        begun = _was_initialized(status, known.sidecars, None)
        status = attrs.evolve(_without_living(status, RIGHT, has_begun=begun), phase=PodPhase.FAILED)
        conditions = status.conditions
        for type_ in (CONTAINERS_READY, READY):
            if status.condition(type_) is not None:
                one = since(ended(type_, PodPhase.FAILED), known.status, now_unix_s)
                conditions = replaced(conditions, one)
        status = attrs.evolve(status, conditions=conditions)
    version = known.version + (status != known.status)
    return attrs.evolve(known, status=status, version=version, is_over=True, is_leaving=True)


def _without_living(status: PodStatus, rules: Rules, *, has_begun: bool) -> PodStatus:
    """What did not end is lost; init containers up to the last one that began."""
    main, init = status.containers, status.init_containers
    if has_begun:
        main = tuple(_lost(one, rules) for one in main)
    last = max((at for at, one in enumerate(init) if has_run(one)), default=0)
    init = tuple(_lost(one, rules) if at <= last else one for at, one in enumerate(init))
    return attrs.evolve(status, containers=main, init_containers=init)


def with_verdict(
    pod: Pod,
    status: PodStatus,
    container_id: str,
    /,
    *,
    ready: bool | None = None,
    started: bool | None = None,
) -> PodStatus:
    """The same status after one verdict of a probe; itself where that changes nothing.

    Args:
        pod: Which.
        status: What was kept.
        container_id: Of the instance, with its scheme; an unknown one changes nothing.
        ready: Whether it is ready now; None leaves that.
        started: Whether it has started; None leaves that.

    Source: kubelet ``status/status_manager.go``.
    """

    def revised(one: ContainerStatus) -> ContainerStatus:
        if one.container_id != container_id:
            return one
        is_ready = one.ready if ready is None else ready
        return attrs.evolve(one, ready=is_ready, started=one.started if started is None else started)

    made = attrs.evolve(
        status,
        init_containers=tuple(map(revised, status.init_containers)),
        containers=tuple(map(revised, status.containers)),
    )
    if made == status or ready is None:
        return made
    counted = made.init_containers + made.containers
    conditions = made.conditions
    for one in ready_conditions(pod, counted, made.phase, others=conditions):
        conditions = replaced(conditions, one)
    return attrs.evolve(made, conditions=conditions)


def _resolved(pod: Pod, status: PodStatus, before: PodStatus, oddities: Iterable[StatusOddity]) -> PodStatus:
    """What cannot be becomes unknown; how it ended when it did stands behind it."""
    odd = {one.container for one in oddities if one.revived}
    if not odd:
        return status

    def unknown(one: ContainerStatus) -> ContainerStatus:
        if one.name not in odd:
            return one
        old = before.container(one.name)
        state = attrs.evolve(LOST, message=_REVIVED, container_id=one.container_id)
        last = one.last_state if old is None or old.state == state else old.state
        return attrs.evolve(one, state=state, last_state=last, ready=False, started=False)

    made = attrs.evolve(
        status,
        init_containers=tuple(map(unknown, status.init_containers)),
        containers=tuple(map(unknown, status.containers)),
    )
    conditions = made.conditions
    for one in ready_conditions(pod, made.init_containers + made.containers, made.phase, others=conditions):
        told = made.condition(one.type)
        # Where it says something else than its containers, that stands.
        if told is not None and (told.status is ConditionStatus.TRUE or told.reason == one.reason):
            conditions = replaced(conditions, one)
    return attrs.evolve(made, conditions=conditions)


def _was_initialized(status: PodStatus, sidecars: frozenset[str], pod: Pod | None) -> bool:
    """Whether main containers could begin; the pod says whether it has init containers, where it is known."""
    if not (pod.init_containers if pod else status.init_containers):
        return True
    if any(has_run(one) for one in status.containers):
        return True
    if not status.init_containers or not (pod is None or _fits(pod, status)):
        return False
    last = status.init_containers[-1]
    if last.name in sidecars:
        return runs(last) and last.started is True
    return has_succeeded(last.last_state) or has_succeeded(last.state)


def _fits(pod: Pod, status: PodStatus) -> bool:
    """Whether the last init container that is told of stands in its place in the pod."""
    at = len(status.init_containers) - 1
    return at < len(pod.init_containers) and pod.init_containers[at].name == status.init_containers[at].name


def _lost(one: ContainerStatus, rules: Rules) -> ContainerStatus:
    if isinstance(one.state, ContainerTerminated) or (rules.waits_unbegun and not has_run(one)):
        return one
    if not rules.running_is_ready:
        return attrs.evolve(one, state=LOST)
    state = attrs.evolve(LOST, container_id=one.container_id)
    return attrs.evolve(one, state=state, ready=False, started=False)


def _normal(status: PodStatus, pod: Pod) -> PodStatus:
    """In whole seconds, in order, and with termination messages of a bearable length."""
    names = {one.name: at for at, one in enumerate(pod.init_containers)}
    count = len(pod.all_containers) + len(pod.ephemeral_containers)
    limit = _MESSAGE_BYTES // count if count else _MESSAGE_BYTES

    def normal(one: ContainerStatus) -> ContainerStatus:
        state, last = _bounded(one.state, limit), _bounded(one.last_state, limit)
        if state is one.state and last is one.last_state:
            return one
        return attrs.evolve(one, state=state, last_state=last)

    init = sorted(status.init_containers, key=lambda one: names.get(one.name, len(names)))
    return attrs.evolve(
        status,
        init_containers=tuple(map(normal, init)),
        containers=tuple(sorted(map(normal, status.containers), key=lambda one: one.name)),
        ephemeral_containers=tuple(
            sorted(map(normal, status.ephemeral_containers), key=lambda one: one.name)
        ),
        conditions=tuple(map(_in_seconds, status.conditions)),
        started_unix_s=_whole(status.started_unix_s),
    )


def _bounded(state: ContainerState | None, limit: int) -> ContainerState | None:
    match state:
        case ContainerRunning(started_unix_s=started):
            return state if _is_whole(started) else attrs.evolve(state, started_unix_s=_whole(started))
        case ContainerTerminated(started_unix_s=started, finished_unix_s=finished, message=message):
            if _is_whole(started) and _is_whole(finished) and len(message) * _WIDEST <= limit:
                return state
            kept = message.encode(errors="replace")[:limit].decode(errors="ignore")
            return attrs.evolve(
                state, message=kept, started_unix_s=_whole(started), finished_unix_s=_whole(finished)
            )
        case _:
            return state


def _in_seconds(one: PodCondition) -> PodCondition:
    at_unix_s = one.last_transition_unix_s
    return one if _is_whole(at_unix_s) else attrs.evolve(one, last_transition_unix_s=_whole(at_unix_s))


def _is_whole(moment_unix_s: float | None) -> bool:
    return moment_unix_s is None or moment_unix_s % 1 == 0


def _whole(moment_unix_s: float | None) -> float | None:
    return None if moment_unix_s is None else float(math.floor(moment_unix_s))
