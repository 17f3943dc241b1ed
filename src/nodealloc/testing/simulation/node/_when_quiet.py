"""Checkers of what is there once all is quiet: what is wanted runs, in one sandbox, or it is told why not."""

from __future__ import annotations

from nodealloc.podfacts import ContainerTerminated, ContainerWaiting, Exited, PodStatus
from nodealloc.podspec import Container, Pod, RestartPolicy
from nodealloc.testing.simulation.node._environment import Environment
from nodealloc.testing.simulation.node._events import Event, What
from nodealloc.testing.simulation.node._guarantee import Guarantee
from nodealloc.testing.simulation.node._resources import RESOURCES

__all__ = ["OneSandbox", "OverIsOver", "WantedRuns"]

_ON_ITS_WAY = frozenset({"", "ContainerCreating", "PodInitializing"})
"""Reasons to wait of a container that nothing is wrong with."""


class WantedRuns(Guarantee):
    """Ours: what an agent is for."""

    words = (
        "when all is quiet, a pod that is wanted has come in, and runs what its policy says, or says why not"
    )

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._boxed: set[str] = set()

    def heard(self, event: Event, /) -> None:
        """Who has had a sandbox: it was let in, and nothing that it needs was missing."""
        if event.what is What.SANDBOX_MADE:
            self._boxed.add(event.uid)

    def settled(self) -> None:
        """By now everybody is there."""
        environment = self.environment
        for pods in environment.pods.values():
            for uid, pod in pods.items():
                is_over = uid in environment.deletions or environment.overdue_s(uid) > 0
                if is_over or environment.is_over(uid):
                    continue
                # Others may have what it waits for: a name, or devices that are ill.
                may_wait = environment.is_held_back(uid) or _has_devices(pod)
                assert uid in self._boxed or may_wait, f"{uid} is wanted, and never had a sandbox"
                if uid in self._boxed:
                    self._runs(pod, environment.told.get(uid))

    def _runs(self, pod: Pod, told: PodStatus | None) -> None:
        runs = {
            one.record.name for one in self.environment.containers.running if one.record.pod.uid == pod.uid
        }
        for one in pod.containers:
            status = None if told is None else told.container(one.name)
            state = None if status is None else status.state
            is_done = isinstance(state, ContainerTerminated) and _stays_ended(pod, state)
            says_why = isinstance(state, ContainerWaiting) and state.reason not in _ON_ITS_WAY
            assert one.name in runs or is_done or says_why, (
                f"{pod.uid}/{one.name} is wanted and does not run, and nobody is told why"
            )


def _stays_ended(pod: Pod, state: ContainerTerminated) -> bool:
    """Whether by its policy a container that ended so does not start again."""
    if pod.restart_policy is RestartPolicy.ON_FAILURE:
        return state.exit == Exited(code=0)
    return pod.restart_policy is RestartPolicy.NEVER


def _has_devices(pod: Pod) -> bool:
    return any(_asks(one) for one in pod.all_containers)


def _asks(container: Container) -> bool:
    return bool(container.requests.keys() & RESOURCES.keys())


class OneSandbox(Guarantee):
    """Guarantee 3, of what containers run in."""

    words = "when all is quiet, a pod has one sandbox that is ready, and what runs of it runs in that one"

    def settled(self) -> None:
        """By now any other one has ended."""
        containers = self.environment.containers
        ready: dict[str, list[str]] = {}
        for one in containers.sandboxes:
            if one.record.is_ready:
                ready.setdefault(one.record.pod.uid, []).append(one.record.id)
        for uid, boxes in ready.items():
            if self.environment.is_over(uid) and not containers.strange.isdisjoint(boxes):
                continue  # of a pod that is over, what somebody else made stays where nothing runs in it
            assert len(boxes) == 1, f"{uid} has several sandboxes that are ready: {', '.join(boxes)}"
        for each in containers.running:
            uid, box = each.record.pod.uid, each.record.sandbox_id
            assert box in ready.get(uid, ()), f"{uid}/{each.record.name} runs in {box}, which is not ready"


class OverIsOver(Guarantee):
    """Guarantee 11, for a pod that its source keeps: a call that nobody waits for may come after its end."""

    words = "when all is quiet nothing runs of a pod that was told to be over, however late it started"

    def settled(self) -> None:
        """By now whatever came late was ended."""
        for one in self.environment.containers.running:
            uid = one.record.pod.uid
            over = self.environment.is_over(uid)
            assert not over, f"{uid} was told to be over, and {one.record.name} of it runs"
