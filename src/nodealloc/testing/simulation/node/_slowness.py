"""Checkers of what others feel of a call that hangs, and of what stands after a restart."""

from __future__ import annotations

import heapq

from nodealloc.podfacts import ContainerRunning, PodStatus
from nodealloc.testing.simulation.node._environment import Environment
from nodealloc.testing.simulation.node._events import Event, Ran, What
from nodealloc.testing.simulation.node._guarantee import Guarantee, id_told
from nodealloc.testing.simulation.node._pods import LIVE, POST_START, PRE_STOP, READY

__all__ = ["HooksHoldBack", "SlowCostsItself", "StartupFirst"]

_TOLD_S = 30.0
"""A pod that came, or a container that ended, is told of within so many seconds."""
_ENDS_S = 40.0
"""A pod that is to go is asked to end within so many seconds."""
_LASTS_S = 200.0
"""A call about the whole node that hangs is felt for so many seconds at most."""
_ASKED_S = 2.0
"""A start that began so shortly before a hook may come after it."""
_FOR_STARTS = frozenset({"mount", "pull_image"})
"""Calls about the whole node for which only those wait that are to start."""
_TAKEN, _TELLING, _ENDING = "heard of", "told of", "asked to end"


class SlowCostsItself(Guarantee):
    """Guarantee 6."""

    words = "a call that hangs for one pod delays no other pod"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._hung: set[str] = set()
        self._node_s = self._source_s = -_LASTS_S
        self._due: list[tuple[float, int, str, str]] = []
        self._number = 0
        self._owed: dict[tuple[str, str], int] = {}

    def heard(self, event: Event, /) -> None:
        """What is owed to a pod comes in time, unless a call of its own hangs, or one that all need."""
        if not self.environment.only_hangs:
            return
        uid, now_s, runs = event.uid, event.at_s, self.environment.containers.running_of
        if event.what is What.HUNG:
            self._hear_hung(event)
        elif event.what in {What.TOLD, What.UNWANTED}:
            self._owed.pop((_TAKEN, uid), None)
            self._owed.pop((_TELLING, uid), None)
        elif event.what in {What.SIGNALLED, What.GONE} or (event.what is What.ENDED and not runs(uid)):
            self._owed.pop((_ENDING, uid), None)
        if event.what is What.WANTED:
            self._owe(_TAKEN, uid, now_s + _TOLD_S)
        if (
            event.what is What.ENDED
            and uid in self.environment.told
            and uid not in self.environment.deletions
        ):
            self._owe(_TELLING, uid, now_s + _TOLD_S)
        if event.what is What.READ and not self.environment.containers.strange.issuperset(runs(uid)):
            self._owe(_ENDING, uid, now_s + _ENDS_S)
        while self._due and self._due[0][0] < now_s:
            self._is_in_time(*heapq.heappop(self._due))

    def _hear_hung(self, event: Event) -> None:
        if event.uid:
            self._hung.add(event.uid)
        elif event.value is None:
            self._source_s = event.at_s
        elif event.value not in _FOR_STARTS:
            self._node_s = event.at_s

    def _is_in_time(self, due_s: float, number: int, what: str, uid: str) -> None:
        node_s = max(self._node_s, self._source_s) if what == _TAKEN else self._node_s
        is_felt = uid in self._hung or due_s - node_s < _LASTS_S
        assert is_felt or self._owed.get((what, uid)) != number, (
            f"{uid} is not {what} in time, and no call of its own hangs"
        )

    def _owe(self, what: str, uid: str, due_s: float) -> None:
        if uid not in self._hung and (what, uid) not in self._owed:
            self._number += 1
            self._owed[what, uid] = self._number
            heapq.heappush(self._due, (due_s, self._number, what, uid))


class StartupFirst(Guarantee):
    """Guarantees 1 and 4: what a probe said stands, also after a restart, and nobody is asked too early."""

    words = "whether a container has started is asked until it has, and never again; all else is asked then"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._passed: set[str] = set()
        self._strays_before: dict[str, int] = {}
        self._late: dict[str, int] = {}

    def heard(self, event: Event, /) -> None:
        """Its startup probe is over before another one begins."""
        if event.what is What.STARTED:
            self._strays_before[event.id] = self.environment.strays()
        if event.what is What.TOLD and isinstance(event.value, PodStatus):
            for one in event.value.all_containers:
                if one.started and isinstance(one.state, ContainerRunning):
                    self._hear_started(id_told(one.container_id))
        container = self.container(event) if isinstance(event.value, Ran) else None
        probe = None if container is None else container.startup_probe
        if probe is None or probe.exec is None or not isinstance(event.value, Ran):
            return
        is_asked = event.value.command == probe.exec.command[0]
        if is_asked and event.value.came_of_it == "0":
            self._passed.add(event.id)
        if is_asked and event.id in self._late:
            self._late[event.id] -= 1
            assert self._late[event.id] >= 0, (
                f"{event.uid}/{event.name} is asked whether it has started, and was told to have"
            )
        assert event.value.command not in {READY, LIVE} or event.id in self._passed, (
            f"{event.uid}/{event.name} is asked how it is ({event.value.command}) before it has started"
        )

    def _hear_started(self, container_id: str) -> None:
        """From now on only those calls may ask that an executor began by itself before."""
        if container_id not in self._late:
            strays = self.environment.strays()
            self._late[container_id] = strays - self._strays_before.get(container_id, strays)


class HooksHoldBack(Guarantee):
    """Ours: so a proxy can hold back who needs it."""

    words = "while the post-start hook of a container runs, nothing else of its pod starts"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._hooks: dict[str, dict[str, tuple[float, float, Event]]] = {}

    def heard(self, event: Event, /) -> None:
        """Each start waits for the hooks of those before it, unless they are over or their containers are."""
        if not self.environment.only_ends:
            return
        hooks = self._hooks.get(event.uid, {})
        if event.what is What.KILLED:
            self._hooks.clear()  # it is run again
        elif event.what in {What.SIGNALLED, What.ENDED}:
            hooks.pop(event.id, None)
        elif event.what is What.STARTED and self.container(event) is not None:
            answered = self.environment.containers.answered
            for one, (began_s, ends_s, ran) in hooks.items():
                # What starts for the first time has been behind it, unless it was told to before it began.
                since_s = began_s + (_ASKED_S if event.attempt else 0.0)
                is_behind = since_s < (event.at_s if event.asked_s is None else event.asked_s)
                # One that an edit has end is waited for no more: its successor runs its hook anew.
                is_over = (one, POST_START) in answered or self.is_outdated(ran)
                assert is_over or not (is_behind and event.at_s < ends_s), (
                    f"{event.uid}/{event.name} starts, and the post-start hook of {one} runs"
                )
        elif isinstance(event.value, Ran) and event.value.command == PRE_STOP:
            hooks.pop(event.id, None)
        elif isinstance(event.value, Ran) and event.value.command == POST_START:
            ends_s = event.at_s + self.environment.containers.takes_s(event.id, POST_START)
            late_s = _ASKED_S if event.attempt else 0.0
            self._hooks.setdefault(event.uid, {})[event.id] = event.at_s + late_s, ends_s, event
