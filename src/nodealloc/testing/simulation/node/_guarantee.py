"""What every checker of a guarantee shares."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from typing import ClassVar

from nodealloc import _attrs as attrs
from nodealloc.podfacts import ConditionStatus, ContainerTerminated, ContainerWaiting, PodStatus
from nodealloc.podspec import Container, Pod, Probe
from nodealloc.testing.simulation.node._deeds import Deed, Ran, What
from nodealloc.testing.simulation.node._outside import FILE, Outside
from nodealloc.testing.simulation.node._pods import POST_START

__all__ = ["Guarantee", "ProbesHeard", "RoomHeard", "StartsHeard", "id_told", "is_ready"]


class Guarantee:
    """Listens to what happens; one of your own overrides `heard`, `settled` or `emptied`.

    Attributes:
        words: What is guaranteed, in a sentence.
        outside: What is true.
    """

    words: ClassVar[str] = ""

    def __init__(self, outside: Outside) -> None:
        self.outside = outside

    def heard(self, deed: Deed, /) -> None:
        """Something happened; raises `AssertionError` where it must not have."""

    def settled(self) -> None:
        """All is quiet and nothing strikes any more; raises `AssertionError` likewise."""

    def emptied(self) -> None:
        """All is quiet, and no pod is wanted any more; raises `AssertionError` likewise."""

    def pod(self, uid: str) -> Pod | None:
        """A pod as it was last wanted."""
        return self.outside.known.get(uid)

    def container(self, deed: Deed) -> Container | None:
        """The container that a deed is about, as its pod defines it."""
        pod = self.pod(deed.uid)
        return next((one for one in pod.all_containers if one.name == deed.name), None) if pod else None

    def is_outdated(self, deed: Deed) -> bool:
        """Whether a container was made from another image than is wanted of it now."""
        container, image = self.container(deed), self.outside.containers.image_of(deed.id)
        return container is not None and bool(image) and container.image != image

    def is_init(self, deed: Deed) -> bool:
        """Whether a deed is about an init container that has an end."""
        pod = self.pod(deed.uid)
        return pod is not None and any(
            one.name == deed.name and not one.restartable for one in pod.init_containers
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
            for one in self.outside.containers.running
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

    def __init__(self, outside: Outside) -> None:
        super().__init__(outside)
        self.starts: defaultdict[tuple[str, str], set[tuple[int, str]]] = defaultdict(set)
        self._untold: dict[str, _Start] = {}

    def hear_start(self, deed: Deed) -> None:
        """Keep a start, and leave out one that nobody can know of; `heard` calls it after its own checks."""
        if deed.what is What.STARTED:
            box = self.outside.containers.sandbox_of(deed.id)
            self.starts[deed.uid, deed.name].add((deed.attempt, box))
            self._untold[deed.id] = _Start(deed.uid, deed.name, deed.attempt, box)
        elif deed.what is What.TOLD and isinstance(deed.value, PodStatus) and self._untold:
            self._leave_told(deed.uid, deed.value)
        elif deed.what is What.FORGOT and deed.id in self._untold:
            self._untold[deed.id].is_forgotten = True
            self._leave_lost()
        elif deed.what is What.KILLED and self._untold:
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
            is_known = not one.is_killed and made not in self.outside.containers.unseen
            if one.is_forgotten and not is_known:
                self.starts[one.uid, one.name].discard((one.attempt, one.sandbox))
                del self._untold[made]


def id_told(told: str | None) -> str:
    """The runtime's id, of what is told of an instance; "" for none."""
    return (told or "").rpartition("/")[2]


class ProbesHeard(Guarantee):
    """One that knows which containers may be killed since a probe says so."""

    def __init__(self, outside: Outside) -> None:
        super().__init__(outside)
        self._failed: Counter[tuple[str, str]] = Counter()

    def hear_probe(self, deed: Deed) -> None:
        """Count what a probe answered; `heard` calls it."""
        if isinstance(deed.value, Ran) and (deed.value.failed or _is_lost(deed.value)):
            self._failed[deed.id, deed.value.command] += 1

    def failed_probes(self, deed: Deed) -> list[Probe]:
        """Probes for which a container is killed that failed often enough."""
        container = self.container(deed)
        probes = (container.liveness_probe, container.startup_probe) if container is not None else ()
        return [
            one
            for one in probes
            if one is not None
            and one.exec is not None
            and self._failed[deed.id, one.exec.command[0]] >= one.failure_threshold
        ]

    def ends_alone(self, deed: Deed) -> bool:
        """Whether a container may have to end though its pod goes on.

        A probe or its hook failed, it is to run from something else, or the runtime told of it that nobody
        knows how it is, or that its pod has several sandboxes.
        """
        if self.is_outdated(deed) or self.failed_probes(deed) or self.outside.outages.is_excused(deed.id):
            return True
        return self.hook_failed(deed)

    def hook_failed(self, deed: Deed) -> bool:
        """Whether a container is to end for its post-start hook."""
        return self._failed[deed.id, POST_START] > 0


class RoomHeard(ProbesHeard):
    """One that knows when a pod may have to make room for a critical one."""

    def __init__(self, outside: Outside) -> None:
        super().__init__(outside)
        self._critical: set[str] = set()
        self._left_s = -_DECIDED_S

    def hear_critical(self, deed: Deed) -> None:
        """Who is critical, and when the last one that waited was gone; `heard` calls it."""
        if deed.what is What.WANTED and deed.uid in self.outside.pods[FILE]:
            self._critical.add(deed.uid)
        if deed.what is What.UNWANTED and deed.uid in self._critical and not self.serving(deed.uid):
            self._left_s = deed.at_s

    def makes_room(self, deed: Deed) -> bool:
        """Whether a critical pod waits, or did a moment ago, and this one is none: static pods are."""
        critical = self.outside.pods[FILE]
        waits = any(not self.serving(one) for one in critical) or deed.at_s - self._left_s < _DECIDED_S
        return deed.uid not in critical and waits


_DECIDED_S = 120.0
"""Seconds that the end of a pod may come after the critical pod that it makes room for is gone."""


def _is_lost(ran: Ran) -> bool:
    """Whether a hook that nobody could run counts as one that failed."""
    return ran.command == POST_START and ran.came_of_it != "0"


def is_ready(status: PodStatus) -> bool:
    """Whether a status says that the pod is ready."""
    condition = status.condition("Ready")
    return condition is not None and condition.status is ConditionStatus.TRUE
