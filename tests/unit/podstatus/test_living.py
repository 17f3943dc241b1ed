"""What a life and probes know of a pod, as what is told of it."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from nodealloc.podfacts import (
    ConditionStatus,
    ContainerRunning,
    ContainerStatus,
    Exited,
    LifeState,
    PodPhase,
    PodStatus,
)
from nodealloc.podlife import Ending as LifeEnding
from nodealloc.podlife import EndingKind, PodFacts
from nodealloc.podlife._facts import ContainerFacts
from nodealloc.podlife._look import StartFailure as Waiting
from nodealloc.podspec import Container, Pod
from nodealloc.podstatus import (
    Health,
    Observed,
    StartFailure,
    ToldEnding,
    observed_of,
    status_of,
    with_source,
    with_verdicts,
)
from nodealloc.probes import ContainerVerdicts, NoAnswer, Passed, PodVerdicts, Unwell
from nodealloc.runtime import ContainerEnd, PodKnown, PodReport

WEB = Pod(uid="u", name="web", containers=(Container(name="app"), Container(name="work")))


def ending(kind: EndingKind, reason: str = "") -> PodFacts:
    """A pod that ends for such a cause."""
    return PodFacts(
        pod=WEB,
        life=LifeState.TERMINATING,
        ending=LifeEnding(kind=kind, reason=reason, message="m", disruption="TerminationByKubelet"),
    )


def test_all_that_a_life_knows_is_observed() -> None:
    """Why containers wait, how often they began again, since when, and what the runtime says."""
    end = ContainerEnd(name="app", exit=Exited(code=1))
    facts = PodFacts(
        pod=WEB,
        life=LifeState.SYNCING,
        known=PodKnown(uid="u", report=PodReport(uid="u"), ends={"c": end}),
        noticed_unix_s=7.0,
        containers={
            "app": ContainerFacts(waiting=Waiting(reason="CrashLoopBackOff", message="5 s"), restart_count=3),
            "work": ContainerFacts(),
        },
    )
    assert observed_of(facts) == Observed(
        pod=WEB,
        life=LifeState.SYNCING,
        report=PodReport(uid="u"),
        ends={"c": end},
        start_failures={"app": StartFailure(reason="CrashLoopBackOff", message="5 s")},
        counts={"app": 3, "work": 0},
        noticed_unix_s=7.0,
    )


@pytest.mark.parametrize("life", [LifeState.TERMINATED, LifeState.FINISHED])
def test_a_life_is_not_over_before_the_runtime_was_asked_how_it_ended(life: LifeState) -> None:
    """An agent that was killed remembers that the pod has ended, and has not read how its containers did."""
    unread = PodKnown(uid="u", live={"c": ("app", 0)}, fault="it has not been looked at since the start")
    was = PodStatus(
        phase=PodPhase.RUNNING,
        containers=(ContainerStatus(name="app", state=ContainerRunning(), container_id="x://c"),),
    )
    observed = observed_of(PodFacts(pod=WEB, life=life, known=unread))
    assert observed is not None
    assert not observed.is_over
    assert status_of(observed, was).phase is PodPhase.RUNNING
    gone = observed_of(PodFacts(pod=WEB, life=life, known=PodKnown(uid="u")))
    assert gone is not None
    assert gone.is_over


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_what_had_ended_before_is_told_as_its_source_had_it_also_before_that_is_read_again(
    phase: str,
) -> None:
    """An agent that was killed remembers the pod; a job whose pod succeeded is not to read that it failed."""
    pod = attrs.evolve(WEB, status={"phase": phase, "reason": "Why"})
    observed = observed_of(PodFacts(pod=pod, life=LifeState.FINISHED, known=PodKnown(uid="u")))
    assert observed is not None
    assert status_of(observed).phase is PodPhase(phase)


def test_nobody_is_told_of_an_orphan() -> None:
    """Only the runtime knew it; its uid may have been told as gone."""
    assert observed_of(ending(EndingKind.ORPHANED)) is None


@pytest.mark.parametrize(
    "kind", [one for one in EndingKind if one is not EndingKind.ORPHANED], ids=lambda one: one.value
)
def test_a_reason_is_told_and_only_the_refused_were_refused(kind: EndingKind) -> None:
    """A pod that ends by itself has no reason; one that was never let in says so."""
    plain, said = observed_of(ending(kind)), observed_of(ending(kind, "Why"))
    assert plain is not None
    assert said is not None
    assert plain.ending is None
    assert said.ending == ToldEnding(reason="Why", message="m", disruption="TerminationByKubelet")
    assert said.refused is plain.refused is (kind is EndingKind.REFUSED)


def test_a_pod_of_the_nodes_own_files_is_static() -> None:
    """Its phase does not end as that of others."""
    static = Pod(uid="u", annotations={"kubernetes.io/config.source": "file"})
    observed = observed_of(PodFacts(pod=static, life=LifeState.SYNCING))
    assert observed is not None
    assert observed.static
    other = observed_of(PodFacts(pod=WEB, life=LifeState.SYNCING))
    assert other is not None
    assert not other.static


def test_what_probes_said_is_health() -> None:
    """By the runtime's id; whoever has no result has no health."""
    verdicts = PodVerdicts(
        uid="u",
        by_container={
            "a": ContainerVerdicts(startup=Passed(), readiness=Unwell(message="no")),
            "b": ContainerVerdicts(readiness=Passed()),
            "c": ContainerVerdicts(liveness=NoAnswer()),
        },
    )
    assert with_verdicts(Observed(pod=WEB), verdicts).health == {
        "a": Health(startup=True, readiness=False),
        "b": Health(readiness=True),
    }


def test_what_others_write_to_a_pod_is_observed() -> None:
    """Conditions of its source's status, and the phase there; a pod without a status adds nothing."""
    observed = Observed(pod=WEB)
    assert with_source(observed, WEB) is observed
    said: Any = {"phase": "Running", "conditions": [{"type": "x.test/open", "status": "True"}], "newer": 1}
    found = with_source(observed, attrs.evolve(WEB, status=said)).source_status
    assert found is not None
    gate = found.condition("x.test/open")
    assert gate is not None
    assert gate.status is ConditionStatus.TRUE
    assert found.phase is PodPhase.RUNNING
