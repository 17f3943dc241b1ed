"""Checkers of what stands while nothing happens: what is told of a pod, and its sandbox."""

from __future__ import annotations

from nodealloc.podfacts import ContainerRunning, PodStatus
from nodealloc.podspec import RestartPolicy
from nodealloc.testing.simulation.node._environment import Environment
from nodealloc.testing.simulation.node._events import Event, Ran, What
from nodealloc.testing.simulation.node._guarantee import Guarantee, RoomHeard, is_ready, is_victim

__all__ = ["NothingMoves", "SandboxStays", "TimesStand"]

_KNOWN_S = 12.0
"""So long after something happened to a pod, or after its start, an agent that lives has told of it."""
_READ_S = 20.0
"""So long after an edit an agent may read it: `fileCheckFrequency` unless a configuration says another."""
_SAME = 4
"""An answer that was given so often in a row changes nothing: no threshold is higher, of what is told."""
_EARLY_S = 2.0
"""Deadlines are in whole seconds."""


class NothingMoves(Guarantee):
    """Guarantee 1: readiness, phases, counts, times and all else that was told outlive a restart."""

    words = "while nothing happens to a pod that runs nothing else is told of it, also by another life"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._told: dict[str, PodStatus] = {}
        self._moved_s: dict[str, float] = {}
        self._known: set[str] = set()
        self._answers: dict[tuple[str, str], tuple[str, int]] = {}
        self._alive_s = 0.0

    def heard(self, event: Event, /) -> None:
        """What differs from what was told has a reason."""
        if not self.environment.only_ends:
            return
        if event.what is What.KILLED:
            ended_s = self.environment.reads.killed_s
            self._known |= {uid for uid in self._told if self._has_told(uid, ended_s)}
            self._alive_s = self.environment.reads.alive_since_s
            self._count_anew()
        elif event.what is What.TOLD and isinstance(event.value, PodStatus):
            self._tells(event.uid, event.value, event.at_s)
        elif event.what is What.POWER:
            self._moved_s = dict.fromkeys(self._told, event.at_s)
            self._known.clear()
        elif event.uid and event.what is not What.HUNG and not self._is_same(event):
            moved_s = event.at_s + (_READ_S if event.what is What.EDITED else 0.0)
            self._moved_s[event.uid] = max(moved_s, self._moved_s.get(event.uid, 0.0))
            self._known.discard(event.uid)

    def _tells(self, uid: str, status: PodStatus, now_s: float) -> None:
        before = self._told.get(uid)
        self._told[uid] = status
        is_known = uid in self._known or self._has_told(uid, now_s)
        if before is None or before == status or not is_known or not self._runs(uid, before):
            return
        makes_room = is_victim(status)
        is_due = self.environment.overdue_s(uid) > -_EARLY_S
        assert makes_room or is_due, (
            f"{uid}: nothing happened for {now_s - self._moved_s.get(uid, 0.0):.0f} s, "
            f"and something else is told of it: {_differences(before, status)}"
        )

    def _runs(self, uid: str, status: PodStatus) -> bool:
        """Whether all of it is told to run, sidecars too, so that nothing is about to happen by itself."""
        pod = self.pod(uid)
        sidecars = () if pod is None else [one.name for one in pod.init_containers if one.restartable]
        lasting = (*status.containers, *(one for one in status.init_containers if one.name in sidecars))
        return bool(status.containers) and all(isinstance(one.state, ContainerRunning) for one in lasting)

    def _has_told(self, uid: str, now_s: float) -> bool:
        """Whether one life of the agent had the time to tell of what had happened by then."""
        return now_s - max(self._alive_s, self._moved_s.get(uid, 0.0)) > _KNOWN_S

    def _count_anew(self) -> None:
        """No life counts what another one heard, but of who is ready one more success changes nothing."""
        self._answers = {
            key: one for key, one in self._answers.items() if one[0] == "0" and self._is_ready(key[0])
        }

    def _is_ready(self, container_id: str) -> bool:
        told = self._told.get(self.environment.containers.pod_of(container_id))
        return told is not None and is_ready(told)

    def _is_same(self, event: Event) -> bool:
        """Whether it is one more answer like those before it."""
        if not isinstance(event.value, Ran):
            return False
        key = event.id, event.value.command
        before, times = self._answers.get(key, ("", 0))
        times = times + 1 if before == event.value.came_of_it else 1
        self._answers[key] = event.value.came_of_it, times
        return times > _SAME


