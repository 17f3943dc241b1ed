"""Containers of a simulated node that live and end by themselves, and what befalls them."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable, MutableSequence

import attrs

from nodealloc.podfacts import Exited, ExitUnknown, PodIdentity
from nodealloc.runtime import (
    ContainerConfig,
    ContainerReport,
    NoSuchRecordError,
    RunState,
    RuntimeRefusedError,
    SandboxConfig,
    SandboxReport,
)
from nodealloc.testing.runtime import FakeContainerRuntime
from nodealloc.testing.simulation._clock import SimulatedClock
from nodealloc.testing.simulation.node._behaviour import (
    IMAGE,
    Behaviour,
    end_reason,
    last_words,
)
from nodealloc.testing.simulation.node._events import Event, Events, What

__all__ = ["LOST_S", "LivingContainers"]

LOST_S = 100.0
"""What comes so long after it was asked for nobody waits for any more."""


class LivingContainers(FakeContainerRuntime):
    """What lives in a runtime outside the agent: it lives on while the agent is dead.

    What is due happens when somebody looks (`catch_up`), at its own time.

    Args:
        clock: The machine's.
        events: Is told what happens.
        behave: From pod uid, container name and attempt to what it does.

    Attributes:
        unwell: Commands that fail, by the container's id.
        made_with: What each container was made from, by its id.
        boxes_with: The same of each sandbox.
        devices: What it was made with, by its id and resource.
        late: Ids of containers that were made or started, and of sandboxes that were run, so long after
            that was asked for that nobody waits for such a call: the clock had jumped.
        asked_late: How often a command was to run in a container that had ended, by its id: who asks has
            not heard of that yet, and hears of a failure.
        answered: Commands that have ended, by the container's id: who asked for them has heard of it.
        unseen: Ids of containers that ran here before the agent, until it was told for the first time how
            they are.
        strange: Ids of containers that somebody else started here, and of sandboxes that they made: of
            them nothing is told but that.
    """

    def __init__(
        self, clock: SimulatedClock, events: Events, behave: Callable[[str, str, int], Behaviour]
    ) -> None:
        super().__init__(unix_s=lambda: self._now_unix_s, images=(IMAGE,))
        self._clock = clock
        self._events = events
        self._behave = behave
        self._now_unix_s = clock.unix_s
        self._due: list[tuple[float, int, str, int]] = []
        self._order = 0
        self._behaviours: dict[str, Behaviour] = {}
        self.unwell: dict[str, set[str]] = {}
        self.made_with: dict[str, ContainerConfig] = {}
        self.boxes_with: dict[str, SandboxConfig] = {}
        self.devices: dict[str, dict[str, tuple[str, ...]]] = {}
        self.late: set[str] = set()
        self.asked_late: Counter[tuple[str, str]] = Counter()
        self.answered: set[tuple[str, str]] = set()
        self.unseen: set[str] = set()
        self.strange: set[str] = set()
        # A whole life's calls would fill the memory.
        self.calls: MutableSequence[str] = deque(maxlen=200)

    @property
    def running(self) -> list[ContainerReport]:
        """Containers that run now."""
        self.catch_up()
        return [one for one in self._containers.values() if one.record.state is RunState.RUNNING]

    @property
    def reports(self) -> list[ContainerReport]:
        """Every container that the runtime knows."""
        self.catch_up()
        return list(self._containers.values())

    @property
    def sandboxes(self) -> list[SandboxReport]:
        """Every sandbox that the runtime knows."""
        return list(self._sandboxes.values())

    def catch_up(self) -> None:
        """Let everything end that is due by now."""
        now_s = self._clock.awake_s
        wall_s = self._clock.unix_s
        while self._due and self._due[0][0] <= now_s:
            due_s, _, container_id, code = heapq.heappop(self._due)
            one = self._containers.get(container_id)
            if one is not None and one.record.state is RunState.RUNNING:
                self._now_unix_s = wall_s - (now_s - due_s)
                self._ends(container_id, _exited(code), due_s)
        self._now_unix_s = wall_s

    def start(self, container_id: str, asked_s: float | None = None) -> None:
        """The same, asked for at that time; None for now."""
        self.catch_up()
        if asked_s is not None and self._clock.awake_s - asked_s > LOST_S:
            self.late.add(container_id)
        before = self._containers.get(container_id)
        try:
            super().start_container(container_id)
        except RuntimeRefusedError:
            if before is not None and before.record.state is RunState.CREATED:
                self._happen(What.ENDED, container_id, self._containers[container_id].exit)
            raise
        record = self._containers[container_id].record
        behaviour = self._behave(record.pod.uid, record.name, record.attempt)
        self._behaviours[container_id] = behaviour
        if behaviour.fails:
            self.unwell.setdefault(container_id, set()).update(behaviour.fails)
        self._say(attrs.evolve(self._event(What.STARTED, container_id), asked_s=asked_s))
        if behaviour.runs_s != float("inf"):
            self._end_at(container_id, self._clock.awake_s + behaviour.runs_s, behaviour.code)

    def ask_to_end(self, container_id: str, grace_s: float, asked_s: float | None = None, /) -> float:
        """Send TERM, and KILL after the grace; seconds until it will have ended, 0 for at once."""
        self.catch_up()
        one = self._containers.get(container_id)
        if one is None or one.record.state is not RunState.RUNNING:
            return 0.0
        self._say(attrs.evolve(self._event(What.SIGNALLED, container_id, grace_s), asked_s=asked_s))
        does = self._behaviours.get(container_id, Behaviour(runs_s=0, code=0, leaves_s=0))
        takes_s = max(0.0, min(grace_s, does.leaves_s))
        code = does.leaves_with if does.leaves_s <= grace_s and grace_s > 0 else 137
        if takes_s == 0.0:
            self._ends(container_id, _exited(code), self._clock.awake_s)
        else:
            self._end_at(container_id, self._clock.awake_s + takes_s, code)
        return takes_s

    def end_now(self, container_id: str, /) -> None:
        """What had been asked to end has ended; for a call in which no time can pass."""
        one = self._containers.get(container_id)
        if one is not None and one.record.state is RunState.RUNNING:
            self._ends(container_id, Exited(code=137, signal=9), self._clock.awake_s)

    def takes_s(self, container_id: str, command: str) -> float:
        """How long a command takes in a container."""
        behaviour = self._behaviours.get(container_id)
        return 0.0 if behaviour is None else behaviour.takes_s(command)

    def pod_of(self, id_: str) -> str:
        """The uid of the pod whose container or sandbox this is; "" for unknown."""
        one = self._containers.get(id_) or self._sandboxes.get(id_)
        return "" if one is None else one.record.pod.uid

    def image_of(self, container_id: str) -> str:
        """What a container was made from, by the name that was asked for; "" for unknown."""
        one = self._containers.get(container_id)
        return "" if one is None else one.record.image.removeprefix("sha256:")

    def sandbox_of(self, container_id: str) -> str:
        """The id of its sandbox; "" for unknown."""
        one = self._containers.get(container_id)
        return "" if one is None else one.record.sandbox_id

    def running_of(self, uid: str) -> list[str]:
        """Ids of a pod's containers that run."""
        return [one.record.id for one in self.running if one.record.pod.uid == uid]

    # What others do to it.

    def intrude(self, pod: PodIdentity, name: str) -> None:
        """Somebody starts a container of that name, in the pod's sandbox or in one of its own."""
        boxes = [one.record for one in self._sandboxes.values() if one.record.pod.uid == pod.uid]
        attempt = max((one.attempt + 1 for one in boxes), default=0)
        config = SandboxConfig(pod=pod, hostname=pod.name, attempt=attempt)
        ready = next((one.id for one in boxes if one.is_ready), None)
        if ready is None:
            self.strange.add(sandbox_id := super().run_sandbox(config))
        else:
            sandbox_id = ready
        made = super().create_container(sandbox_id, ContainerConfig(name=name, image=IMAGE), config)
        self.strange.add(made)
        super().start_container(made)
        self._behaviours[made] = Behaviour(runs_s=float("inf"), code=0, leaves_s=3.0)
        at_s = self._clock.awake_s
        self._events.happen(Event(what=What.INTRUDED, at_s=at_s, id=made, value=f"{name} of {pod.uid}"))

    def end_by_itself(self, container_id: str, exit: Exited | ExitUnknown) -> None:  # noqa: A002 - its name
        """A container that runs has ended, nobody knows how where that is what is said."""
        if isinstance(exit, Exited):
            self._ends(container_id, exit, self._clock.awake_s)
        else:
            self._end(container_id, exit, "Unknown")
            self._happen(What.ENDED, container_id, exit)

    def unready(self, sandbox_id: str) -> None:
        """A sandbox is none any more that containers can run in."""
        box = self._sandboxes[sandbox_id]
        record = attrs.evolve(box.record, is_ready=False)
        self._sandboxes[sandbox_id] = attrs.evolve(box, record=record, ips=None)

    def crash(self, container_id: str, code: int) -> None:
        """A container ends by itself, now."""
        one = self._containers.get(container_id)
        if one is not None and one.record.state is RunState.RUNNING:
            self._ends(container_id, Exited(code=code), self._clock.awake_s)

    def vanish(self, container_id: str) -> None:
        """It ends, and its record goes with it."""
        self.crash(container_id, 1)
        self.lose(container_id)

    def lose(self, container_id: str) -> None:
        """Its record is gone."""
        self._happen(What.FORGOT, container_id)
        self.lose_records(container_id)

    def sicken(self, container_id: str, command: str) -> None:
        """A command fails in this container from now on."""
        self.unwell.setdefault(container_id, set()).add(command)
        self._happen(What.SICKENED, container_id, command)

    def _end_at(self, container_id: str, at_s: float, code: int) -> None:
        self._order += 1
        heapq.heappush(self._due, (at_s, self._order, container_id, code))

    def _ends(self, container_id: str, exit: Exited, at_s: float) -> None:  # noqa: A002 - its name
        self._end(container_id, exit, end_reason(exit.code))
        said = attrs.evolve(self._containers[container_id], message=last_words(container_id, exit.code))
        self._containers[container_id] = said
        self._say(attrs.evolve(self._event(What.ENDED, container_id, exit), at_s=at_s))

    def _happen(self, what: What, container_id: str, value: object = None) -> None:
        self._say(self._event(what, container_id, value))

    def _say(self, event: Event) -> None:
        if event.id not in self.strange:
            self._events.happen(event)

    def _event(self, what: What, container_id: str, value: object = None) -> Event:
        if (one := self._containers.get(container_id)) is None:
            raise NoSuchRecordError("event", container_id)
        record = one.record
        return Event(
            what=what,
            at_s=self._clock.awake_s,
            uid=record.pod.uid,
            name=record.name,
            id=container_id,
            attempt=record.attempt,
            value=value,
        )


def _exited(code: int) -> Exited:
    """As runtimes tell it."""
    return Exited(code=code, signal=code - 128 if code > 128 else None)
