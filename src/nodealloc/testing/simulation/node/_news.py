"""Checkers of what is news: what a container does is told soon, and why a pod ends stays told."""

from __future__ import annotations

from nodealloc.podfacts import ContainerRunning, PodStatus
from nodealloc.testing.simulation.node._environment import API, FILE, Environment
from nodealloc.testing.simulation.node._events import Event, What
from nodealloc.testing.simulation.node._guarantee import Guarantee, id_told, is_victim
from nodealloc.testing.simulation.node._in_time import Owed

__all__ = ["ReasonsStay", "TakenUpSoon", "ToldInTime"]

_TOLD_S = 30.0
"""So long after a start or an end others may not have been told of it."""
_KNOWN_S = 12.0
"""So long after a pod was first wanted others may not have been told of it."""
_READ_S = 20.0
"""So long later an agent may read of it that is not told of changes: `fileCheckFrequency`."""
_AGAIN_S = 10.0
"""So long after a call that is waited for it is looked at again."""


class TakenUpSoon(Guarantee):
    """Ours: whoever wants a pod sees that its node knows of it."""

    words = "that a pod is wanted here is known soon, and told, where nothing goes wrong but kills"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._owed = Owed(environment)

    def heard(self, event: Event, /) -> None:
        """By then it was told of, unless it is gone."""
        environment = self.environment
        if not environment.only_ends:
            return
        if event.what is What.WANTED:
            source = FILE if environment.is_static(event.uid) else API
            waits_s = 0.0 if source in environment.reads.followed else _READ_S
            self._owed.owe(event.at_s + _KNOWN_S + waits_s, event.uid)
        for (uid,) in self._owed.overdue(event.at_s):
            is_there = any(uid in pods for pods in environment.pods.values())
            assert uid in environment.told or not is_there or uid in environment.deletions, (
                f"{uid} is wanted for long, and nobody was told of it"
            )


class ToldInTime(Guarantee):
    """Guarantee 15, while things happen: what changed while a call was under way is told after it."""

    words = (
        "that a container runs, or does not any more, is told soon, unless a call that tells of its pod waits"
    )

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._owed = Owed(environment)
        self._names: dict[str, tuple[str, str]] = {}

    def heard(self, event: Event, /) -> None:
        """What is told is no older than it may be."""
        if not self.environment.only_tells:
            return
        if event.what in {What.STARTED, What.ENDED}:
            self._names[event.id] = event.uid, event.name
            self._owed.owe(event.at_s + _TOLD_S, event.id)
        for (one,) in self._owed.overdue(event.at_s):
            if self.environment.sink.is_waited_for(self._names[one][0], event.at_s):
                self._owed.owe(event.at_s + _AGAIN_S, one)
            else:
                self._is_told(one, *self._names[one])

    def _is_told(self, container_id: str, uid: str, name: str) -> None:
        environment, pod = self.environment, self.pod(uid)
        is_ours = pod is not None and any(one.name == name for one in pod.all_containers)
        away = environment.containers.late | environment.containers.strange
        if not is_ours or container_id in away or uid in environment.deletions or uid in environment.gone:
            return
        runs = any(one.record.id == container_id for one in environment.containers.running)
        status = environment.told.get(uid)
        told = next((one for one in status.all_containers if one.name == name), None) if status else None
        is_told = (
            told is not None
            and id_told(told.container_id) == container_id
            and isinstance(told.state, ContainerRunning)
        )
        assert is_told or not runs, f"{uid}/{name} runs ({container_id}), and that is not told"
        assert runs or not is_told, f"{uid}/{name} is told to run ({container_id}), and ended long ago"


class ReasonsStay(Guarantee):
    """Guarantee 8: the first reason counts."""

    words = "why a pod has failed, once it was told, is told for as long as it is told of"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._told: dict[str, tuple[str, str]] = {}

    def heard(self, event: Event, /) -> None:
        """No other reason, no other words, and no silence, follow."""
        if event.what is not What.TOLD or not isinstance(event.value, PodStatus):
            return
        why = event.value.reason, event.value.message
        assert any(why) or not (is_victim(event.value) and event.value.is_terminal), (
            f"{event.uid} made room for another one, which ended it, and nothing is told as the reason"
        )
        before = self._told.get(event.uid, why)
        assert before == why, (
            f"{event.uid} was told to end because of {' '.join(before).strip()}, "
            f"and now because of {' '.join(why).strip() or 'nothing'}"
        )
        if any(why):
            self._told[event.uid] = why
