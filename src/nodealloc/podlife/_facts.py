"""What others need to know of a pod: one value, derived from what is remembered."""

from __future__ import annotations

from collections.abc import Mapping

from nodealloc import _attrs as attrs
from nodealloc._frozen import Frozen, freeze
from nodealloc._typed import typed_on_error
from nodealloc.dsw_asw import Cancel, Near, Outcome, Plan, Step, View
from nodealloc.podfacts import LifeState
from nodealloc.podlife._look import StartFailure
from nodealloc.podlife._observed import with_lost
from nodealloc.podlife._record import Ending, EndingKind, PodRecord, Unheeded
from nodealloc.podlife._rules import RIGHT, Rules
from nodealloc.podspec import Container, Pod
from nodealloc.runtime import PodKnown, PodReport, RunState
from nodealloc.verdicts import NotYet

__all__ = ["ContainerFacts", "Facts", "PodFacts", "facts_of"]


@attrs.frozen(kw_only=True)
class ContainerFacts:
    """What is known of one container beside what the runtime says.

    Attributes:
        waiting: Why it is not running yet, or not again; None where nothing holds it back.
        restart_count: Times that it was started again; never falls.
        owed: The runtime's id of an instance that was stopped to start again, however it ended; "" for none.
    """

    waiting: StartFailure | None = None
    restart_count: int = 0
    owed: str = ""


@attrs.frozen(kw_only=True)
class PodFacts:
    """What others need to know of a pod.

    Attributes:
        pod: The form of it that is acted upon.
        life: How far it has come.
        known: What the runtime says, with every end; None before anything of it was seen.
        ending: Why it ends; None while it has not to. Once it is there the pod is not ready.
        deadline_s: When all its containers have ended, on the engine's clock; None while it has not to end.
        waits_for: The part or the other pod that it waits for; None for nothing.
        noticed_unix_s: When this node took it up, in Unix seconds.
        containers: By name.
        unheeded: What the runtime said that it did, and its listing shows undone; it is asked again.
        looks: How often a kubelet has looked at it; 0 by the right rules, which tell all the time.
        asked: The form by whose probes it is asked; None for that of `pod`. By a kubelet's rules a container
            keeps the probes that it had first (`Rules.follows_edits`).
    """

    pod: Pod
    life: LifeState
    known: PodKnown | None = None
    ending: Ending | None = None
    deadline_s: float | None = None
    waits_for: NotYet | None = None
    noticed_unix_s: float = 0.0
    containers: Mapping[str, ContainerFacts] = attrs.field(
        factory=Frozen[str, ContainerFacts], validator=freeze
    )
    unheeded: tuple[Unheeded, ...] = ()
    looks: int = 0
    asked: Pod | None = None

    @property
    def report(self) -> PodReport | None:
        """What the runtime says; None before anything of it was seen."""
        return None if self.known is None else self.known.report

    @property
    def is_terminal(self) -> bool:
        """Whether no container of it runs, or ever will."""
        return self.life.is_over

    @property
    def is_orphan(self) -> bool:
        """Whether only the runtime knew it."""
        return self.ending is not None and self.ending.kind is EndingKind.ORPHANED

    @property
    def is_refused(self) -> bool:
        """Whether it was never let in, so that nothing of it was made."""
        return self.ending is not None and self.ending.kind is EndingKind.REFUSED


@typed_on_error
def facts_of(record: PodRecord, known: PodKnown | None, /) -> PodFacts:
    """What is to be known of a pod."""
    look = record.look
    failures, attempts = (
        (record.failures, record.attempts) if look is None else (look.failures, look.attempts)
    )
    if record.ending is not None and record.ending.kind is not EndingKind.COMPLETED:
        failures = record.failures  # it is looked at once more, as somebody ends it
    known = _with_lost(record, known)
    return PodFacts(
        pod=record.pod,
        life=record.life,
        known=known,
        ending=record.ending,
        deadline_s=record.deadline_s,
        waits_for=record.waits_for,
        noticed_unix_s=record.noticed_unix_s,
        containers={
            name: ContainerFacts(
                waiting=failures.get(name),
                restart_count=max(attempts.get(name, 0), 0),
                owed=record.owed.get(name, ""),
            )
            for name in {*attempts, *failures, *record.completed}
        },
        unheeded=tuple(one for one in record.asked.values() if one.is_undone) if record.asked else (),
        looks=0 if look is None else look.number,
    )


