"""Values only: what is known of a pod, and what is to be done for it next."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from nodealloc import _attrs as attrs
from nodealloc._frozen import Frozen, freeze
from nodealloc._typed import typed_fields
from nodealloc.runtime import ContainerEnd, Exit, PodReport

__all__ = ["ContainerPart", "ContainerStep", "Held", "PodPlan", "PodSeen", "Stop", "StopReason", "Why"]


class ContainerPart(enum.Enum):
    """Which part a container has in its pod."""

    EPHEMERAL = "ephemeral container"
    INIT = "init container"
    SIDECAR = "sidecar"
    MAIN = "container"
    UNWANTED = "unwanted container"
    """It runs, and its pod does not name it, or has a newer instance of it."""


class StopReason(enum.Enum):
    """Why a container is stopped while its pod goes on, by the words of events."""

    NONE = ""
    UNKNOWN = "Unknown"
    STARTUP_PROBE = "StartupProbe"
    LIVENESS_PROBE = "LivenessProbe"
    POST_START_HOOK = "FailedPostStartHook"


class Why(enum.Enum):
    """Why a container is started, stopped or left, in words."""

    RUNS = "it runs as it is wanted"
    STARTING = "it runs, and its startup probe has not passed yet"
    INIT_RUNS = "it runs, and what comes after it waits for its end"
    NEVER_RAN = "it has never run"
    CREATED = "it was made and has never run"
    FAILED = "it ended without success"
    ENDED = "it ended, and has to run"
    SUCCEEDED = "it has succeeded"
    STAYS_ENDED = "it ended, and the pod's restart policy leaves it so"
    RAN_ONCE = "it has run, and such a container runs once"
    STATE_UNKNOWN = "the runtime does not know how it is"
    CHANGED = "the pod defines it otherwise than what it was made from"
    NOT_ALIVE = "its liveness probe failed"
    NOT_STARTED = "its startup probe failed"
    NEW_SANDBOX = "the pod gets a new sandbox"
    WAITS_FOR_INIT = "init containers come before it"
    WAITS_FOR_TURN = "another init container comes before it"
    INITIALIZED = "the pod has left it behind"
    POD_ENDS = "nothing of the pod is to run any more"
    DELETED = "its pod is being deleted"
    NOT_NAMED = "the pod does not name it"
    OLD_COPY = "there is a newer instance of it"
    OLD_COPY_RUNS = "an older instance of it has to end before"


@attrs.frozen(kw_only=True, slots=False)  # a dict is filled faster than slots
class Stop:
    """One container that is to be stopped.

    Attributes:
        container_id: The runtime's id of it.
        name: As the pod names it.
        reason: Why, by the words of events; decides whose grace period counts.
        message: For people; "" where there is nothing to say.
    """

    container_id: str
    name: str
    reason: StopReason = StopReason.NONE
    message: str = ""


@attrs.frozen(kw_only=True)
class Held:
    """A start that has to wait.

    Attributes:
        until_s: When it may be tried, on the caller's clock; None where it is
            not time that it waits for.
        reason: One word for programs: `CrashLoopBackOff`, `ImagePullBackOff`.
        message: For people.
    """

    until_s: float | None
    reason: str
    message: str = ""


@typed_fields
@attrs.frozen(kw_only=True)
class PodSeen:
    """What is known of a pod when its next steps are decided.

    Attributes:
        report: What the runtime says of it.
        alive: Container id to what its liveness probe says; absent while it has said nothing.
        started: The same of its startup probe.
        completed: Init containers that are known to have succeeded in the present sandbox.
        ends: Container name to its newest end, kept from before the runtime forgot it.
        end_ids: Container name to the runtime's id of that instance.
        held: Container name to what its start waits for.
        resized: Container id to the `Definitions.resources` that it was given since it was made.
        owed: Ids of instances that were stopped to start again: how they ended says nothing of that.
        is_deleted: Somebody has asked for the pod's end; a deletion timestamp says so too.
    """

    report: PodReport
    alive: Mapping[str, bool] = attrs.field(factory=Frozen[str, bool], validator=freeze)
    started: Mapping[str, bool] = attrs.field(factory=Frozen[str, bool], validator=freeze)
    completed: frozenset[str] = frozenset()
    ends: Mapping[str, ContainerEnd] = attrs.field(factory=Frozen[str, ContainerEnd], validator=freeze)
    end_ids: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    held: Mapping[str, Held] = attrs.field(factory=Frozen[str, Held], validator=freeze)
    resized: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    owed: frozenset[str] = frozenset()
    is_deleted: bool = False


@attrs.frozen(kw_only=True, slots=False)  # a dict is filled faster than slots
class ContainerStep:
    """What is decided for one container. Neither `start` nor `stop`: it is left as it is.

    Attributes:
        name: As the pod names it.
        part: Which part it has.
        why: The reason.
        start: Whether an instance is to be started; with `stop`, after the present one has gone.
        stop: The instance that is to be stopped; None for none.
        exit: How its newest instance ended; None where it has not.
        held: What its start waits for; None where it waits for nothing. Then `start` is False.
        resize: Whether other resources are to be given to it while it runs.
    """

    name: str
    part: ContainerPart
    why: Why
    start: bool = False
    stop: Stop | None = None
    exit: Exit | None = None
    held: Held | None = None
    resize: bool = False


@attrs.frozen(kw_only=True, slots=False)  # a dict is filled faster than slots
class PodPlan:
    """What is to be done for a pod next; nothing where `is_done`.

    Attributes:
        uid: The pod's.
        ends: All that lives of it is to be stopped, its sandboxes too, before anything starts.
        makes_sandbox: A sandbox is to be made, after that.
        sandbox_id: The sandbox at hand; "" for none.
        attempt: Of the sandbox that is used or made.
        steps: One for each container: ephemeral, init, main, unwanted ones; each in the pod's order.
        sandbox_why: Why the sandbox at hand will not do; "" where it does.
    """

    uid: str
    ends: bool = False
    makes_sandbox: bool = False
    sandbox_id: str = ""
    attempt: int = 0
    steps: tuple[ContainerStep, ...] = ()
    sandbox_why: str = ""

    @property
    def starts(self) -> tuple[str, ...]:
        """Names of containers to start, in the order in which it is done."""
        return tuple([one.name for one in self.steps if one.start])

    @property
    def stops(self) -> tuple[Stop, ...]:
        """Containers stopped for reasons of their own, by id; `stops_of` has all of an ending pod."""
        found = [one.stop for one in self.steps if one.stop is not None]
        return tuple(sorted(found, key=lambda one: one.container_id))

    @property
    def again_at_s(self) -> float | None:
        """When the first start that waits for a time may be tried; None where none does."""
        times = [one.held.until_s for one in self.steps if one.held and one.held.until_s is not None]
        return min(times, default=None)

    @property
    def is_done(self) -> bool:
        """Whether all is as it is wanted, or waits for what is known."""
        busy = self.ends or self.makes_sandbox
        return not busy and not any(one.start or one.stop or one.resize for one in self.steps)

    def step(self, name: str, /) -> ContainerStep | None:
        """What is decided for the container that the pod names so; None where it names none."""
        return next(
            (one for one in self.steps if one.name == name and one.part is not ContainerPart.UNWANTED), None
        )
