"""Values only: all that is known of one pod, as whoever tells of it is handed it."""

from __future__ import annotations

from collections.abc import Mapping

from nodealloc import _attrs as attrs
from nodealloc._frozen import Frozen, freeze
from nodealloc._typed import typed, typed_fields, typed_fields_on_error
from nodealloc.errors import ConfigurationError
from nodealloc.podfacts import LifeState, PodStatus, ResourceStatus
from nodealloc.podspec import Pod
from nodealloc.runtime import ContainerEnd, PodKnown, PodReport

__all__ = ["Health", "Observed", "StartFailure", "ToldEnding", "with_runtime"]


def _word(made: object, field: attrs.Attribute[str], value: object) -> None:
    if not isinstance(value, str) or not value:
        raise ConfigurationError(
            f"{type(made).__name__}.{field.name} is {value!r}; give one word for programs"
        )


@typed_fields_on_error
@attrs.frozen(kw_only=True)
class Health:
    """What probes have said of one instance of a container.

    Whether there is a probe at all is what the pod says, and never a verdict:
    without a result a container that has a probe has not passed it.

    Attributes:
        startup: Whether its startup probe has succeeded; None while there is no result.
        readiness: Whether its readiness probe succeeds; None while there is no result.
    """

    startup: bool | None = None
    readiness: bool | None = None


@typed_fields
@attrs.frozen(kw_only=True)
class StartFailure:
    """Why a container that is to run does not run (again) yet.

    Attributes:
        reason: One word for programs: `ErrImagePull`, `CrashLoopBackOff`.
        message: For people, or "".
        until_s: When the next try may be, on the clock of whoever tells; None where it is
            not time that it waits for.
    """

    reason: str = attrs.field(validator=_word)
    message: str = ""
    until_s: float | None = None


@typed_fields
@attrs.frozen(kw_only=True)
class ToldEnding:
    """Somebody else than the pod itself decided that it fails: eviction, shutdown, refusal, a deadline.

    Attributes:
        reason: One word for programs: `Evicted`, `DeadlineExceeded`, `OutOfcpu`.
        message: For people, or "".
        disruption: Reason of the condition `DisruptionTarget` (`TerminationByKubelet`);
            "" where the pod is not a victim of something else.
    """

    reason: str = attrs.field(validator=_word)
    message: str = ""
    disruption: str = ""


@typed_fields
@attrs.frozen(kw_only=True)
class Observed:
    """All that is known of a pod at one moment; what is not known is absent.

    Attributes:
        pod: What it asks for, as its source has it now.
        life: How far it has come.
        report: What the runtime says; None where nobody could ask, from which nothing follows.
        ends: How instances ended that the runtime may have forgotten, by container id.
        health: What probes have said, by the runtime's id of a container.
        start_failures: Why containers do not run, by the container's name.
        counts: Restarts that are known from elsewhere, by the container's name.
        owed: The runtime's ids of instances that were stopped to start again: whatever the policy says of how
            they ended, their containers wait for that.
        ending: Why somebody ends it, where somebody does.
        refused: It was never let in, so that nothing of it was made.
        devices: Health of the devices that containers hold, by the container's name.
        source_status: What its source holds as its status: conditions of others, a
            phase that it cannot leave. None where the source has none.
        static: It comes from a source of this node's own.
        noticed_unix_s: When the node took notice of it, in Unix seconds; None for the
            moment at which it is first told of.
    """

    pod: Pod
    life: LifeState = LifeState.SYNCING
    report: PodReport | None = None
    ends: Mapping[str, ContainerEnd] = attrs.field(factory=Frozen[str, ContainerEnd], validator=freeze)
    health: Mapping[str, Health] = attrs.field(factory=Frozen[str, Health], validator=freeze)
    start_failures: Mapping[str, StartFailure] = attrs.field(
        factory=Frozen[str, StartFailure], validator=freeze
    )
    counts: Mapping[str, int] = attrs.field(factory=Frozen[str, int], validator=freeze)
    owed: frozenset[str] = frozenset()
    ending: ToldEnding | None = None
    refused: bool = False
    devices: Mapping[str, tuple[ResourceStatus, ...]] = attrs.field(
        factory=Frozen[str, "tuple[ResourceStatus, ...]"], validator=freeze
    )
    source_status: PodStatus | None = None
    static: bool = False
    noticed_unix_s: float | None = None

    def __attrs_post_init__(self) -> None:
        if self.report is not None and self.report.uid != self.pod.uid:
            raise ConfigurationError(
                f"Observed.report: of pod {self.report.uid}, and observed is pod {self.pod.uid}; "
                "inspect the pod by its uid"
            )

    @property
    def is_ending(self) -> bool:
        """Whether it was decided that it ends, by whomever."""
        return self.life.is_ending or self.ending is not None or bool(self.pod.deletion_timestamp)

    @property
    def is_over(self) -> bool:
        """Whether nothing of it runs, or ever will."""
        return self.life.is_ending and not self.life.may_run


@typed
def with_runtime(observed: Observed, known: PodKnown, /) -> Observed:
    """With what `RuntimeWatch.pods` has of the pod.

    Where an inspection failed, what was known before it stands; a pod of which
    nothing is left has an empty report, and its ends. From one that was never
    looked at nothing follows, not even from ends that are remembered of it. Its life is
    not over then: how its containers ended is still to be read.

    Raises:
        ConfigurationError: It is another pod's.
    """
    if known.uid != observed.pod.uid:
        raise ConfigurationError(
            f"with_runtime: what is observed is of pod {observed.pod.uid}, what is known of pod {known.uid}; "
            "look it up by the pod's uid"
        )
    report = known.report
    if report is None and not known.marks and not known.fault:
        report = PodReport(uid=known.uid)
    if report is None:
        return attrs.evolve(observed, life=LifeState.TERMINATING) if observed.is_over else observed
    return attrs.evolve(observed, report=report, ends=known.ends)