def _with_lost(record: PodRecord, known: PodKnown | None) -> PodKnown | None:
    """With the ends of instances that ran and that nobody saw."""
    lost = [one.container_id for one in record.begun.values() if one.is_lost]
    if not lost:
        return known
    found = PodKnown(uid=record.pod.uid) if known is None else known
    return attrs.evolve(found, ends=with_lost(found.ends, record, lost))


def _as_looked_at(now: PodFacts, before: PodFacts | None) -> PodFacts:
    """As somebody tells of it who looks at it now and then."""
    is_new = before is None or before.looks != now.looks or before.life is not now.life
    # One that ended as its agent started is looked at as that begins, and once all of it has ended.
    if before is not None and not is_new and (before.looks or before.life is LifeState.TERMINATING):
        return attrs.evolve(now, known=before.known, containers=before.containers)
    report = now.report
    if now.known is None or report is None:
        return now
    begun = tuple(one for one in report.containers if one.record.state is not RunState.CREATED)
    if len(begun) == len(report.containers):
        return now
    return attrs.evolve(now, known=attrs.evolve(now.known, report=attrs.evolve(report, containers=begun)))


def _asked_as_before(now: PodFacts, before: PodFacts | None) -> PodFacts:
    """With the probes that its containers had first, as long as it is the same pod that runs."""
    if before is None or (before.life.is_ending and not now.life.is_ending):
        return now
    first = before.asked or before.pod
    if first is now.pod:
        return now
    had = {one.name: one for one in first.all_containers if _has_probes(one)}
    asked = attrs.evolve(
        now.pod,
        containers=tuple(had.get(one.name, one) for one in now.pod.containers),
        init_containers=tuple(had.get(one.name, one) for one in now.pod.init_containers),
    )
    return now if asked == now.pod else attrs.evolve(now, asked=first if asked == first else asked)


def _has_probes(one: Container) -> bool:
    return any((one.startup_probe, one.liveness_probe, one.readiness_probe))


class Facts:
    """A `Domain` without steps: what is remembered of pods, to what others know of them.

    Args:
        known: What is known of their containers.
        rules: `tells_meanwhile`, `follows_edits`.
    """

    def __init__(self, known: Near[str, str, PodKnown], rules: Rules = RIGHT) -> None:
        self._known = known
        self._rules = rules

    def plan(self, view: View[str, PodRecord, PodFacts, None], /) -> Plan[PodFacts, None]:
        """The facts of a pod, or none."""
        if view.want is None:
            return Plan(have=None)
        facts = facts_of(view.want, view.of(self._known).get(view.key))
        if not self._rules.follows_edits:
            facts = _asked_as_before(facts, view.have)
        if self._rules.tells_meanwhile:
            return Plan(have=facts)
        is_new = view.have is None and facts.report is None
        if (facts.life is LifeState.SYNCING and not facts.looks) or (
            facts.life is LifeState.TERMINATING and is_new
        ):
            return Plan(have=view.have)  # nobody has looked at it yet, as after the agent's start
        return Plan(have=_as_looked_at(facts, view.have))

    def perform(self, step: Step[None], _cancel: Cancel, /) -> None:
        """There is nothing to do; raises `RuntimeError`."""
        raise RuntimeError(f"{step.verb}: facts are derived, and nothing is done for them")

    def settled(
        self, have: PodFacts | None, _step: Step[None], _outcome: Outcome[None], /
    ) -> PodFacts | None:
        """As it is."""
        return have
