"""Checkers of what is told, held against what really happened: phases, conditions, ends, instances."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from nodealloc.podfacts import (
    ContainerRunning,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    Exited,
    PodPhase,
    PodStatus,
)
from nodealloc.runtime import SandboxReport
from nodealloc.testing.simulation.node._environment import Environment
from nodealloc.testing.simulation.node._events import Event, Ran, What
from nodealloc.testing.simulation.node._guarantee import Guarantee, StartsHeard, id_told, is_ready

__all__ = [
    "LastEndIsTold",
    "LostEndIsTold",
    "PhaseIsTrue",
    "StartsAreCounted",
    "StartupIsEarned",
    "TellsOfThese",
]


class PhaseIsTrue(Guarantee):
    """Guarantee 8."""

    words = (
        "a phase, and that a pod is ready, follow from what is told of its containers: what began has ended "
        "once its pod is over"
    )

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._failed: set[str] = set()

    def heard(self, event: Event, /) -> None:
        """All has succeeded, something has run, all has ended; who is ready runs."""
        status = event.value
        if event.what is not What.TOLD or not isinstance(status, PodStatus) or not status.containers:
            return
        mains = status.containers
        if status.phase is PodPhase.SUCCEEDED:
            others = [one.name for one in mains if not _has_succeeded(one)]
            assert not others, f"{event.uid} is told to have succeeded, and {', '.join(others)} has not"
        # What it is told to have come to at first stays, though more may be known of its containers later.
        if status.phase is PodPhase.FAILED and self.environment.only_ends and event.uid not in self._failed:
            self._failed.add(event.uid)
            failed = [one for one in status.all_containers if not _has_succeeded(one)]
            assert failed or status.reason, f"{event.uid} is told to have failed, and all of it has succeeded"
        if status.phase is PodPhase.PENDING:
            runs = [one.name for one in mains if isinstance(one.state, ContainerRunning)]
            assert len(runs) < len(mains), f"{event.uid} is told to wait, and {', '.join(runs)} to run"
        if status.phase is PodPhase.RUNNING:
            waits = [one.name for one in mains if not _has_run(one)]
            assert len(waits) < len(mains), f"{event.uid} is told to run, and nothing of it ever did"
        if status.is_terminal:
            begun = [one for one in (*status.init_containers, *mains) if _has_run(one)]
            left = [one.name for one in begun if not isinstance(one.state, ContainerTerminated)]
            assert not left, f"{event.uid} is told to be over, and {', '.join(left)} not to have ended"
        if is_ready(status):
            rest = [one.name for one in mains if not isinstance(one.state, ContainerRunning)]
            assert not rest, f"{event.uid} is told to be ready, and {', '.join(rest)} not to run"


def _has_succeeded(one: ContainerStatus) -> bool:
    return isinstance(one.state, ContainerTerminated) and one.state.exit == Exited(code=0)


def _has_run(one: ContainerStatus) -> bool:
    return not isinstance(one.state, ContainerWaiting | None) or isinstance(
        one.last_state, ContainerTerminated
    )


class StartupIsEarned(Guarantee):
    """Guarantee 4: nobody who was not asked has started."""

    words = "a container, or a sidecar, is told to have started only after its startup probe has passed"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._passed: set[str] = set()

    def heard(self, event: Event, /) -> None:
        """Who runs and is told to have started has said so."""
        if isinstance(event.value, Ran) and event.value.came_of_it == "0":
            self._passed.add(f"{event.id} {event.value.command}")
        pod = self.pod(event.uid) if isinstance(event.value, PodStatus) else None
        if pod is None or not isinstance(event.value, PodStatus):
            return
        probes = {one.name: one.startup_probe for one in pod.all_containers if one.startup_probe}
        for one in event.value.all_containers if probes else ():
            probe, made = probes.get(one.name), id_told(one.container_id)
            if probe is None or probe.exec is None or not isinstance(one.state, ContainerRunning):
                continue
            assert not one.started or f"{made} {probe.exec.command[0]}" in self._passed, (
                f"{event.uid}/{one.name} ({made}) is told to have started, and nobody has heard that of it"
            )


class LastEndIsTold(Guarantee):
    """Guarantee 9."""

    words = "when all is quiet, of what runs again it is told how it ended before"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._last: dict[tuple[str, str], str] = {}

    def heard(self, event: Event, /) -> None:
        """Which end was the newest, unless nobody may know."""
        if event.what is What.ENDED:
            self._last[event.uid, event.name] = event.id
        elif event.what is What.FORGOT:
            self._last.pop((event.uid, event.name), None)

    def settled(self) -> None:
        """It is that which is told."""
        for uid, one in _told(self.environment):
            ended = self._last.get((uid, one.name))
            if ended is None or not isinstance(one.state, ContainerRunning):
                continue
            last = one.last_state
            told = last.container_id if isinstance(last, ContainerTerminated) else None
            assert id_told(told) == ended, (
                f"{uid}/{one.name} runs again, {ended} ended before, and that is told of {told}"
            )


class LostEndIsTold(Guarantee):
    """Guarantee 9, of ends that nobody could read."""

    words = "of what was told to run and vanished it is told that it ended, until the next instance has ended"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._ran: set[str] = set()
        self._attempts: dict[str, int] = {}
        self._newest: dict[tuple[str, str], str] = {}
        self._lost: dict[tuple[str, str], str] = {}

    def heard(self, event: Event, /) -> None:
        """Whose record is gone, of those that somebody has seen run; and what is told of it."""
        key = event.uid, event.name
        if event.what is What.MADE:
            self._attempts[event.id], self._newest[key] = event.attempt, event.id
        elif event.what is What.FORGOT and event.id in self._ran and self._newest.get(key) == event.id:
            self._lost[key] = event.id
        elif isinstance(event.value, PodStatus):
            is_wanted = event.uid not in self.environment.deletions
            for one in event.value.all_containers:
                if isinstance(one.state, ContainerRunning):
                    self._ran.add(id_told(one.container_id))
                if is_wanted and (event.uid, one.name) in self._lost:
                    self._is_known(event.uid, one)

    def _is_known(self, uid: str, one: ContainerStatus) -> None:
        key, waits = (uid, one.name), isinstance(one.state, ContainerWaiting | None)
        lost, made = self._lost[key], id_told(one.container_id)
        last = one.last_state
        ended = id_told(last.container_id) if isinstance(last, ContainerTerminated) else None
        words = f"{uid}/{one.name} was told to run as {lost}, which vanished"
        if waits and ended is not None and self._since(ended, lost) > 0:
            del self._lost[key]  # the one after it has ended as well
        elif not waits and (made == lost or made not in self._attempts):
            pass  # nobody has looked, or just that is told
        elif not waits and self._since(made, lost) not in {0, 1}:
            assert self._since(made, lost) > 1, f"{words}, and is told to be {made}, which was before it"
            del self._lost[key]
        else:
            assert ended == lost, f"{words}; of how it was before it is told of {ended}"
            if not waits:
                del self._lost[key]

    def _since(self, made: str, lost: str) -> int:
        """How many instances later one was made; less than 0 for what was made before."""
        return self._attempts.get(made, -1) - self._attempts[lost]


class StartsAreCounted(StartsHeard):
    """Guarantees 1 and 9: a count begins anew with another pod alone."""

    words = "when all is quiet, each start of a container that an agent can know of is counted but the first"

    def heard(self, event: Event, /) -> None:
        """Count starts."""
        self.hear_start(event)

    def settled(self) -> None:
        """No count that is told is too low."""
        for uid, one in _told(self.environment):
            starts = len(self.starts[uid, one.name])
            assert one.restart_count >= starts - 1, (
                f"{uid}/{one.name} was started {starts} times and is told to be restarted {one.restart_count}"
            )


class _Instance(NamedTuple):
    uid: str
    name: str
    image: str


class TellsOfThese(Guarantee):
    """Guarantees 3 and 4: what is told of a container is true of the very instance that is named."""

    words = (
        "ids, images and times that are told are those of an instance of that container, and of another one "
        "what is told of its last end"
    )

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._made: dict[str, _Instance] = {}
        self._times: dict[str, tuple[float | None, float | None]] = {}
        self._began: dict[str, float] = {}
        self._ips: dict[str, tuple[str, ...]] = {}

    def heard(self, event: Event, /) -> None:
        """Whose they are is known from when it was made, started and ended."""
        if event.what is What.MADE:
            image = self.environment.containers.image_of(event.id)
            self._made[event.id] = _Instance(event.uid, event.name, image)
        elif event.what in {What.STARTED, What.ENDED}:
            self._keep_times(event.id)
        elif event.what is What.FORGOT:
            self._made.pop(event.id, None)  # perhaps nobody looked in time
        elif event.what is What.POWER:
            self._ips.clear()  # with the sandboxes
        elif event.what is What.TOLD and isinstance(event.value, PodStatus):
            began_s = event.value.started_unix_s
            if began_s is not None:
                assert self._began.setdefault(event.uid, began_s) == began_s, (
                    f"{event.uid} was told to be there since {self._began[event.uid]}, and "
                    f"now since {began_s}"
                )
            self._keeps_addresses(event.uid, event.value)
            for one in event.value.all_containers:
                self._is_true(event.uid, one)

    def _keeps_addresses(self, uid: str, status: PodStatus) -> None:
        """Whoever reads of a pod that has ended reads where it was, unless its sandbox went before it."""
        before = self._ips.get(uid, ())
        # Of a sandbox that the power took an agent tells until it has looked.
        if not status.pod_ips or any(one.record.is_ready for one in self._boxes(uid)):
            self._ips[uid] = status.pod_ips
        has_ended = status.is_terminal and bool(status.containers)
        assert not (has_ended and self.environment.only_ends) or status.pod_ips or not before, (
            f"{uid} has ended, and its addresses {before} are not told any more"
        )

    def settled(self) -> None:
        """By now the addresses are told of who runs in a sandbox."""
        for box in self.environment.containers.sandboxes:
            uid, ips = box.record.pod.uid, tuple(box.ips or ())
            told = self.environment.told.get(uid)
            if told is None or told.phase is not PodPhase.RUNNING or not box.record.is_ready:
                continue
            if self.main_runs(uid) and len(self._boxes(uid)) == 1:
                assert told.pod_ips == ips, f"{uid} has the addresses {ips}, and {told.pod_ips} are told"
        for one in self.environment.containers.running:
            record = one.record
            status = self.environment.told.get(record.pod.uid)
            for each in status.all_containers if status is not None else ():
                assert each.image_id == record.image_id or id_told(each.container_id) != record.id, (
                    f"{record.pod.uid}/{record.name} runs from {record.image_id}, and {each.image_id} is told"
                )

    def _boxes(self, uid: str) -> list[SandboxReport]:
        return [one for one in self.environment.containers.sandboxes if one.record.pod.uid == uid]

    def _keep_times(self, container_id: str) -> None:
        for one in self.environment.containers.reports:
            if one.record.id == container_id:
                self._times[container_id] = one.started_unix_s, one.finished_unix_s

    def _is_true(self, uid: str, one: ContainerStatus) -> None:
        what = f"{uid}/{one.name}"
        made = id_told(one.container_id)
        instance = self._made.get(made)
        if instance is not None:
            assert (instance.uid, instance.name) == (uid, one.name), (
                f"{what} is told to be {made}, which is {instance.uid}/{instance.name}"
            )
            assert one.image.removeprefix("sha256:") == instance.image, (
                f"{what} ({made}) is told to run from {one.image!r}, and was made from {instance.image!r}"
            )
        last = id_told(one.last_state.container_id) if isinstance(one.last_state, ContainerTerminated) else ""
        assert isinstance(one.state, ContainerWaiting | None) or not last or last != made, (
            f"{what} ({made}) is told, and to be the one before itself"
        )
        for state in (one.state, one.last_state):
            if isinstance(state, ContainerRunning):
                self._are_times(what, made, state.started_unix_s)
            elif isinstance(state, ContainerTerminated):
                ended = id_told(state.container_id)
                self._are_times(what, ended, state.started_unix_s, state.finished_unix_s)

    def _are_times(self, what: str, made: str, *told: float | None) -> None:
        for at_unix_s, is_s in zip(told, self._times.get(made, ()), strict=False):
            assert at_unix_s is None or is_s is None or math.floor(at_unix_s) == math.floor(is_s), (
                f"{what} ({made}) is told the times {told}; it started and ended at {self._times[made]}"
            )


def _told(environment: Environment) -> Iterator[tuple[str, ContainerStatus]]:
    """What is told last of each container of the pods that are wanted, with the pod's uid."""
    for uid in [uid for pods in environment.pods.values() for uid in pods]:
        status = environment.told.get(uid)
        for one in status.all_containers if status is not None else ():
            yield uid, one
