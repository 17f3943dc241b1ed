"""What every checker of a guarantee shares."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from typing import ClassVar

from nodealloc import _attrs as attrs
from nodealloc.podfacts import ConditionStatus, ContainerTerminated, ContainerWaiting, PodStatus
from nodealloc.podspec import Container, Pod, Probe
from nodealloc.testing.simulation.node._environment import FILE, Environment
from nodealloc.testing.simulation.node._events import STOP, Event, Ran, What
from nodealloc.testing.simulation.node._pods import POST_START, PRE_STOP

__all__ = [
    "Guarantee",
    "ProbesHeard",
    "RoomHeard",
    "StartsHeard",
    "id_told",
    "is_ready",
    "is_victim",
]


class Guarantee:
    """Listens to what happens; one of your own overrides `heard`, `settled` or `emptied`.

    Attributes:
        words: What is guaranteed, in a sentence.
        environment: What is true.
    """

    words: ClassVar[str] = ""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment

    def heard(self, event: Event, /) -> None:
        """Something happened; raises `AssertionError` where it must not have."""

    def settled(self) -> None:
        """All is quiet and nothing strikes any more; raises `AssertionError` likewise."""

    def emptied(self) -> None:
        """All is quiet, and no pod is wanted any more; raises `AssertionError` likewise."""

    def pod(self, uid: str) -> Pod | None:
        """A pod as it was last wanted."""
        return self.environment.known.get(uid)

    def container(self, event: Event) -> Container | None:
        """The container that an event is about, as its pod defines it."""
        pod = self.pod(event.uid)
        return next((one for one in pod.all_containers if one.name == event.name), None) if pod else None

    def wanted_from(self, image: str) -> list[tuple[str, Container]]:
        """Uid and container of all that was ever to run from an image, in any form of its pod."""
        environment = self.environment
        forms = ((uid, form) for uid in environment.known for form in environment.forms.of(uid))
        return [(uid, one) for uid, form in forms for one in form.all_containers if one.image == image]

    def is_outdated(self, event: Event) -> bool:
        """Whether a container was made from another image than is wanted of it now."""
        container, image = self.container(event), self.environment.containers.image_of(event.id)
        return container is not None and bool(image) and container.image != image

    def is_init(self, event: Event) -> bool:
        """Whether an event is about an init container that has an end."""
        pod = self.pod(event.uid)
        return pod is not None and any(
            one.name == event.name and not one.restartable for one in pod.init_containers
        )

    def main_runs(self, uid: str) -> set[str]:
        """Ids of the pod's main containers that run."""
        pod = self.pod(uid)
        return self._running(uid, {one.name for one in pod.containers} if pod else set())

    def serving(self, uid: str) -> set[str]:
        """Ids of the pod's containers that run and that its readiness depends on: sidecars count."""
        pod = self.pod(uid)
        mains = pod.containers if pod else ()
        every = pod.all_containers if pod else ()
        return self._running(uid, {one.name for one in every if one.restartable or one in mains})

    def _running(self, uid: str, names: Collection[str]) -> set[str]:
        return {
            one.record.id
            for one in self.environment.containers.running
            if one.record.pod.uid == uid and one.record.name in names
        }


@attrs.define
class _Start:
    """A start of which nobody was told yet."""

    uid: str
    name: str
    attempt: int
    sandbox: str
    is_forgotten: bool = False
    is_killed: bool = False


class StartsHeard(Guarantee):
    """One that knows which starts an agent can know of.

    An agent remembers a number before it makes the instance. Where it is killed between the start and
    the next thing that it remembers, the runtime's record says that the instance has run. If that is gone
    too, nothing is left in which this differs from an instance that was never made, whose number stands:
    the same number is taken again, so that a kill before a start counts no restart that never was. The same
    holds for what somebody else started here before the agent's first life, until an agent asks who runs.

    Attributes:
        starts: A pod's uid and a container's name to attempts and sandboxes of instances that have started.
    """

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.starts: defaultdict[tuple[str, str], set[tuple[int, str]]] = defaultdict(set)
        self._untold: dict[str, _Start] = {}

    def hear_start(self, event: Event) -> None:
        """Keep a start, and leave out one that nobody can know of; `heard` calls it after its own checks."""
        if event.what is What.STARTED:
            box = self.environment.containers.sandbox_of(event.id)
            self.starts[event.uid, event.name].add((event.attempt, box))
            self._untold[event.id] = _Start(event.uid, event.name, event.attempt, box)
        elif event.what is What.TOLD and isinstance(event.value, PodStatus) and self._untold:
            self._leave_told(event.uid, event.value)
        elif event.what is What.FORGOT and event.id in self._untold:
            self._untold[event.id].is_forgotten = True
            self._leave_lost()
        elif event.what is What.KILLED and self._untold:
            for one in self._untold.values():
                one.is_killed = True
            self._leave_lost()

    def _leave_told(self, uid: str, status: PodStatus) -> None:
        runs, ended = dict[str, int](), set[str]()
        for told in status.all_containers:
            if not isinstance(told.state, ContainerWaiting | None):
                runs[told.name] = told.restart_count
            elif isinstance(told.last_state, ContainerTerminated):
                # The count of one that waits may be that of the next instance.
                ended.add(id_told(told.last_state.container_id))
        for made, one in tuple(self._untold.items()):
            if made in ended or (one.uid == uid and runs.get(one.name, -1) >= one.attempt):
                del self._untold[made]

    def _leave_lost(self) -> None:
        for made, one in tuple(self._untold.items()):
            is_known = not one.is_killed and made not in self.environment.containers.unseen
            if one.is_forgotten and not is_known:
                self.starts[one.uid, one.name].discard((one.attempt, one.sandbox))
                del self._untold[made]


