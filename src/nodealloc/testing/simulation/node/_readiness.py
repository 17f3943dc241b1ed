"""Checkers of readiness: who is told to be ready has earned it, keeps it, and loses it before its end."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection

from nodealloc.podfacts import PodStatus
from nodealloc.podspec import RestartPolicy
from nodealloc.testing.simulation.node._environment import Environment
from nodealloc.testing.simulation.node._events import Event, Ran, What
from nodealloc.testing.simulation.node._guarantee import Guarantee, ProbesHeard, is_ready, is_victim

__all__ = ["ReadinessStands", "ReadyFallsFirst", "ReadyIsEarned"]


class ReadyFallsFirst(ProbesHeard):
    """Guarantee 8."""

    words = "that a pod is not ready is told before it is asked to end, and it is never told ready afterwards"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._ending: dict[str, float] = {}
        self._ended: set[str] = set()
        self._signalled: set[str] = set()
        self._alive_s = 0.0
        self._known_s: dict[str, float] = {}

    def heard(self, event: Event, /) -> None:
        """After the first signal of its end nobody reads that it is ready."""
        self.hear_probe(event)
        if event.what is What.KILLED:
            self._hear_kill(event)
        if event.what in {What.STARTED, What.ENDED} and event.uid not in self.environment.read:
            (self._ended.discard if self.main_runs(event.uid) else self._ended.add)(event.uid)
        # One that a probe had killed may start again before the agent acts on what it read.
        if event.what is What.SIGNALLED and event.uid in self.environment.read and not self.ends_alone(event):
            # Without any grace nobody is waited for, and what was on its way is told all the same.
            on_its_way_s = 0.0 if self._waits_s(event.uid) else 1.0
            self._ending.setdefault(event.uid, event.at_s + on_its_way_s)
            told = self.environment.told.get(event.uid)
            waited_s = max(event.at_s - self.environment.read[event.uid], self._overdue_s(event))
            # One that made room has waited for that already, and is asked again to end sooner.
            is_again = event.id in self._signalled
            is_due = waited_s <= self._waits_s(event.uid) - _SOON_S and not self._ended_before(event)
            assert told is None or not is_ready(told) or not is_due or is_again, (
                f"{event.uid} is asked to end {waited_s:.2f} s after its deletion was read, told to be ready"
            )
        if event.what is What.SIGNALLED:
            self._signalled.add(event.id)
        from_s = self._ending.get(event.uid, math.inf)
        if event.what is What.TOLD and event.at_s >= from_s and isinstance(event.value, PodStatus):
            assert not is_ready(event.value), (
                f"{event.uid} is told to be ready after the first signal of its end"
            )

    def _ended_before(self, event: Event) -> bool:
        """Whether it is a sidecar of a pod that had ended by itself before its deletion was read."""
        pod, container = self.pod(event.uid), self.container(event)
        if pod is None or pod.restart_policy is RestartPolicy.ALWAYS or event.uid not in self._ended:
            return False
        return container in pod.init_containers

    def _hear_kill(self, event: Event) -> None:
        """What was overdue by then may have been ending since, however short the life: that is stored."""
        killed_s = self.environment.reads.killed_s
        for uid in self.environment.known:
            late_s = self.environment.overdue_s(uid) - (event.at_s - killed_s)
            if late_s > 0:
                self._known_s.setdefault(uid, max(killed_s - late_s, self._alive_s))
        self._alive_s = event.at_s

    def _overdue_s(self, event: Event) -> float:
        """For how long it may have been ending by its own deadline, known from the start of an agent on."""
        since_s = self._known_s.get(event.uid, self.environment.reads.alive_since_s)
        return min(self.environment.overdue_s(event.uid), event.at_s - since_s)

    def _waits_s(self, uid: str) -> float:
        """How long the end of a pod waits at most until that was told."""
        grace_s = self.environment.deletions[uid].grace_s
        pod = self.pod(uid)
        if pod is not None:
            grace_s = min(grace_s, float(pod.termination_grace_period_seconds))
        return min(1.0, grace_s / 2)


_SOON_S = 0.05


class ReadyIsEarned(Guarantee):
    """Guarantee 4: a probe that nobody has asked has not passed."""

    words = "a pod is told ready only after the probes of what runs have passed"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._passed: set[tuple[str, str]] = set()
        self._in_a_row: Counter[tuple[str, str]] = Counter()

    def heard(self, event: Event, /) -> None:
        """Each instance that runs has passed for itself."""
        # A runtime that is away says nothing about the container: what was in a row is so still.
        if isinstance(event.value, Ran) and event.value.came_of_it != "away":
            key, container = (event.id, event.value.command), self.container(event)
            self._in_a_row[key] = self._in_a_row[key] + 1 if event.value.came_of_it == "0" else 0
            probe = None if container is None else container.readiness_probe
            if probe is not None and self._in_a_row[key] >= probe.success_threshold:
                self._passed.add(key)
        if event.what is not What.TOLD or not isinstance(event.value, PodStatus) or not is_ready(event.value):
            return
        pod = self.pod(event.uid)
        told = {one.name: one.restart_count for one in event.value.containers}
        for one in self.environment.containers.running:
            if (
                one.record.pod.uid != event.uid
                or pod is None
                or told.get(one.record.name) != one.record.attempt
            ):
                continue
            container = next((each for each in pod.containers if each.name == one.record.name), None)
            probe = None if container is None else container.readiness_probe
            if probe is not None and probe.exec is not None:
                assert (one.record.id, probe.exec.command[0]) in self._passed, (
                    f"{event.uid} is told to be ready, and nobody has had an answer of {one.record.name}"
                )


class ReadinessStands(Guarantee):
    """Guarantee 1."""

    words = "readiness does not flip while nothing happens to the containers"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._ready_with: dict[str, set[str]] = {}
        self._failing: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        self._asked: set[str] = set()

    def heard(self, event: Event, /) -> None:
        """Not ready is told only where a container that made it ready ends, or a probe failed."""
        if event.what is What.UNSURE:
            # Of whom the runtime does not know how it is, nobody can say that it is ready.
            self._ready_with.pop(event.uid, None)
        if event.what in {What.SIGNALLED, What.DOUBLED, What.SANDBOX_ENDED}:
            # What runs in a sandbox that is not the only one, or has ended, is ended, and told so before.
            self._ready_with.pop(event.uid, None)
            self._asked |= {event.id} if event.what is What.SIGNALLED else self.serving(event.uid)
        if event.what is What.RAN and isinstance(event.value, Ran):
            probe = (event.id, event.value.command)
            if event.value.failed:
                self._ready_with.pop(event.uid, None)
                self._failing[event.uid].add(probe)
            else:
                self._failing[event.uid].discard(probe)
        if event.what is not What.TOLD or not isinstance(event.value, PodStatus):
            return
        running = self.serving(event.uid)
        if is_ready(event.value):
            # One that ends since may be told a moment later, and so may a probe that has failed.
            failing = any(one in running for one, _ in self._failing[event.uid])
            is_whole = not failing and self._asked.isdisjoint(running) and self._is_whole(event.uid, running)
            is_of_these = self._tells_of(event.value, running)
            self._ready_with[event.uid] = running if is_whole and is_of_these else set()
            return
        before = self._ready_with.pop(event.uid, None)
        makes_room = is_victim(event.value)
        makes_room = makes_room or self.environment.overdue_s(event.uid) > 0
        if before and before <= running and event.uid not in self.environment.deletions and not makes_room:
            raise AssertionError(f"{event.uid} is told to be not ready, and its containers run as before")

    def _is_whole(self, uid: str, running: Collection[str]) -> bool:
        pod = self.pod(uid)
        sidecars = [one for one in pod.init_containers if one.restartable] if pod else []
        return pod is not None and len(running) == len(pod.containers) + len(sidecars)

    def _tells_of(self, status: PodStatus, running: Collection[str]) -> bool:
        """Whether it tells of instances that run, and not of those before, whose end is news on its way."""
        told = {one.name: one.restart_count for one in status.all_containers}
        records = [one.record for one in self.environment.containers.running if one.record.id in running]
        return all(told.get(one.name) == one.attempt for one in records)
