"""Values only: what a step of a pod's life is about, what comes of it, and how long things may take."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TypeAlias, Union

from nodealloc import _attrs as attrs
from nodealloc._arguments import whole, within
from nodealloc._back_off import BackOff
from nodealloc._frozen import Frozen, freeze
from nodealloc._typed import typed_fields, typed_methods
from nodealloc.dsw_asw import Step
from nodealloc.errors import ConfigurationError
from nodealloc.podlife._look import StartFailure
from nodealloc.podlife._restarts import RestartBackOff
from nodealloc.podspec import Pod
from nodealloc.verdicts import NotYet, Refused

__all__ = [
    "Acted",
    "BeginAgain",
    "Detail",
    "Forget",
    "GiveUpName",
    "Hook",
    "HookKind",
    "LifePolicy",
    "MakeReady",
    "Prune",
    "Pull",
    "Remove",
    "Resize",
    "RunSandbox",
    "Start",
    "StopContainer",
    "StopSandbox",
    "TakeBack",
    "uid_of",
]


def _at_least_one(_policy: object, field: attrs.Attribute[int], value: int | None) -> None:
    if value is not None and value < 1:
        raise ConfigurationError(
            f"LifePolicy.{field.name} is {value}; give 1 or more, or None for any number"
        )


@typed_methods
@typed_fields
@attrs.frozen(kw_only=True)
class LifePolicy:
    """How patient a node is with its pods, in seconds.

    Attributes:
        restarts: How long a container that ended waits before it starts again.
        pulls: How long an image that could not be had waits before it is tried again.
        term_s: How long before its deadline a container is told to end in any case, even if its hook
            is not done or it is not its turn; at most half its grace.
        call_s: Past this a call of the runtime counts as lost.
        pull_s: The same of the fetching of an image.
        prepare_s: The same of a preparer.
        hook_s: The same of a post-start hook.
        again_s: So soon a preparer that is not ready is asked for the second time.
        late_s: So long after its deadline a container that still runs is killed once more.
        asks_again: How long the runtime has to do what it said yes to, when a listing shows
            it undone, before it is asked again.
        told_s: So long at most the end of a pod waits until others know that it is not
            ready, inside its grace; 0 for not at all.
        dead_kept: Dead instances of a container whose records stay, for their logs.
        look_after_s: So often a kubelet looks after pods that have finished (`Rules.clears_away`).
        pulls_at_once: Images that are fetched at the same time; None for any number.

    Raises:
        ConfigurationError: A time that is negative, or no pull at all.

    Source: kubelet ``kuberuntime_manager.go``, ``cri-client`` (2 min); the rest is ours.
    """

    restarts: RestartBackOff = RestartBackOff()
    pulls: RestartBackOff = RestartBackOff()
    term_s: float = attrs.field(default=2.0, validator=within(0))
    call_s: float = attrs.field(default=120.0, validator=within(0, above=True))
    pull_s: float = attrs.field(default=18_000.0, validator=within(0, above=True))
    prepare_s: float = attrs.field(default=120.0, validator=within(0, above=True))
    hook_s: float = attrs.field(default=3600.0, validator=within(0, above=True))
    again_s: float = attrs.field(default=1.0, validator=within(0, above=True, finite=True))
    late_s: float = attrs.field(default=0.5, validator=within(0, above=True, finite=True))
    asks_again: BackOff = BackOff()
    told_s: float = attrs.field(default=1.0, validator=within(0, finite=True))
    dead_kept: int = attrs.field(default=1, validator=whole(1))
    look_after_s: float = attrs.field(default=2.0, validator=within(0, above=True, finite=True))
    pulls_at_once: int | None = attrs.field(default=1, validator=_at_least_one)

    def kept_s(self, grace_s: float, /) -> float:
        """What is kept of a grace for the container itself."""
        return min(self.term_s, grace_s / 2)


class HookKind(enum.Enum):
    """When a hook runs."""

    POST_START = "post-start"
    PRE_STOP = "pre-stop"


@attrs.frozen
class MakeReady:
    """Preparations that follow each other, for one edition of the pod.

    Attributes:
        names: In their order; the first that is not ready ends the step.
        edition: Of the pod.
        pod: In that edition.
        new: Of these, what nothing was made for before.
    """

    names: tuple[str, ...]
    edition: int
    pod: Pod = attrs.field(eq=False, repr=False)
    new: tuple[str, ...] = attrs.field(default=(), eq=False, repr=False)


@attrs.frozen
class TakeBack:
    """A preparation that is taken back."""

    name: str
    pod: Pod = attrs.field(eq=False, repr=False)


@attrs.frozen
class Pull:
    """The image of one container of a pod: looked for on the node, or, where it `fetches`, fetched."""

    container: str
    image: str
    uid: str
    fetches: bool


@attrs.frozen
class RunSandbox:
    """A sandbox that is made, after those `before` it were ended for good, with their network.

    The records of containers that it `purges` go after that.
    """

    attempt: int
    edition: int
    before: tuple[str, ...] = ()
    purges: tuple[str, ...] = ()


@attrs.frozen
class Start:
    """An instance that is made and started; one that was made already where `container_id` says so.

    With `only_makes` it is started by another step, once it is remembered that it was made.
    """

    container: str
    attempt: int
    sandbox_id: str
    container_id: str
    edition: int
    only_makes: bool = False


@attrs.frozen
class Resize:
    """Other resources for an instance that runs, as `Definitions.resources` writes them.

    Those that are `freed` it was limited in, and is no more.
    """

    container: str
    container_id: str
    resources: str
    freed: frozenset[str] = frozenset()


@attrs.frozen
class Hook:
    """A hook of one instance; past `until_s`, on the engine's clock, it has failed."""

    kind: HookKind
    container: str
    container_id: str
    until_s: float | None = None


