"""Values only: what is remembered of a pod."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from itertools import takewhile
from typing import cast

from nodealloc import _attrs as attrs
from nodealloc._arguments import within
from nodealloc._frozen import Frozen, extended, freeze, frozen, reduced
from nodealloc._typed import typed_fields
from nodealloc.podfacts import LifeState
from nodealloc.podlife._definitions import Definitions
from nodealloc.podlife._life import POD_LIFE, LifeEvent
from nodealloc.podlife._look import Look, StartFailure
from nodealloc.podlife._plan import StopReason
from nodealloc.podlife._restarts import Restarts
from nodealloc.podspec import Pod
from nodealloc.runtime import ContainerReport, SandboxReport
from nodealloc.verdicts import NotYet

__all__ = [
    "Begun",
    "Coming",
    "Ending",
    "EndingKind",
    "HookState",
    "Ours",
    "PodRecord",
    "Starting",
    "Stopping",
    "Unheeded",
]


class EndingKind(enum.Enum):
    """Why a pod has to end."""

    REMOVED = "removed"
    """No source has it any more."""
    DELETED = "deleted"
    """Somebody asked its source for its deletion."""
    COMPLETED = "completed"
    """Its containers have ended, and none starts again."""
    DEADLINE = "deadline"
    """It was active for longer than it may be."""
    EVICTED = "evicted"
    """The node, or somebody on it, wants it to go: pressure, room for another, shutdown."""
    REFUSED = "refused"
    """A preparer refused the pod for good."""
    ORPHANED = "orphaned"
    """Only the runtime knew it."""


@typed_fields
@attrs.frozen(kw_only=True)
class Ending:
    """Why a pod has to end, and what is told of it.

    Attributes:
        kind: Why.
        reason: One word for programs (`Evicted`, `DeadlineExceeded`), told with the phase; "" for none.
        message: For people, or "".
        grace_s: How long it has at most, in seconds; None for as long as the pod says.
        disruption: Reason of the condition that somebody disturbed it
            (`TerminationByKubelet`); "" for none.
    """

    kind: EndingKind
    reason: str = ""
    message: str = ""
    grace_s: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(within(0, finite=True))
    )
    disruption: str = ""


class HookState(enum.Enum):
    """How far a hook of one container has come."""

    WAITS = "waits"
    DONE = "done"
    FAILED = "failed"


@attrs.frozen(kw_only=True)
class Starting:
    """An instance of a container that is being made.

    Attributes:
        attempt: Counts the instances, from 0.
        sandbox_id: Where.
    """

    attempt: int
    sandbox_id: str


@attrs.frozen(kw_only=True)
class Begun:
    """An instance of a container that was told to start, or is about to be.

    Attributes:
        container_id: The runtime's id of it.
        attempt: Counts the instances, from 0.
        is_lost: Whether a listing that began after that did not have it: it has ended, and
            nobody knows how.
    """

    container_id: str
    attempt: int
    is_lost: bool = False


@attrs.frozen(kw_only=True)
class Stopping:
    """A container that is stopped while its pod goes on.

    Attributes:
        name: As the pod names it.
        deadline_s: When it has ended at the latest, on the engine's clock.
        grace_s: How long it had in all.
        reason: Why.
        message: For people.
    """

    name: str
    deadline_s: float
    grace_s: float
    reason: StopReason = StopReason.NONE
    message: str = ""


@attrs.frozen(kw_only=True)
class Unheeded:
    """Something that the runtime said it did, and did not as far as its listing shows.

    Attributes:
        verb: What: `stop`, `kill`, `start` or `remove`, `run sandbox` or `stop sandbox`.
        id: Of the container or sandbox, by the runtime; of a sandbox that was run the one it named.
        name: Of the container, as the pod names it; "" where it is none.
        times: How often it said so.
        since_s: When it did first, on the engine's clock.
        again_s: When it is asked again, on the same.
        is_undone: Whether a listing that began later showed it undone.
    """

    verb: str
    id: str
    name: str = ""
    times: int = 1
    since_s: float = 0.0
    again_s: float = 0.0
    is_undone: bool = False


@attrs.frozen(kw_only=True)
class Coming:
    """A form of a pod that waits for its parts, while another one runs.

    Attributes:
        pod: In that form.
        edition: Its number; no other form of the pod has it.
        ready: Preparations that are ready for it.
        provided: Preparation to what it gives that form.
    """

    pod: Pod = attrs.field(eq=id)
    edition: int
    ready: frozenset[str] = frozenset()
    provided: Mapping[str, object] = attrs.field(factory=Frozen[str, object], validator=freeze)


@attrs.frozen(kw_only=True)
class Ours:
    """A sandbox or container as our own call left it.

    Attributes:
        number: Of the listing that shows it.
        report: What was made; None for something that was ended.
    """

    number: int
    report: SandboxReport | ContainerReport | None = None


@attrs.frozen(kw_only=True, slots=False)  # a dict is copied faster than slots
class PodRecord:
    """What is remembered of a pod. Moments are on the engine's clock.

    Attributes:
        pod: The form that is acted upon.
        edition: Its number: a later form has a higher one, from 1.
        life: How far it has come.
        noticed_s: When it was first taken up.
        noticed_unix_s: The same in Unix seconds.
        ending: Why it ends; the first cause stays.
        grace_s: How long it has to end; None while it has not to.
        deadline_s: When all of it has ended; None while it has not to.
        made: Preparations that were begun, in their order; they are taken back in the reverse.
        sandbox_attempt: Of the newest sandbox that was ever asked for; -1 for none.
        starting: Container name to the instance that is being made.
        begun: Container name to its newest instance that was told to start.
        attempts: Container name to the newest attempt that was ever begun.
        completed: Init containers that succeeded, with the sandbox they did so in.
        ended: Container name to its newest instance that has ended, and when that was first seen.
        restarts: Back-off of its containers.
        stopping: Container id to a stop that was decided while the pod goes on.
        post_start: Container id to how far its hook has come.
        pre_stop: Container id to how far its hook has come.
        owed: Container name to its last instance that was stopped to start again; a later one is another.
        resized: Container id to the resources that it was given since it was made.
        pokes: Pokes that were answered.
        coming: A newer form, which is acted upon once its parts are ready; forgotten with the process, as
            whoever said it says it again.
        edition_ready: Preparation to the edition that it is ready for; forgotten likewise.
        provided: Preparation to what it gives; forgotten with the process.
        waits_for: What it waits for; forgotten with the process.
        failures: Container name to why it does not start; forgotten with the process.
        images: Container name to the image that was got for it, by the runtime's id; "" for one that
            is not on the node and has to be fetched; forgotten likewise.
        ours: Id to a sandbox or container as our own call left it; counts until a listing shows it.
        stopped: Container name to an instance that was stopped to start again and whose end does
            not count yet (`Rules.counts_stopped`), and sandboxes that were stopped, by their ids
            (`Rules.stops_ready`); forgotten likewise.
        owed_here: Those of `owed` that this process decided on; forgotten likewise.
        look: The last one, by a kubelet's rules (`Rules.tells_meanwhile`); forgotten likewise.
        tries_at_s: When it is asked again whether it may start, by a kubelet's rules; forgotten likewise.
        finished_s: When the last round of a kubelet's housekeeping before its finish ended; likewise.
        doubt: Number of the first listing that shows what our last call did; nothing is made before
            it. None while that call has not come back.
        asked: What the runtime said yes to and no listing has shown done; forgotten likewise.
        told_by_s: Until when its end waits for others to hear that it is not ready.
        definitions: What the containers of its form are made from; worked out anew by each process.
    """

    pod: Pod = attrs.field(eq=id)
    edition: int = 1
    life: LifeState = LifeState.WAITING
    noticed_s: float = 0.0
    noticed_unix_s: float = 0.0
    ending: Ending | None = None
    grace_s: float | None = None
    deadline_s: float | None = None
    made: tuple[str, ...] = ()
    sandbox_attempt: int = -1
    starting: Mapping[str, Starting] = attrs.field(factory=Frozen[str, Starting], validator=freeze)
    begun: Mapping[str, Begun] = attrs.field(factory=Frozen[str, Begun], validator=freeze)
    attempts: Mapping[str, int] = attrs.field(factory=Frozen[str, int], validator=freeze)
    completed: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    ended: Mapping[str, tuple[str, float]] = attrs.field(
        factory=Frozen[str, tuple[str, float]], validator=freeze
    )
    restarts: Restarts = Restarts()
    stopping: Mapping[str, Stopping] = attrs.field(factory=Frozen[str, Stopping], validator=freeze)
    post_start: Mapping[str, HookState] = attrs.field(factory=Frozen[str, HookState], validator=freeze)
    pre_stop: Mapping[str, HookState] = attrs.field(factory=Frozen[str, HookState], validator=freeze)
    owed: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    resized: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    pokes: Mapping[str, int] = attrs.field(factory=Frozen[str, int], validator=freeze)
    # From here on nothing is stored; what is, `_codec` writes.
    coming: Coming | None = None
    edition_ready: Mapping[str, int] = attrs.field(factory=Frozen[str, int], validator=freeze)
    provided: Mapping[str, object] = attrs.field(factory=Frozen[str, object], validator=freeze)
    waits_for: NotYet | None = None
    failures: Mapping[str, StartFailure] = attrs.field(factory=Frozen[str, StartFailure], validator=freeze)
    images: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    ours: Mapping[str, Ours] = attrs.field(factory=Frozen[str, Ours], validator=freeze)
    stopped: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    owed_here: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    look: Look | None = None
    tries_at_s: float | None = None
    finished_s: float | None = None
    doubt: int | None = 0
    told_by_s: float | None = None
    asked: Mapping[str, Unheeded] = attrs.field(factory=Frozen[str, Unheeded], validator=freeze)
    definitions: Definitions | None = attrs.field(default=None, eq=False, repr=False)

    def moved(self, event: LifeEvent, /) -> PodRecord:
        """After an event, by the table of a pod's life."""
        return self.but(life=POD_LIFE.after(self.life, event))

    def but(self, **fields: object) -> PodRecord:
        """With other values of some fields: as `attrs.evolve`, at a tenth of its cost, and unchecked."""
        made = object.__new__(PodRecord)
        held = vars(made)
        held.update(vars(self))
        for name, value in fields.items():
            held[name] = frozen(cast("Mapping[str, object]", value)) if isinstance(value, dict) else value
        return made

    def failing(self, name: str, failure: StartFailure | None, /) -> PodRecord:
        """With another reason why a container does not start; None where there is none."""
        if failure is None:
            failures = reduced(self.failures, name) if name in self.failures else self.failures
        else:
            failures = extended(self.failures, name, failure)
        return self if failures is self.failures else self.but(failures=failures)

    def is_stored_as(self, other: PodRecord | None, /) -> bool:
        """Whether nothing differs that outlives the process."""
        return other is not None and all(
            (mine := getattr(self, name)) is (theirs := getattr(other, name)) or mine == theirs
            for name in _STORED
        )


_STORED = tuple(takewhile("coming".__ne__, (field.name for field in attrs.fields(PodRecord))))
"""Fields of a record that outlive the process: those before the first that does not."""