def _differences(before: PodStatus, after: PodStatus) -> str:
    told = ("phase", "reason", "conditions", "pod_ips", "started_unix_s")
    fields = (*told, "init_containers", "containers", "ephemeral_containers")
    found = [one for one in fields if getattr(before, one) != getattr(after, one)]
    return "; ".join(f"{one} {getattr(before, one)} and then {getattr(after, one)}" for one in found)


class TimesStand(Guarantee):
    """Guarantee 1: a condition's time is that of its last change, whatever else is told with it."""

    words = "since when a pod is scheduled, and since when it is not ready, changes with nothing else"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._since: dict[tuple[str, str, str], tuple[float | None, float]] = {}
        self._may_be_up: set[str] = set()

    def heard(self, event: Event, /) -> None:
        """It is what was told at first, unless that was not remembered yet when the agent was killed."""
        if not self.environment.only_ends:
            return
        if event.what is What.STARTED:
            self._hear_start(event)
        elif event.what is What.POWER:
            self._since.clear()
        elif event.what is What.KILLED:
            known_s = self.environment.reads.killed_s - _KNOWN_S
            self._since = {uid: one for uid, one in self._since.items() if one[1] < known_s}
        for condition in event.value.conditions if isinstance(event.value, PodStatus) else ():
            if condition.type != "PodScheduled" and (
                condition.type not in _WAITING
                or event.uid in self._may_be_up
                or self.environment.saw_faults(event.uid)
            ):
                continue
            since_unix_s = condition.last_transition_unix_s
            key = event.uid, condition.type, condition.status.value
            before, _ = self._since.setdefault(key, (since_unix_s, event.at_s))
            assert before == since_unix_s, (
                f"{event.uid} was told to be {condition.type} ({condition.status.value}) since {before}, "
                f"and now since {since_unix_s}"
            )

    def _hear_start(self, event: Event) -> None:
        """With its last init container a pod may be initialized, and fall back, before anybody is told."""
        pod = self.pod(event.uid)
        if pod is not None and event.name not in {one.name for one in pod.init_containers[:-1]}:
            self._may_be_up.add(event.uid)


_WAITING = frozenset({"Initialized", "Ready", "ContainersReady"})
"""What a pod cannot be before the last of its init containers has started, and since when is told."""


class SandboxStays(RoomHeard):
    """Guarantees 1 and 3: a sandbox is not made anew while there is one."""

    words = "a pod has one sandbox that is ready, and keeps it while the pod goes on"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._ready: dict[str, set[str]] = {}

    def heard(self, event: Event, /) -> None:
        """The only one of a pod that goes on is not stopped."""
        self.hear_critical(event)
        if event.what is What.SANDBOX_MADE:
            self._ready.setdefault(event.uid, set()).add(event.id)
        elif event.what is What.POWER:
            self._ready.clear()
        elif event.what in {What.DOUBLED, What.SANDBOX_ENDED}:
            # Of several nobody knows which one counts: another one is made.
            self._ready.pop(event.uid, None)
        elif event.what in {What.SANDBOX_STOPPED, What.SANDBOX_REMOVED}:
            ready = self._ready.get(event.uid, set())
            was_ready = event.id in ready
            ready.discard(event.id)
            assert not was_ready or ready or not self._goes_on(event), (
                f"{event.id} is stopped, and {event.uid} is wanted, well, and has no other"
            )

    def _goes_on(self, event: Event) -> bool:
        """Whether neither its source nor its deadline nor another pod ends it, and its policy does not."""
        pod, uid = self.pod(event.uid), event.uid
        if pod is None or uid in self.environment.read or pod.restart_policy is not RestartPolicy.ALWAYS:
            return False
        return self.environment.overdue_s(uid) <= -_EARLY_S and not self.makes_room(event)