@attrs.frozen
class StopContainer:
    """An instance that has ended at `until_s`, on the engine's clock; `grace_s` is all that it has."""

    container: str
    container_id: str
    until_s: float
    kills: bool = False
    grace_s: float = 0.0


@attrs.frozen
class StopSandbox:
    """A sandbox that is ended."""

    sandbox_id: str


@attrs.frozen
class Remove:
    """Records of the runtime that nobody needs."""

    sandboxes: tuple[str, ...]
    containers: tuple[str, ...]


@attrs.frozen
class Prune:
    """Records of instances and sandboxes that newer ones took the place of."""

    sandboxes: tuple[str, ...]
    containers: tuple[str, ...]


@attrs.frozen
class GiveUpName:
    """The next pod of its name may start."""

    full_name: str


@attrs.frozen
class BeginAgain:
    """It has finished, and what its source has under its uid now is to run."""

    pod: Pod = attrs.field(eq=False, repr=False)
    said_unix_s: float


@attrs.frozen
class Forget:
    """Nothing of it is left, and nobody wants it."""

    full_name: str


Detail: TypeAlias = Union[
    MakeReady,
    TakeBack,
    Pull,
    RunSandbox,
    Start,
    Resize,
    Hook,
    StopContainer,
    StopSandbox,
    Remove,
    Prune,
    GiveUpName,
    BeginAgain,
    Forget,
]
"""What a step is about."""


def uid_of(step: Step[Detail], /) -> str:
    """The pod that a step is for; what fetches an image is done in a scope of the whole node."""
    return step.detail.uid if isinstance(step.detail, Pull) else str(step.scope[1])


@attrs.frozen(kw_only=True)
class Acted:
    """What came of a step.

    Attributes:
        listing: Number of the listing that shows it; None where the runtime was not asked.
        id: Of what was made: a sandbox, a container, an image; "" where it is not known.
        ready: Names of the parts that are ready.
        not_yet: A preparer has to be asked again.
        refused: A preparer said no.
        provided: What a preparer gives; by its name.
        failure: Why a container does not start, or a hook failed.
        had_ended: A container that was to be stopped had ended by itself.
    """

    listing: int | None = None
    id: str = ""
    ready: tuple[str, ...] = ()
    not_yet: NotYet | None = None
    refused: Refused | None = None
    provided: Mapping[str, object] = attrs.field(factory=Frozen[str, object], validator=freeze)
    failure: StartFailure | None = None
    had_ended: bool = False
