"""Checkers of refusals: each hears every event of the node, and remembers what it needs."""

from __future__ import annotations

import math
from collections.abc import Iterable

from nodealloc.podfacts import PodPhase, PodStatus
from nodealloc.podspec import Pod, QosClass, RestartPolicy, effective_requests, qos_class
from nodealloc.testing.simulation.node._environment import FILE, Environment
from nodealloc.testing.simulation.node._events import Event, What
from nodealloc.testing.simulation.node._guarantee import Guarantee
from nodealloc.testing.simulation.node._resources import NODES, OF_EACH_NODE, RESOURCES

__all__ = [
    "GIVES_BACK_S",
    "MARKED_S",
    "CriticalsGetRoom",
    "EndingIsAwaited",
    "GoesOn",
    "Holders",
    "RefusalsAreTrue",
    "RefusalsSayWhy",
]


class RefusalsAreTrue(Guarantee):
    """Guarantee 12."""

    words = "a pod is refused for want of something only where others may still hold it"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._events = 0
        self._refused: set[str] = set()
        self._over: dict[str, tuple[float, int]] = {}
        self._gone_s: dict[str, float] = {}
        self._ill_until_s: dict[str, float] = {}

    def heard(self, event: Event, /) -> None:
        """With all that may hold some, or did since it was wanted, it does not fit: a word may be late."""
        self._events += 1
        if event.what is What.DEVICE:
            self._ill_until_s[event.id] = event.at_s if event.value == "True" else math.inf
        for uid in self.environment.gone - self._gone_s.keys():
            self._gone_s[uid] = event.at_s
        if event.what is not What.TOLD or not isinstance(event.value, PodStatus):
            return
        status, uid = event.value, event.uid
        if not status.is_terminal:
            return
        self._over.setdefault(uid, (event.at_s, self._events))
        if status.reason not in _NO_ROOM or uid in self._refused:
            return
        pod = self.pod(uid)
        if pod is None:
            return
        self._refused.add(uid)
        for resource in RESOURCES:
            wanted = _devices_of(pod, resource)
            if wanted:
                self._lacks_devices(pod, resource, wanted, event, status.reason)
                return
        known = self.environment.known.items()
        holders = [
            self.environment.forms.most(one)
            for other, one in known
            if other == uid or self._holds(other, event)
        ]
        cpus = len(self.environment.machine.cpus) - len(self.environment.reserved)
        asked = sum(one.requests["cpu"].milli_value for pod in holders for one in pod.all_containers)
        memory = sum(one.requests["memory"].value for pod in holders for one in pod.all_containers)
        there = sum(one.memory_bytes for one in self.environment.machine.numa_nodes)
        assert len(holders) > 1 or asked > 1000 * cpus or memory > there // 2, (
            f"{uid} is refused ({status.reason}), and nobody else may hold anything"
        )
        assert status.reason != "OutOfcpu" or asked > 1000 * cpus, (
            f"{uid} is refused ({status.reason}), and all that may hold CPUs asks for {asked} m of {cpus}"
        )
        assert status.reason != "OutOfmemory" or memory > there, (
            f"{uid} is refused ({status.reason}), and all that may hold memory asks for {memory} of {there}"
        )

    def _lacks_devices(self, pod: Pod, resource: str, wanted: int, event: Event, reason: str) -> None:
        """All that may be others', or were ill when it was looked at, leave no NUMA node with enough for it.

        A pod without CPUs of its own, to which nothing else is given near its devices. Where each of its
        containers asks for one device, any that is left will do, and those of an init container that has
        ended are there for the next one.
        """
        is_of_ones = max(_devices_of_each(pod, resource)) == 1
        if qos_class(pod) is QosClass.GUARANTEED or reason not in _ALIGNS:
            return
        if wanted > OF_EACH_NODE and not is_of_ones:
            return
        environment = self.environment
        since_s = environment.wanted_s[pod.uid][0] - _LATE_S
        if environment.plugins.was_long_gone(resource, since_s):
            return
        kind = resource.rpartition("/")[2]
        ill = [one for one, until_s in self._ill_until_s.items() if until_s >= since_s]
        lost = sum(one.rpartition("-")[0] == kind for one in ill)
        count = _most_devices_of if is_of_ones else _devices_of
        held = sum(
            count(environment.forms.most(one), resource)
            for other, one in environment.known.items()
            if other != pod.uid and self._holds(other, event)
        )
        wanted = count(pod, resource)
        suffice = NODES * OF_EACH_NODE - wanted + 1 if is_of_ones else NODES * (OF_EACH_NODE - wanted + 1)
        assert held + lost >= suffice, (
            f"{pod.uid} is refused ({reason}) and asks for {wanted} {resource}, of which others "
            f"may hold {held}, and {lost} may be ill"
        )

    def _holds(self, uid: str, now: Event) -> bool:
        """Whether a pod may still hold something: what it had is given back some time after its end."""
        if uid in self._refused:
            return False
        if uid in self._gone_s:
            return self._gone_s[uid] > self.environment.wanted_s.get(now.uid, (now.at_s, 0.0))[0]
        since_s, since = self._over.get(uid, (now.at_s, self._events))
        mounted = any(owner == uid for _, owner in self.environment.volumes.mounts)
        return mounted or now.at_s - since_s < GIVES_BACK_S or self._events - since < _GIVES_BACK


