"""Decide what is told of each container: what it does, how it ended before, how often it began."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc.podfacts import (
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    Exited,
    ExitUnknown,
    PodStatus,
)
from nodealloc.podspec import Container, Json, RestartPolicy
from nodealloc.podstatus._observed import Observed
from nodealloc.podstatus._rules import Rules
from nodealloc.runtime import OOM_KILLED, ContainerEnd, ContainerReport, Exit, RunState

__all__ = [
    "LOST",
    "UNKNOWN",
    "ContainerStatuses",
    "containers_of",
    "has_run",
    "has_succeeded",
    "init_has_succeeded",
    "runs",
]

UNKNOWN: Final = "ContainerStatusUnknown"
"""Reason of an end of which nobody knows how it came."""
_MOUNTS: Final = "volumeMounts"
_LOST: Final = Exited(code=255)
"""What runtimes say of a container that ended while they were away."""
LOST: Final = ContainerTerminated(
    exit=ExitUnknown(),
    reason=UNKNOWN,
    message="The container could not be located when the pod was terminated",
)
"""It ran, nobody saw how it ended, and the pod is being ended."""
_DELETED: Final = attrs.evolve(
    LOST,
    message="The container could not be located when the pod was deleted.  The container used to be Running",
)


@attrs.frozen(kw_only=True)
class ContainerStatuses:
    """What is told of a pod's containers, by kind.

    Attributes:
        init: Of init containers, in the pod's order.
        main: Of main ones, by name.
        ephemeral: Of ephemeral ones, by name.
    """

    init: tuple[ContainerStatus, ...] = ()
    main: tuple[ContainerStatus, ...] = ()
    ephemeral: tuple[ContainerStatus, ...] = ()

    @property
    def counted(self) -> tuple[ContainerStatus, ...]:
        """Those that the pod's phase and conditions depend on."""
        return self.init + self.main


@attrs.frozen
class _Instance:
    """One run of a container, from a report or from what was kept of it."""

    id: str
    attempt: int
    created_unix_s: float
    state: RunState
    ended: ContainerTerminated | None = None
    started_unix_s: float | None = None
    image: str = ""
    image_id: str = ""

    @property
    def order(self) -> tuple[int, float, str]:
        return self.attempt, self.created_unix_s, self.id


def containers_of(
    observed: Observed, previous: PodStatus, rules: Rules, /, *, runtime: str
) -> ContainerStatuses:
    """The statuses of all containers, without whether they are ready.

    Args:
        observed: What is known now.
        previous: What was told last.
        rules: Whose.
        runtime: Scheme of container ids.

    Source: kubelet ``kubelet_pods.go``.
    """
    decide = _Statuses(observed, rules, runtime)
    pod = observed.pod
    return ContainerStatuses(
        init=decide.all_of(pod.init_containers, previous.init_containers, are_init=True),
        main=_by_name(decide.all_of(pod.containers, previous.containers)),
        ephemeral=_by_name(decide.all_of(pod.ephemeral_containers, previous.ephemeral_containers)),
    )


def runs(status: ContainerStatus, /) -> bool:
    """Whether it is told to run."""
    return isinstance(status.state, ContainerRunning)


def has_run(status: ContainerStatus, /) -> bool:
    """Whether it has begun at least once."""
    return not isinstance(status.state, ContainerWaiting) or isinstance(
        status.last_state, ContainerTerminated
    )


def has_succeeded(state: ContainerState | None, /) -> bool:
    """Whether it has ended with 0."""
    if not isinstance(state, ContainerTerminated):
        return False
    return isinstance(state.exit, Exited) and state.exit.code == 0


def init_has_succeeded(state: ContainerState | None, rules: Rules, /) -> bool:
    """The same of an init container: where memory ran out it may have lost a child, whatever it left with.

    A kubelet, which starts it again all the same, goes by what it left with (`resolves_oddities`).
    """
    if not has_succeeded(state):
        return False
    is_short = isinstance(state, ContainerTerminated) and state.reason == OOM_KILLED
    return not (rules.resolves_oddities and is_short)


def _before(old: ContainerStatus, container_id: str) -> ContainerTerminated | None:
    """How the instance before this one ended, from what was told."""
    for state in (old.state, old.last_state):
        if isinstance(state, ContainerTerminated) and state.container_id != container_id:
            return state
    return None


