"""Checkers of what stands while nothing happens: what is told of a pod, and its sandbox."""

from __future__ import annotations

from nodealloc.podfacts import ContainerRunning, PodStatus
from nodealloc.podspec import RestartPolicy
from nodealloc.testing.simulation.node._deeds import Deed, Ran, What
from nodealloc.testing.simulation.node._guarantee import Guarantee, RoomHeard
from nodealloc.testing.simulation.node._outside import Outside

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

    def __init__(self, outside: Outside) -> None:
        super().__init__(outside)
        self._told: dict[str, PodStatus] = {}
        self._moved_s: dict[str, float] = {}
        self._known: set[str] = set()
        self._answers: dict[tuple[str, str], tuple[str, int]] = {}
        self._alive_s = 0.0

    def heard(self, deed: Deed, /) -> None:
        """What differs from what was told has a reason."""
        if not self.outside.only_ends:
            return
        if deed.what is What.KILLED:
            ended_s = self.outside.reads.killed_s
            self._known |= {uid for uid in self._told if self._has_told(uid, ended_s)}
            self._alive_s = self.outside.reads.alive_since_s
        elif deed.what is What.TOLD and isinstance(deed.value, PodStatus):
            self._tells(deed.uid, deed.value, deed.at_s)
        elif deed.what is What.POWER:
            self._moved_s = dict.fromkeys(self._told, deed.at_s)
            self._known.clear()
        elif deed.uid and deed.what is not What.HUNG and not self._is_same(deed):
            moved_s = deed.at_s + (_READ_S if deed.what is What.EDITED else 0.0)
            self._moved_s[deed.uid] = max(moved_s, self._moved_s.get(deed.uid, 0.0))
            self._known.discard(deed.uid)

    def _tells(self, uid: str, status: PodStatus, now_s: float) -> None:
        before = self._told.get(uid)
        self._told[uid] = status
        is_known = uid in self._known or self._has_told(uid, now_s)
        if before is None or before == status or not is_known or not self._runs(uid, before):
            return
        makes_room = status.condition("DisruptionTarget") is not None
        is_due = self.outside.overdue_s(uid) > -_EARLY_S
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

    def _is_same(self, deed: Deed) -> bool:
        """Whether it is one more answer like those before it."""
        if not isinstance(deed.value, Ran):
            return False
        key = deed.id, deed.value.command
        before, times = self._answers.get(key, ("", 0))
        times = times + 1 if before == deed.value.came_of_it else 1
        self._answers[key] = deed.value.came_of_it, times
        return times > _SAME


def _differences(before: PodStatus, after: PodStatus) -> str:
    told = ("phase", "reason", "conditions", "pod_ips", "started_unix_s")
    fields = (*told, "init_containers", "containers", "ephemeral_containers")
    found = [one for one in fields if getattr(before, one) != getattr(after, one)]
    return "; ".join(f"{one} {getattr(before, one)} and then {getattr(after, one)}" for one in found)


class TimesStand(Guarantee):
    """Guarantee 1: a condition's time is that of its last change, whatever else is told with it."""

    words = "since when a pod is scheduled, and since when it is not ready, changes with nothing else"

    def __init__(self, outside: Outside) -> None:
        super().__init__(outside)
        self._since: dict[tuple[str, str, str], tuple[float | None, float]] = {}
        self._may_be_up: set[str] = set()

    def heard(self, deed: Deed, /) -> None:
        """It is what was told at first, unless that was not remembered yet when the agent was killed."""
        if not self.outside.only_ends:
            return
        if deed.what is What.STARTED:
            self._hear_start(deed)
        elif deed.what is What.POWER:
            self._since.clear()
        elif deed.what is What.KILLED:
            known_s = self.outside.reads.killed_s - _KNOWN_S
            self._since = {uid: one for uid, one in self._since.items() if one[1] < known_s}
        for condition in deed.value.conditions if isinstance(deed.value, PodStatus) else ():
            if condition.type != "PodScheduled" and (
                condition.type not in _WAITING or deed.uid in self._may_be_up
            ):
                continue
            since_unix_s = condition.last_transition_unix_s
            key = deed.uid, condition.type, condition.status.value
            before, _ = self._since.setdefault(key, (since_unix_s, deed.at_s))
            assert before == since_unix_s, (
                f"{deed.uid} was told to be {condition.type} ({condition.status.value}) since {before}, "
                f"and now since {since_unix_s}"
            )

    def _hear_start(self, deed: Deed) -> None:
        """With its last init container a pod may be initialized, and fall back, before anybody is told."""
        pod = self.pod(deed.uid)
        if pod is not None and deed.name not in {one.name for one in pod.init_containers[:-1]}:
            self._may_be_up.add(deed.uid)


_WAITING = frozenset({"Initialized", "Ready", "ContainersReady"})
"""What a pod cannot be before the last of its init containers has started, and since when is told."""


class SandboxStays(RoomHeard):
    """Guarantees 1 and 3: a sandbox is not made anew while there is one."""

    words = "a pod has one sandbox that is ready, and keeps it while the pod goes on"

    def __init__(self, outside: Outside) -> None:
        super().__init__(outside)
        self._ready: dict[str, set[str]] = {}

    def heard(self, deed: Deed, /) -> None:
        """The only one of a pod that goes on is not stopped."""
        self.hear_critical(deed)
        if deed.what is What.SANDBOX_MADE:
            self._ready.setdefault(deed.uid, set()).add(deed.id)
        elif deed.what is What.POWER:
            self._ready.clear()
        elif deed.what in {What.DOUBLED, What.SANDBOX_ENDED}:
            # Of several nobody knows which one counts: another one is made.
            self._ready.pop(deed.uid, None)
        elif deed.what in {What.SANDBOX_STOPPED, What.SANDBOX_REMOVED}:
            ready = self._ready.get(deed.uid, set())
            was_ready = deed.id in ready
            ready.discard(deed.id)
            assert not was_ready or ready or not self._goes_on(deed), (
                f"{deed.id} is stopped, and {deed.uid} is wanted, well, and has no other"
            )

    def _goes_on(self, deed: Deed) -> bool:
        """Whether neither its source nor its deadline nor another pod ends it, and its policy does not."""
        pod, uid = self.pod(deed.uid), deed.uid
        if pod is None or uid in self.outside.read or pod.restart_policy is not RestartPolicy.ALWAYS:
            return False
        return self.outside.overdue_s(uid) <= -_EARLY_S and not self.makes_room(deed)
