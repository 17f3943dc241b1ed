"""Values only: what is known of a container's health; no probe and no answer yet are not the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias, Union

from nodealloc import _attrs as attrs
from nodealloc._frozen import Frozen, freeze
from nodealloc._typed import typed_fields, typed_methods, typed_on_error
from nodealloc.probes._kinds import ProbeKind

__all__ = [
    "NO_ANSWER",
    "ContainerVerdicts",
    "NoAnswer",
    "NoProbe",
    "Passed",
    "PodVerdicts",
    "ProbeVerdict",
    "Unwell",
]


@attrs.frozen
class NoProbe:
    """The pod asks for no such probe: it counts as started, alive and ready."""


@attrs.frozen
class NoAnswer:
    """There is such a probe, and no answer has counted yet: nobody knows."""


@attrs.frozen
class Passed:
    """As many successes in a row as count."""


@typed_fields
@attrs.frozen(kw_only=True)
class Unwell:
    """As many failures in a row as count.

    Attributes:
        message: What the last answer said, for people.
        grace_s: Seconds that the probe gives a container which is killed for
            this; None for the pod's own grace.
    """

    message: str = ""
    grace_s: float | None = None


ProbeVerdict: TypeAlias = Union[NoProbe, NoAnswer, Passed, Unwell]
"""What is known of one probe of one container; it stands until there is a new one."""

NO_ANSWER: Final = NoAnswer()


@typed_methods
@typed_fields
@attrs.frozen(kw_only=True)
class ContainerVerdicts:
    """What is known of one instance of a container.

    Attributes:
        startup: Whether it has started.
        liveness: Whether it is alive.
        readiness: Whether it is ready.
    """

    startup: ProbeVerdict = NoProbe()
    liveness: ProbeVerdict = NoProbe()
    readiness: ProbeVerdict = NoProbe()

    @typed_on_error
    def __getitem__(self, kind: ProbeKind, /) -> ProbeVerdict:
        """The verdict of a kind."""
        return {
            ProbeKind.STARTUP: self.startup,
            ProbeKind.LIVENESS: self.liveness,
            ProbeKind.READINESS: self.readiness,
        }[kind]

    def with_verdict(self, kind: ProbeKind, verdict: ProbeVerdict, /) -> ContainerVerdicts:
        """With another verdict of a kind."""
        return attrs.evolve(self, **{kind.value: verdict})

    @property
    def has_started(self) -> bool:
        """Whether it has passed its startup, or has none to pass."""
        return isinstance(self.startup, NoProbe | Passed)

    @property
    def is_ready(self) -> bool:
        """Whether it may be sent requests: it has started, and is ready where it is asked for that."""
        return self.has_started and isinstance(self.readiness, NoProbe | Passed)

    @property
    def kill(self) -> Unwell | None:
        """Why it has to be killed, startup first; None where nothing says so."""
        return next((one for one in (self.startup, self.liveness) if isinstance(one, Unwell)), None)


@typed_fields
@attrs.frozen(kw_only=True)
class PodVerdicts:
    """What is known of the containers of one pod; remembered over restarts of the agent.

    Attributes:
        uid: The pod's.
        by_container: By the runtime's id, each instance that runs and has a probe.
    """

    uid: str
    by_container: Mapping[str, ContainerVerdicts] = attrs.field(
        factory=Frozen[str, ContainerVerdicts], validator=freeze
    )

    @property
    def started(self) -> Mapping[str, bool]:
        """Startup, by the runtime's id; who has no answer yet, or no such probe, is absent."""
        return dict(self._known(lambda one: one.startup))

    @property
    def alive(self) -> Mapping[str, bool]:
        """Liveness, likewise."""
        return dict(self._known(lambda one: one.liveness))

    @property
    def ready(self) -> Mapping[str, bool]:
        """Readiness, likewise."""
        return dict(self._known(lambda one: one.readiness))

    def without_startup(self) -> PodVerdicts:
        """Without those of instances with a startup probe: a kubelet that starts again asks them anew."""
        kept = {
            one: verdicts
            for one, verdicts in self.by_container.items()
            if isinstance(verdicts.startup, NoProbe)
        }
        return PodVerdicts(uid=self.uid, by_container=kept)

    def of(self, container_id: str, /) -> ContainerVerdicts | None:
        """Of one instance; None for one that has no probes, or that nobody has heard of."""
        return self.by_container.get(container_id)

    def _known(self, of: Callable[[ContainerVerdicts], ProbeVerdict]) -> Iterator[tuple[str, bool]]:
        for container_id, verdicts in self.by_container.items():
            verdict = of(verdicts)
            if isinstance(verdict, Passed | Unwell):
                yield container_id, isinstance(verdict, Passed)