def _with_mounts(
    status: ContainerStatus, container: Container, old: ContainerStatus | None
) -> ContainerStatus:
    """With its mounts: those that were told of the same instance, else as the pod says them.

    Nothing here makes one read-only all the way down; a kubelet before may have.
    """
    read_only: dict[str, Json] = {"readOnly": True, "recursiveReadOnly": "Disabled"}
    mounts: Json = [
        {"name": use.name, "mountPath": use.path, **(read_only if use.read_only else {})}
        for use in container.volumes
        if not use.block
    ]
    if old is not None and old.container_id is not None and old.container_id == status.container_id:
        mounts = old.carried.get(_MOUNTS, mounts)
    if status.carried.get(_MOUNTS, []) == mounts:
        return status
    return attrs.evolve(status, carried={**status.carried, _MOUNTS: mounts})


def _by_name(statuses: Iterable[ContainerStatus]) -> tuple[ContainerStatus, ...]:
    return tuple(sorted(statuses, key=lambda one: one.name))


class _Statuses:
    """One pass over a pod's containers."""

    def __init__(self, observed: Observed, rules: Rules, runtime: str) -> None:
        self._observed = observed
        self._rules = rules
        self._scheme = f"{runtime}://"
        self._instances = self._by_container()

    def all_of(
        self, containers: Sequence[Container], previous: Iterable[ContainerStatus], *, are_init: bool = False
    ) -> tuple[ContainerStatus, ...]:
        old = {one.name: one for one in previous}
        return tuple(self._status(one, old.get(one.name), is_init=are_init) for one in containers)

    def _by_container(self) -> Mapping[str, Sequence[_Instance]]:
        """All instances, the newest first."""
        found: dict[str, list[_Instance]] = {}
        reported: set[str] = set()
        for one in self._observed.report.containers if self._observed.report else ():
            reported.add(one.record.id)
            found.setdefault(one.record.name, []).append(self._reported(one))
        if self._rules.keeps_past:
            for id_, end in self._observed.ends.items():
                if id_ not in reported:
                    found.setdefault(end.name, []).append(self._kept(id_, end))
        newest = attrgetter("order" if self._rules.keeps_past else "created_unix_s")
        for instances in found.values():
            instances.sort(key=newest, reverse=True)
        return found

    def _reported(self, one: ContainerReport) -> _Instance:
        record = one.record
        ended = None
        if one.exit is not None:
            ended = self._ended(record.id, one.exit, one)
        return _Instance(
            record.id,
            record.attempt,
            record.created_unix_s or 0.0,
            record.state,
            ended,
            one.started_unix_s,
            record.image,
            record.image_id,
        )

    def _said(self, how: Exit, reason: str) -> tuple[Exit, str]:
        """How a container ended, and in which word; a kubelet takes the runtime's code for not knowing."""
        if isinstance(how, Exited):
            return how, reason
        is_told = not self._rules.tells_unknown and reason not in {"", UNKNOWN}
        return (_LOST, reason) if is_told else (how, UNKNOWN)

    def _ended(self, id_: str, how: Exit, one: ContainerReport | ContainerEnd) -> ContainerTerminated:
        """The end of an instance, as its report or what was kept of it says it."""
        exit_, reason = self._said(how, one.reason)
        return ContainerTerminated(
            exit=exit_,
            reason=reason,
            message=one.message,
            started_unix_s=one.started_unix_s,
            finished_unix_s=one.finished_unix_s,
            container_id=self._scheme + id_,
        )

    def _kept(self, id_: str, end: ContainerEnd) -> _Instance:
        ended = self._ended(id_, end.exit, end)
        return _Instance(
            id_, end.attempt, 0.0, RunState.EXITED, ended, image=end.image, image_id=end.image_id
        )

    def _status(self, container: Container, old: ContainerStatus | None, *, is_init: bool) -> ContainerStatus:
        instances = self._instances.get(container.name, ())
        unasked = self._observed.report is None and self._rules.keeps_past
        if (
            unasked
            and instances
            and old is not None
            and runs(old)
            and instances[0].attempt < old.restart_count
        ):
            status = old  # what is kept is of instances before it, and nobody has asked about it yet
        elif instances:
            status = self._of_newest(container, instances, old)
        else:
            status = self._without_instance(container, old)
        if self._rules.keeps_past:
            counts = (status.restart_count, old.restart_count if old else 0)
            count = max(*counts, self._observed.counts.get(container.name, 0))
            if count != status.restart_count:
                status = attrs.evolve(status, restart_count=count)
        failure = self._observed.start_failures.get(container.name)
        is_owed = self._is_owed(instances)
        # Of a pod that ends nothing starts again that was told to have ended, also once no record is left.
        is_over = self._rules.ends_once_over and self._observed.is_ending and not instances
        waits = failure is not None and not (is_over and isinstance(status.state, ContainerTerminated))
        if is_owed or (waits and self._starts_again(container, instances, is_init=is_init)):
            ended = status.state if isinstance(status.state, ContainerTerminated) else status.last_state
            state = ContainerWaiting(reason="ContainerCreating")
            if failure is not None:
                state = ContainerWaiting(reason=failure.reason, message=failure.message)
            ready = status.ready and not self._rules.running_is_ready
            status = attrs.evolve(status, state=state, last_state=ended, ready=ready)
        allocated = self._observed.devices.get(container.name, ())
        if allocated != status.allocated:
            status = attrs.evolve(status, allocated=allocated)
        return _with_mounts(status, container, old)

    def _without_instance(self, container: Container, old: ContainerStatus | None) -> ContainerStatus:
        """Nothing is reported of it: it is still to begin, or it is lost."""
        reason = "PodInitializing" if self._observed.pod.init_containers else "ContainerCreating"
        status = ContainerStatus(
            name=container.name, image=container.image, state=ContainerWaiting(reason=reason)
        )
        if old is None:
            return status
        unasked = self._observed.report is None and self._rules.keeps_past
        if isinstance(old.state, ContainerTerminated) or unasked:
            return old
        status = attrs.evolve(status, restart_count=old.restart_count, last_state=old.last_state)
        if not runs(old):
            return status
        if self._rules.keeps_past:
            return attrs.evolve(old, state=attrs.evolve(_DELETED, container_id=old.container_id), ready=False)
        if isinstance(old.last_state, ContainerTerminated):
            return status
        again = 0 if self._observed.pod.deletion_timestamp else 1
        return attrs.evolve(status, last_state=_DELETED, restart_count=old.restart_count + again)

    def _of_newest(
        self, container: Container, instances: Sequence[_Instance], old: ContainerStatus | None
    ) -> ContainerStatus:
        newest = instances[0]
        count = newest.attempt
        was_running = old is not None and runs(old)
        state = self._state(newest, was_running=was_running)
        if newest.state is RunState.UNKNOWN and was_running and old is not None:
            count = max(count, old.restart_count) if self._rules.keeps_past else old.restart_count + 1
        last: ContainerState | None = None
        # One that was made and never started has not ended: what people read is the end before it.
        earlier = [
            one for one in instances[1:] if not self._rules.keeps_past or one.state is not RunState.CREATED
        ]
        if earlier:
            last = self._state(earlier[0], was_running=was_running)
        elif old is not None and self._rules.keeps_past:
            last = _before(old, self._scheme + newest.id)
        # Of what was gone before it was seen the image was told before, or nobody knows it.
        told = old if old is not None and old.container_id == self._scheme + newest.id else None
        return ContainerStatus(
            name=container.name,
            state=state,
            last_state=last,
            restart_count=count,
            image=newest.image or (told.image if told else "") or container.image,
            image_id=newest.image_id or (told.image_id if told else None),
            container_id=self._scheme + newest.id,
        )

    def _state(self, one: _Instance, *, was_running: bool) -> ContainerState:
        if one.state is RunState.RUNNING:
            return ContainerRunning(started_unix_s=one.started_unix_s)
        if one.ended is not None:
            return one.ended
        if one.state is RunState.UNKNOWN and was_running:
            return LOST
        return ContainerWaiting()

    def _is_owed(self, instances: Sequence[_Instance]) -> bool:
        """Whether it was stopped to start again: by its policy it may have ended for good.

        A kubelet tells nothing of it between the two.
        """
        observed = self._observed
        if not instances or not self._rules.resolves_oddities or observed.is_ending:
            return False
        return instances[0].state is RunState.EXITED and instances[0].id in observed.owed

    def _starts_again(self, container: Container, instances: Sequence[_Instance], *, is_init: bool) -> bool:
        """Whether it is to be started when its time has come."""
        observed, rules = self._observed, self._rules
        if rules.waits_unbegun and not instances:
            return True
        if observed.pod.deletion_timestamp or (rules.ends_once_over and observed.is_ending):
            return False
        if not instances:
            return True
        newest = instances[0]
        if newest.state is not RunState.EXITED:
            return newest.state is not RunState.RUNNING
        if rules.sidecars_restart and is_init and container.restartable:
            return True
        policy = observed.pod.restart_policy
        succeeded = init_has_succeeded(newest.ended, rules) if is_init else has_succeeded(newest.ended)
        if policy is RestartPolicy.NEVER or (is_init and succeeded):
            return False
        return not (policy is RestartPolicy.ON_FAILURE and succeeded)