_NO_ROOM = frozenset({"OutOfcpu", "OutOfmemory", "UnexpectedAdmissionError", "TopologyAffinityError"})
_ALIGNS = frozenset({"UnexpectedAdmissionError", "TopologyAffinityError"})
_LATE_S = 15.0
"""So long after it a plugin's word is known, or its absence."""
GIVES_BACK_S = 60.0
_GIVES_BACK = 100
"""So long, and so many events, after its end a pod has given back what it held."""


def _devices_of_each(pod: Pod, resource: str) -> list[int]:
    return [one.requests[resource].value for one in pod.all_containers if resource in one.requests]


def _devices_of(pod: Pod, resource: str) -> int:
    return sum(_devices_of_each(pod, resource))


def _most_devices_of(pod: Pod, resource: str) -> int:
    """The most that it has at a time."""
    asked = effective_requests(pod)
    return asked[resource].value if resource in asked else 0


class Holders(Guarantee):
    """One that knows who may hold some of the node."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._over_s: dict[str, float] = {}
        self._boxed: set[str] = set()
        self._refused_s: dict[str, float] = {}

    def hear_holders(self, event: Event) -> None:
        """Who is over, and who was never let in; `heard` calls it."""
        status, uid = event.value, event.uid
        if event.what is What.SANDBOX_MADE:
            self._boxed.add(uid)
        if event.what is not What.TOLD or not isinstance(status, PodStatus):
            return
        if status.is_terminal:
            self._over_s.setdefault(uid, event.at_s)
            if status.reason in _NO_ROOM and uid not in self._boxed:
                self._refused_s.setdefault(uid, event.at_s)

    def may_hold(
        self, uid: str, now_s: float, *, waited_s: float = 0.0, held_s: float = GIVES_BACK_S
    ) -> bool:
        """Whether it holds something, or has waited for it, or held some, so many seconds ago."""
        if now_s - self._refused_s.get(uid, math.inf) >= waited_s:
            return False
        mounted = any(owner == uid for _, owner in self.environment.volumes.mounts)
        return mounted or now_s - self._over_s.get(uid, now_s) <= held_s

    def asked(self, pods: Iterable[Pod]) -> tuple[int, int]:
        """What they ask for, at most: thousandths of CPUs, and bytes of memory."""
        requests = [effective_requests(self.environment.forms.most(pod)) for pod in pods]
        cpus = sum(one["cpu"].milli_value for one in requests if "cpu" in one)
        return cpus, sum(one["memory"].value for one in requests if "memory" in one)


class EndingIsAwaited(Holders):
    """Guarantee 12: who is ending makes room."""

    words = "a pod that fits once others have ended waits for them, and is not refused"

    def heard(self, event: Event, /) -> None:
        """With all that stay it does not fit."""
        status, uid, environment = event.value, event.uid, self.environment
        self.hear_holders(event)
        if not environment.only_ends:
            return
        if event.what is not What.TOLD or not isinstance(status, PodStatus):
            return
        if status.reason not in _SHORT or uid not in environment.wanted_s:
            return
        if event.at_s - environment.reads.alive_since_s < _BACK_S:
            return  # what an earlier life had read may have been forgotten with it
        wanted_s = environment.wanted_s[uid][0]
        known = environment.known.items()
        leave = {one for one, read_s in environment.read.items() if read_s < wanted_s - MARKED_S}
        stay = [
            pod
            for other, pod in known
            if other == uid
            or (
                other not in leave
                and other not in environment.gone
                and self.may_hold(other, event.at_s, held_s=_OVER_S)
            )
        ]
        asked = tuple(zip(self.asked(stay), environment.room, strict=True))
        # What is named may be the first thing that is short now, where another one is for ever.
        assert any(wanted > there for wanted, there in asked), (
            f"{uid} is refused ({status.reason}), and without what ends "
            + " and ".join(f"{wanted} are asked of {there}" for wanted, there in asked)
        )


class CriticalsGetRoom(Holders):
    """Guarantee 14, from the other side."""

    words = "a critical pod comes in where only less important ones hold what it wants"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._waits_s: dict[str, float] = {}
        self._critical: set[str] = set()

    def heard(self, event: Event, /) -> None:
        """It is not refused, and does not wait for long."""
        self.hear_holders(event)
        status, uid = event.value, event.uid
        if event.what is What.WANTED and uid in self.environment.pods[FILE]:
            self._critical.add(uid)
        if not self.environment.only_ends:
            return
        if event.what is What.WANTED and uid in self._critical:
            self._waits_s[uid] = event.at_s
        elif event.what in {What.SANDBOX_MADE, What.DELETED, What.UNWANTED} or uid in self._over_s:
            self._waits_s.pop(uid, None)
        if uid in self._critical and isinstance(status, PodStatus) and status.reason in _SHORT:
            self._is_short(uid, event.at_s, f"is refused ({status.reason})")
        for one, since_s in tuple(self._waits_s.items()):
            waited_s = event.at_s - max(since_s, self.environment.reads.alive_since_s)
            if waited_s > _COMES_S and not self._has_devices(one):
                self._is_short(one, event.at_s, f"waits for {waited_s:.0f} s")
                self._waits_s[one] = event.at_s

    def _is_short(self, uid: str, now_s: float, what: str) -> None:
        hold = [
            self.environment.known[one] for one in self._critical if one == uid or self.may_hold(one, now_s)
        ]
        asked, there = self.asked(hold), self.environment.room
        assert asked[0] > there[0] or asked[1] > there[1], (
            f"{uid} {what}, and all that is as important asks for {asked} of {there}"
        )

    def _has_devices(self, uid: str) -> bool:
        """Whether it may wait for a plugin that is not there."""
        containers = self.environment.known[uid].all_containers
        return any(one.requests.keys() & RESOURCES.keys() for one in containers)


_SHORT = frozenset({"OutOfcpu", "OutOfmemory"})
_COMES_S = 90.0
"""So long, in one life of the agent, others may take to end for a critical pod, and then its predecessor."""


_BACK_S = 5.0
"""So long after its start an agent may not know yet what had been read before."""
_OVER_S = 15.0
"""So long after a pod was told to have ended what it held is free, where nothing goes wrong but kills."""
MARKED_S = 2.0
"""So long after an agent read that a pod is to go it knows that its room will be free."""


class RefusalsSayWhy(Guarantee):
    """Guarantee 12."""

    words = "a pod that is told to have failed without having run says why"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._ran: set[str] = set()

    def heard(self, event: Event, /) -> None:
        """A refusal has a reason; who had a sandbox was not refused."""
        if event.what in {What.SANDBOX_MADE, What.STARTED}:
            self._ran.add(event.uid)
        if event.what is What.TOLD and isinstance(event.value, PodStatus) and event.uid not in self._ran:
            status = event.value
            if status.phase is PodPhase.FAILED and event.uid not in self.environment.deletions:
                assert status.reason, f"{event.uid} is told to have failed, never ran, and nobody says why"


class GoesOn(Guarantee):
    """Ours: restart policies."""

    words = "a pod that is wanted and whose policy restarts what failed does not come to an end by itself"

    def heard(self, event: Event, /) -> None:
        """Whoever makes such a pod end, by a refusal or by taking its room, gives a reason."""
        if event.what is not What.TOLD or not isinstance(event.value, PodStatus) or event.value.reason:
            return
        pod = next((pods[event.uid] for pods in self.environment.pods.values() if event.uid in pods), None)
        if pod is None or event.uid in self.environment.deletions:
            return
        never = {
            RestartPolicy.ALWAYS: {PodPhase.FAILED, PodPhase.SUCCEEDED},
            RestartPolicy.ON_FAILURE: {PodPhase.FAILED},
        }
        assert event.value.phase not in never.get(pod.restart_policy, ()), (
            f"{event.uid} is told to be {event.value.phase}, and its policy is {pod.restart_policy.value}"
        )
