"""Decide a pod's phase from what is told of its containers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nodealloc import _attrs as attrs
from nodealloc.podfacts import (
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    PodPhase,
)
from nodealloc.podspec import Container, Pod, RestartPolicy
from nodealloc.podstatus._containers import has_run, has_succeeded
from nodealloc.podstatus._rules import RIGHT, Rules

__all__ = ["has_begun", "phase_of"]


@attrs.define
class _Count:
    """Main containers, and sidecars where they run, by what they do."""

    running: int = 0
    waiting: int = 0
    stopped: int = 0
    succeeded: int = 0
    unknown: int = 0

    def main(self, status: ContainerStatus | None) -> None:
        state = None if status is None else status.state
        match state:
            case ContainerRunning():
                self.running += 1
            case ContainerTerminated():
                self.stopped += 1
                self.succeeded += has_succeeded(state)
            case ContainerWaiting():
                has_run = status is not None and isinstance(status.last_state, ContainerTerminated)
                self.stopped += has_run
                self.waiting += not has_run
            case None:
                self.unknown += 1

    def sidecar(self, status: ContainerStatus | None) -> bool:
        """Counts it; whether the pod waits for its start."""
        match None if status is None else status.state:
            case ContainerRunning():
                self.running += 1
                return status is None or not status.started
            case ContainerWaiting() if status is not None and not has_run(status):
                self.waiting += 1
                return True
            case None:
                self.unknown += 1
                return status is not None
            case _:
                return False


def phase_of(
    pod: Pod,
    statuses: Iterable[ContainerStatus],
    /,
    *,
    is_over: bool = False,
    static: bool = False,
    rules: Rules = RIGHT,
) -> PodPhase:
    """How a pod is, from its containers alone.

    Args:
        pod: What it asks for.
        statuses: Of init and main containers, in any order.
        is_over: Nothing of it runs, or will run again.
        static: It comes from a source of the node's own.
        rules: Whose.

    Source: kubelet ``kubelet_pods.go``.
    """
    told = {one.name: one for one in statuses}
    failed, waits = _initialized(pod.init_containers, told)
    if failed and pod.restart_policy is RestartPolicy.NEVER:
        return PodPhase.FAILED
    count = _Count()
    starts = [count.sidecar(told.get(one.name)) for one in pod.init_containers if one.restartable]
    for one in pod.containers:
        count.main(told.get(one.name))
    if waits or (any(starts) and not has_begun(pod, told)) or count.waiting:
        return PodPhase.PENDING
    if count.unknown:
        return PodPhase.PENDING
    if count.running:
        return PodPhase.RUNNING
    if not count.stopped:
        return PodPhase.PENDING
    return _stopped(pod, count, is_over=is_over and (rules.ends_static or not static))


def has_begun(pod: Pod, told: Mapping[str, ContainerStatus], /) -> bool:
    """Whether a main container is told to run, or to have ended: what comes before them is done."""
    states = (told[one.name].state for one in pod.containers if one.name in told)
    return any(isinstance(state, (ContainerRunning, ContainerTerminated)) for state in states)


def _initialized(containers: Iterable[Container], told: Mapping[str, ContainerStatus]) -> tuple[bool, bool]:
    """Of init containers that have to end: whether one failed, and whether one is waited for."""
    failed = waits = False
    for one in containers:
        if one.restartable:
            continue
        status = told.get(one.name)
        ended: ContainerState | None = None
        if status is not None:
            is_waiting = isinstance(status.state, ContainerWaiting)
            ended = status.last_state if is_waiting else status.state
        if isinstance(ended, ContainerTerminated):
            failed |= not has_succeeded(ended)
        else:
            waits = True
    return failed, waits


def _stopped(pod: Pod, count: _Count, *, is_over: bool) -> PodPhase:
    """All have begun, and none runs."""
    if pod.restart_policy is RestartPolicy.ALWAYS and not is_over:
        return PodPhase.RUNNING
    if count.stopped == count.succeeded:
        return PodPhase.SUCCEEDED
    if pod.restart_policy is RestartPolicy.NEVER or is_over:
        return PodPhase.FAILED
    return PodPhase.RUNNING
