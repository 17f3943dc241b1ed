"""Checkers of conditions that are told of pods, held against their containers and sandboxes."""

from __future__ import annotations

from nodealloc.podfacts import (
    ConditionStatus,
    ContainerRunning,
    ContainerStatus,
    ContainerTerminated,
    Exited,
    PodStatus,
)
from nodealloc.podspec import Pod
from nodealloc.testing.simulation.node._events import Event, What
from nodealloc.testing.simulation.node._guarantee import Guarantee

__all__ = ["ConditionsFollow"]

_INITIALIZED, _CONTAINERS_READY, _READY = "Initialized", "ContainersReady", "Ready"
_CAN_START = "PodReadyToStartContainers"


class ConditionsFollow(Guarantee):
    """Guarantee 4: what follows from nothing is not told."""

    words = (
        "conditions that are told of a pod follow from its containers, sidecars among them, and its sandbox"
    )

    def heard(self, event: Event, /) -> None:
        """What is said to be true is true of the containers that are told with it."""
        status, pod = event.value, self.pod(event.uid)
        if event.what is not What.TOLD or not isinstance(status, PodStatus) or pod is None:
            return
        told = {one.name: one for one in status.all_containers}
        if _is_true(status, _CONTAINERS_READY):
            counted = (*(one for one in pod.init_containers if one.restartable), *pod.containers)
            unready = [one.name for one in counted if one.name in told and not told[one.name].ready]
            assert not unready, (
                f"{event.uid}: all containers are told to be ready, and {', '.join(unready)} not to be"
            )
        assert not _is_true(status, _READY) or _is_true(status, _CONTAINERS_READY), (
            f"{event.uid} is told to be ready, and its containers not to be"
        )
        if _is_true(status, _INITIALIZED) and not _has_begun(pod, told):
            due = [
                one.name
                for one in pod.init_containers
                if one.name in told and not _is_done(one.restartable, told[one.name])
            ]
            assert not due, f"{event.uid} is told to be initialized, and {', '.join(due)} not to be done"

    def settled(self) -> None:
        """By now the sandbox that is told of is there, and what runs is told to have come so far."""
        ready = {one.record.pod.uid for one in self.environment.containers.sandboxes if one.record.is_ready}
        for uid in [uid for pods in self.environment.pods.values() for uid in pods]:
            status = self.environment.told.get(uid)
            if status is None or not status.containers:
                continue
            assert uid in ready or not _is_true(status, _CAN_START), (
                f"{uid} has no sandbox, and its containers are told to be able to start"
            )
            runs = all(isinstance(one.state, ContainerRunning) for one in status.containers)
            for what in (_CAN_START, _INITIALIZED):
                assert not runs or _is_true(status, what), f"{uid} runs, and {what} is told not to be true"


def _is_true(status: PodStatus, type_: str) -> bool:
    condition = status.condition(type_)
    return condition is not None and condition.status is ConditionStatus.TRUE


def _has_begun(pod: Pod, told: dict[str, ContainerStatus]) -> bool:
    """Whether a main container has run: what comes before it is done."""
    states = (told[one.name].state for one in pod.containers if one.name in told)
    return any(isinstance(one, ContainerRunning | ContainerTerminated) for one in states)


def _is_done(restartable: bool, one: ContainerStatus) -> bool:
    if restartable:
        return one.started is True
    return any(
        isinstance(state, ContainerTerminated) and state.exit == Exited(code=0)
        for state in (one.state, one.last_state)
    )
