"""Checkers of what waits: why a container waits is told, and it waits for nothing that is over."""

from __future__ import annotations

from collections import Counter

from nodealloc.podfacts import ContainerWaiting, Exited, PodStatus
from nodealloc.podspec import RestartPolicy
from nodealloc.testing.simulation.node._environment import Environment
from nodealloc.testing.simulation.node._events import Event, What
from nodealloc.testing.simulation.node._guarantee import Guarantee, is_victim
from nodealloc.testing.simulation.node._in_time import Owed

__all__ = ["WaitsAreTold"]

_LOOP = "CrashLoopBackOff"
_TOLD_S = 6.0
"""So long after an end or an edit, where nothing goes wrong but kills, it is told why a container waits."""
_WAITS_S = 9.0
"""Whoever waits does so for so long at least."""
_READ_S = 3.0
"""So long after an edit it was read where somebody told of it."""
_BACK_S = 9.0
"""So long before an end an agent has begun that is held to it."""


class WaitsAreTold(Guarantee):
    """Ours: what people look for first of a container that does not run."""

    words = "that a container waits for its back-off is told of it, and not of one that was edited since"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._owed = Owed(environment)
        self._starts: Counter[tuple[str, str, str]] = Counter()
        self._ended: dict[tuple[str, str], tuple[str, float]] = {}
        self._told: dict[str, PodStatus] = {}
        self._edited_s: dict[str, float] = {}

    def heard(self, event: Event, /) -> None:
        """Who waits since when, and what is told of it."""
        if not self.environment.only_ends:
            return
        # As it was told before this event, with which the wait may be over.
        for uid, name in self._owed.overdue(event.at_s):
            if (uid, name) in self._ended and self._goes_on(uid):
                self._is_told(uid, name)
        key = (event.uid, event.name)
        if event.what in {What.SANDBOX_MADE, What.POWER, What.FORGOT}:
            for one in [one for one in self._starts if event.uid in {"", one[0]}]:
                del self._starts[one]
        elif event.what is What.STARTED:
            self._starts[*key, self.environment.containers.image_of(event.id)] += 1
            self._ended.pop(key, None)
        elif event.what is What.ENDED and self._restarts(event):
            image = self.environment.containers.image_of(event.id)
            self._ended[key] = image, event.at_s
            if self._starts[*key, image] > 1:
                self._owed.owe(event.at_s + _TOLD_S, *key)
        elif event.what is What.EDITED:
            self._edited_s[event.uid] = event.at_s
            for uid, name in self._ended:
                if uid == event.uid:
                    self._owed.owe(event.at_s + _TOLD_S, uid, name)
        elif isinstance(event.value, PodStatus):
            self._told[event.uid] = event.value

    def _restarts(self, event: Event) -> bool:
        """Whether a main container ended that its policy has start again."""
        pod, container = self.pod(event.uid), self.container(event)
        if pod is None or container not in pod.containers:
            return False
        policy = pod.restart_policy
        failed = event.value != Exited(code=0)
        return policy is RestartPolicy.ALWAYS or (policy is RestartPolicy.ON_FAILURE and failed)

    def _goes_on(self, uid: str) -> bool:
        """Whether nothing ends a pod, and no edit of it waits."""
        outside, told = self.environment, self._told.get(uid)
        ends = uid in outside.deletions or is_victim(told) or outside.overdue_s(uid) > -_TOLD_S
        return not ends and not outside.forms.is_resized(uid)

    def _is_told(self, uid: str, name: str) -> None:
        status, pod = self._told.get(uid), self.pod(uid)
        image, ended_s = self._ended[uid, name]
        wanted = next((one.image for one in pod.containers if one.name == name), "") if pod else ""
        is_new = self.environment.reads.alive_since_s > ended_s - _BACK_S
        if status is None or is_new or not wanted:
            return
        states = [one.state for one in status.containers if one.name == name]
        why = next((one.reason for one in states if isinstance(one, ContainerWaiting)), "nothing")
        if wanted != image:
            is_late = why == _LOOP and self._is_read(uid, name, wanted)
            assert not is_late, (
                f"{uid}/{name} ended as {image}, is to run from {wanted}, and waits for a back-off"
            )
        elif self._starts[uid, name, image] > 1 and self.environment.awake_s - ended_s < _WAITS_S:
            # Later its wait may be over, as after an edit of another container of its pod.
            assert why == _LOOP, f"{uid}/{name} waits for its back-off, and {why} is told of it"

    def _is_read(self, uid: str, name: str, image: str) -> bool:
        """Whether it was read soon after the last edit that a container is to run from this image."""
        read, read_s = self.environment.reads.images.get((uid, name), ("", 0.0))
        return read == image and read_s < self._edited_s.get(uid, 0.0) + _READ_S