def id_told(told: str | None) -> str:
    """The runtime's id, of what is told of an instance; "" for none."""
    return (told or "").rpartition("/")[2]


class ProbesHeard(Guarantee):
    """One that knows which containers may be killed since a probe says so.

    Attributes:
        stopped_alone: Ids of containers that were, or are about to be, asked to end though their pods go on.
        stopped_to_start: Those of them that start again, whatever they left with.
    """

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._failed: Counter[tuple[str, str]] = Counter()
        self.stopped_alone: set[str] = set()
        self.stopped_to_start: set[str] = set()

    def hear_stop(self, event: Event) -> None:
        """Who is asked to end alone; `heard` calls it besides `hear_probe`."""
        if _is_on_its_way(event):
            self.stopped_alone.add(event.id)
        if event.what is What.SIGNALLED and event.uid not in self.environment.read and self.ends_alone(event):
            self.stopped_alone.add(event.id)
            if not self.hook_failed(event):  # else its policy decides
                self.stopped_to_start.add(event.id)

    def hear_probe(self, event: Event) -> None:
        """Count what a probe answered; `heard` calls it."""
        if isinstance(event.value, Ran) and (event.value.failed or _is_lost(event.value)):
            self._failed[event.id, event.value.command] += 1

    def failed_probes(self, event: Event) -> list[Probe]:
        """Probes for which a container is killed that failed often enough."""
        container = self.container(event)
        probes = (container.liveness_probe, container.startup_probe) if container is not None else ()
        return [
            one
            for one in probes
            if one is not None
            and one.exec is not None
            and self._has_failed(event.id, one.exec.command[0]) >= one.failure_threshold
        ]

    def _has_failed(self, container_id: str, command: str) -> int:
        """How often it failed, as whoever asks has heard."""
        late = self.environment.containers.asked_late
        return self._failed[container_id, command] + late[container_id, command]

    def ends_alone(self, event: Event) -> bool:
        """Whether a container may have to end though its pod goes on.

        A probe or its hook failed, it is to run from something else, or the runtime told of it that nobody
        knows how it is, or that its pod has several sandboxes.
        """
        if (
            self.is_outdated(event)
            or self.failed_probes(event)
            or self.environment.outages.is_excused(event.id)
        ):
            return True
        return self.hook_failed(event)

    def hook_failed(self, event: Event) -> bool:
        """Whether a container is to end for its post-start hook."""
        return self._failed[event.id, POST_START] > 0


class RoomHeard(ProbesHeard):
    """One that knows when a pod may have to make room for a critical one."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._waiting: set[str] = set()
        self._left_s = -_DECIDED_S

    def hear_critical(self, event: Event) -> None:
        """Who is critical and waits to come in, and when the last one did, or went; `heard` calls it."""
        if event.what is What.WANTED and event.uid in self.environment.pods[FILE]:
            self._waiting.add(event.uid)
        elif event.uid in self._waiting and (event.what in _IN_OR_GONE or _is_over(event.value)):
            # With a sandbox it has all that it asked for.
            self._waiting.discard(event.uid)
            self._left_s = event.at_s

    def makes_room(self, event: Event) -> bool:
        """Whether a critical pod waits, or did a moment ago, and this one is none: static pods are.

        Where nothing goes wrong but kills it was told before that it is this one that makes room.
        """
        may = bool(self._waiting) or event.at_s - self._left_s < _DECIDED_S
        if not may or event.uid in self.environment.pods[FILE]:
            return False
        return not self.environment.only_ends or self.is_victim(event.uid) or not self._has_time(event.uid)

    def is_victim(self, uid: str) -> bool:
        """Whether others were told that a pod makes room."""
        return is_victim(self.environment.told.get(uid))

    def _has_time(self, uid: str) -> bool:
        """Whether something runs, and has more time than what is kept of it: else nobody waits to be told."""
        pod = self.pod(uid)
        runs = bool(self.environment.containers.running_of(uid))
        return runs and pod is not None and pod.termination_grace_period_seconds > _KEPT_S


_DECIDED_S = 120.0
"""Seconds that the end of a pod may come after the critical pod that it makes room for is in, or gone."""
_KEPT_S = 2.0
"""Of a grace so much at most is kept for the container itself."""
_IN_OR_GONE = frozenset({What.SANDBOX_MADE, What.UNWANTED})


def _is_on_its_way(event: Event) -> bool:
    """Whether somebody is about to end a container, which may end by itself before it hears of that."""
    if event.what in {What.HUNG, What.FAILED}:
        return event.value == STOP
    return isinstance(event.value, Ran) and event.value.command == PRE_STOP


def _is_over(value: object) -> bool:
    return isinstance(value, PodStatus) and value.is_terminal


def _is_lost(ran: Ran) -> bool:
    """Whether a hook that nobody could run counts as one that failed."""
    return ran.command == POST_START and ran.came_of_it != "0"


def is_victim(status: PodStatus | None) -> bool:
    """Whether a status says that its pod makes room for a critical one."""
    return status is not None and status.condition("DisruptionTarget") is not None


def is_ready(status: PodStatus) -> bool:
    """Whether a status says that the pod is ready."""
    condition = status.condition("Ready")
    return condition is not None and condition.status is ConditionStatus.TRUE
