"""Checkers of preemption: who has to go for a critical pod, and what is told of that."""

from __future__ import annotations

import math
from collections.abc import Iterator

from nodealloc.podfacts import PodStatus
from nodealloc.podspec import Pod, QosClass, qos_class
from nodealloc.testing.simulation.node._environment import API, FILE, Environment
from nodealloc.testing.simulation.node._events import Event, What
from nodealloc.testing.simulation.node._guarantee import Guarantee, is_victim
from nodealloc.testing.simulation.node._refusals import GIVES_BACK_S, MARKED_S, Holders

__all__ = ["LeastGoFirst", "VictimsAreNeeded", "VictimsHearWhy"]


class Victims(Holders):
    """One that knows who may hold something when a pod is told to make room."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._waited_s: dict[str, float] = {}
        self.victims_s: dict[str, float] = {}

    def hear_victim(self, event: Event) -> bool:
        """Whether this says for the first time that a pod makes room; `heard` calls it."""
        self.hear_holders(event)
        status, uid = event.value, event.uid
        if event.what is What.WANTED and uid in self.environment.pods[FILE]:
            self._waited_s[uid] = math.inf
        elif event.what in {What.STARTED, What.UNWANTED} and uid in self._waited_s:
            self._waited_s[uid] = min(event.at_s, self._waited_s[uid])
        if event.what is not What.TOLD or not isinstance(status, PodStatus):
            return False
        if not is_victim(status) or uid in self.victims_s:
            return False
        self.victims_s[uid] = event.at_s
        return True

    def together(self, now_s: float) -> set[str]:
        """Victims that may have been chosen with the one that is told of now."""
        return {one for one, at_s in self.victims_s.items() if now_s - at_s < _TOGETHER_S}

    def holding(self, now_s: float) -> list[Pod]:
        """All that may hold something and stays."""
        victims = self.together(now_s)
        known = self.environment.known.items()
        return [pod for uid, pod in known if uid not in victims and self._may_hold(uid, now_s)]

    def _may_hold(self, uid: str, now_s: float) -> bool:
        """The same, and one that is gone does not for long."""
        has_left = uid in self.environment.gone and now_s - self._waited_s.get(uid, 0.0) > GIVES_BACK_S
        return self.may_hold(uid, now_s, waited_s=GIVES_BACK_S) and not has_left


class VictimsAreNeeded(Victims):
    """Guarantee 14: preemption is minimal."""

    words = "a pod makes room for a critical one only where there is too little without it"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._came_s: dict[str, float] = {}
        self._told: set[str] = set()

    def heard(self, event: Event, /) -> None:
        """With all that may hold something, and the other victims gone, who waits does not fit."""
        uid = event.uid
        if event.what is What.WANTED or (event.what is What.TOLD and uid not in self._told):
            # Where the source is read now and then alone an agent hears of it long after it was wanted.
            self._came_s[uid] = event.at_s
            self._told |= {uid} if event.what is What.TOLD else set()
        if self.hear_victim(event) and self.environment.only_ends:
            self._is_needed(event)

    def _is_needed(self, event: Event) -> None:
        environment, hold = self.environment, self.holding(event.at_s)
        cpus, memory = environment.room
        for victim in self.together(event.at_s):
            if victim != event.uid and self._have_come(self.victims_s[victim]) > 1:
                continue  # beside the critical one others came since it was chosen, and may be in
            asked, wanted = self.asked((*hold, environment.known[victim]))
            assert asked > cpus or wanted > memory, (
                f"{victim} makes room, and with it {asked} m of {cpus} CPUs and {wanted} bytes are asked for"
            )

    def _have_come(self, told_s: float) -> int:
        """How many were first wanted, or told of, when a victim was chosen, or later."""
        came = self._came_s.items()
        return sum(one > told_s - MARKED_S for uid, one in came if uid not in self.victims_s)


class LeastGoFirst(Victims):
    """Guarantee 14: who is less important goes before who is more so."""

    words = "a pod makes room only where nobody less important could in its place"

    def heard(self, event: Event, /) -> None:
        """With it, and without any one of those that are less important, who waits does not fit."""
        if not self.hear_victim(event) or not self.environment.only_ends:
            return
        environment, hold = self.environment, self.holding(event.at_s)
        victim = environment.known[event.uid]
        cpus, memory = environment.room
        for one in self._lesser(victim, event.at_s):
            asked, wanted = self.asked([victim, *(pod for pod in hold if pod.uid != one.uid)])
            assert asked > cpus or wanted > memory, (
                f"{victim.uid} makes room, and {one.uid}, which is less important, could have: without that "
                f"{asked} m of {cpus} CPUs and {wanted} bytes are asked for"
            )

    def _lesser(self, victim: Pod, now_s: float) -> Iterator[Pod]:
        """Pods that run, go on, came long before, and are less important than a victim."""
        environment = self.environment
        for uid, pod in environment.pods[API].items():
            is_new = now_s - environment.wanted_s[uid][0] < _TOGETHER_S
            ends = uid in environment.deletions or uid in self.victims_s or environment.is_over(uid)
            ends = ends or environment.overdue_s(uid) > -_TOGETHER_S
            if not (is_new or ends) and _importance(pod) < _importance(victim) and self.main_runs(uid):
                yield pod


class VictimsHearWhy(Guarantee):
    """Guarantee 14: whoever makes room is told so, before its end and with it."""

    words = "a pod that ended for a critical one was told before to make room, and is told that as its reason"

    def heard(self, event: Event, /) -> None:
        """The condition comes with a reason of its own, and the reason of its end after the condition."""
        status, uid = event.value, event.uid
        if event.what is not What.TOLD or not isinstance(status, PodStatus):
            return
        target = status.condition("DisruptionTarget")
        is_said = target is None or (target.reason and target.message)
        assert is_said, f"{uid} is told to make room, and not for what"
        assert status.reason != _PREEMPTED or target is not None, (
            f"{uid} has ended ({status.reason}), and was not told to make room"
        )


_PREEMPTED = "Preempting"
_TOGETHER_S = 20.0
"""Victims that are told of within so many seconds may have been chosen together."""
_QOS = {QosClass.BEST_EFFORT: 0, QosClass.BURSTABLE: 1, QosClass.GUARANTEED: 2}


def _importance(pod: Pod) -> tuple[int, int]:
    """By its priority, and by its class; none of those whose end it may be is critical."""
    return pod.priority or 0, _QOS[qos_class(pod)]
