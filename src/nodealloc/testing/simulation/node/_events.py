"""What really happened on the simulated node, in order; checkers and stories read it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Final, Self

from nodealloc import _attrs as attrs
from nodealloc.podfacts import (
    ConditionStatus,
    ContainerRunning,
    ContainerStatus,
    ContainerTerminated,
    Exited,
    PodStatus,
)
from nodealloc.podspec import Pod

__all__ = ["PULL", "STOP", "Deletion", "Event", "Events", "Ran", "What"]


class What(enum.Enum):
    """Kinds of events; the first ones are the node's, the others of what is around it."""

    SANDBOX_MADE = "sandbox made"
    SANDBOX_STOPPED = "sandbox stopped"
    SANDBOX_REMOVED = "sandbox removed"
    MADE = "container made"
    STARTED = "container started"
    SIGNALLED = "container asked to end"
    REMOVED = "container removed"
    TOLD = "status told"
    GONE = "told gone"
    CONFINED = "container confined"
    RESIZED = "container given other amounts"
    MOUNTED = "mounted"
    UNMOUNTED = "unmounted"
    LIMITED = "cgroup limited"
    UNLIMITED = "cgroup removed"
    RAN = "command run"
    AWAITED = "what came of a command is heard"
    PULLED = "image fetched"
    IMAGE_REMOVED = "image removed"
    GIVEN = "devices given"
    ALLOCATED = "plugin allocated"
    PREPARED = "plugin prepared"

    ENDED = "container ended"
    WANTED = "pod wanted"
    HELD_BACK = "pod waits for its name"
    EDITED = "pod edited"
    DELETED = "deletion asked for"
    UNWANTED = "pod gone from its source"
    READ = "the agent reads that it is to end"
    INTRUDED = "somebody else starts a container"
    KILLED = "the agent was killed"
    POWER = "the power went"
    RESTARTED = "the runtime came back"
    FORGOT = "the runtime forgot"
    SICKENED = "a command fails from now on"
    PLUGIN = "plugin"
    DEVICE = "device is well"
    HUNG = "a call hangs"
    FAILED = "a call fails"
    AWAY = "the runtime goes away"
    UNSURE = "the runtime does not know the state of"
    SANDBOX_ENDED = "sandbox ended by itself"
    DOUBLED = "another sandbox is ready"


STOP: Final = "stop_container"
"""The call that asks a container to end, as the value of events of calls that hang or fail."""
PULL: Final = "pull_image"
"""The call that fetches an image, as the value of events of calls that fail; their id is its name."""


@attrs.frozen
class Ran:
    """A command that was to run in a container.

    Attributes:
        command: Its first word: `ready`, `live` or `started` of a probe, `pre-stop` of a hook.
        came_of_it: Its exit status as text, or `timed out`, `refused`, `away`.
        whose: The container that it is written for, by its second word; "" where it has none. Two that
            differ in that alone are equal.
    """

    command: str
    came_of_it: str
    whose: str = attrs.field(default="", eq=False)

    @classmethod
    def of(cls, command: Sequence[str], came_of_it: str) -> Self:
        """From all its words."""
        first, *rest = command
        return cls(first, came_of_it, next(iter(rest), ""))

    @property
    def failed(self) -> bool:
        """Whether whoever asked was told that it failed."""
        return self.came_of_it not in {"0", "away"}

    def __str__(self) -> str:
        return f"{self.command}: {self.came_of_it}"


@attrs.frozen(kw_only=True)
class Event:
    """One thing that happened.

    Attributes:
        what: Of which kind.
        at_s: Virtual seconds that the machine was awake, since the simulation began; they never go back.
        uid: The pod concerned, or "".
        name: The container concerned, or "".
        id: Of the container or sandbox, or "".
        attempt: Its attempt.
        value: What belongs to the kind: an exit, a status, a grace in seconds, a set of CPUs, a `Ran`,
            ids of devices with commas between, whether an image was there as it was asked for.
        asked_s: When the agent asked for it, where the runtime took its time; None for then.
    """

    what: What
    at_s: float
    uid: str = ""
    name: str = ""
    id: str = ""
    attempt: int = 0
    value: object = None
    asked_s: float | None = None

    def __str__(self) -> str:
        where = "/".join(one for one in (self.uid, self.name) if one) or self.id
        attempt = f" (attempt {self.attempt})" if self.attempt else ""
        value = "" if self.value is None else f": {_short(self.value)}"
        return f"{self.what.value} {where}{attempt}{value}".strip()


def _short(value: object) -> str:
    """A pod or a status in a line's place."""
    match value:
        case Pod():
            containers = ", ".join(one.name for one in value.all_containers)
            return f"{value.name} ({value.restart_policy.value}: {containers})"
        case PodStatus():
            ready = value.condition("Ready")
            parts = [value.phase.value if value.phase else "no phase", value.reason]
            parts.append("ready" if ready is not None and ready.status is ConditionStatus.TRUE else "")
            parts += [f"{one.name} {_state(one)}" for one in value.all_containers]
            return ", ".join(filter(None, parts))
        case float() | int():
            return f"{value:g} s"
        case Exited():
            return str(value.code)
        case _:
            return str(value)


def _state(status: ContainerStatus) -> str:
    state = status.state
    restarts = f" {status.restart_count}x" if status.restart_count else ""
    if isinstance(state, ContainerTerminated):
        code = state.exit.code if isinstance(state.exit, Exited) else "unknown"
        return f"ended {code}{restarts}"
    if isinstance(state, ContainerRunning):
        return f"runs{restarts}"
    return f"waits {state.reason if state else ''}{restarts}"


@attrs.frozen(kw_only=True)
class Deletion:
    """That somebody wants a pod gone.

    Attributes:
        at_s: When it was first asked for, on the clock of events.
        passed_s: The same on a clock that goes on while the machine sleeps.
        grace_s: How long it may take from then.
    """

    at_s: float
    passed_s: float
    grace_s: float

    @property
    def deadline_s(self) -> float:
        """When it has to have ended, on the clock of events."""
        return self.at_s + self.grace_s

    @property
    def passed_deadline_s(self) -> float:
        """The same on a clock that goes on while the machine sleeps."""
        return self.passed_s + self.grace_s


class Events:
    """Hands each event to whoever listens, in the order in which they listen."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[Event], object]] = []

    def listen(self, listener: Callable[[Event], object], /) -> None:
        """Call this with each event; it raises `AssertionError` for a violation."""
        self._listeners.append(listener)

    def happen(self, event: Event, /) -> None:
        """Something happened."""
        for listener in self._listeners:
            listener(event)
