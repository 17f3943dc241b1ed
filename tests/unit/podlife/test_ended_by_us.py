"""A container that our own call has ended, and that nobody has inspected since: its end counts."""

from __future__ import annotations

import attrs

from nodealloc.podfacts import LifeState, PodIdentity
from nodealloc.podlife import LifePolicy, PodRecord
from nodealloc.podlife._next import Next
from nodealloc.podlife._observed import observe
from nodealloc.podlife._record import Ours
from nodealloc.podlife._rules import RIGHT
from nodealloc.podlife._syncing import sync
from nodealloc.podspec import Container
from nodealloc.runtime import (
    ContainerRecord,
    ContainerReport,
    Listing,
    PodKnown,
    PodReport,
    RunState,
    SandboxRecord,
    SandboxReport,
)
from tests.unit.podlife_node import pod

POD = pod(containers=[Container(name="app", image="i"), Container(name="other", image="i")])
BOX = SandboxRecord(id="box", pod=PodIdentity.of(POD))


def made(name: str) -> ContainerRecord:
    """A container that runs."""
    return ContainerRecord(
        id=name, pod=BOX.pod, name=name, sandbox_id="box", state=RunState.RUNNING, image="i"
    )


def decided(record: PodRecord) -> Next:
    """The newest listing shows the end, the last inspection was before it, a start is still to be listed."""
    report = PodReport.of("u", [SandboxReport(record=BOX)], [ContainerReport(record=made("app"))])
    known = PodKnown(uid="u", report=report, marks={"box": RunState.RUNNING, "app": RunState.RUNNING})
    listed = Listing.of([BOX], [attrs.evolve(made("app"), state=RunState.EXITED)]).pods["u"]
    observed = observe("u", record, known, listed, 6, rules=RIGHT)
    assert observed.is_current
    return sync("u", record, observed, parts=(), verdicts=None, now_s=100.0, policy=LifePolicy(), rules=RIGHT)


def test_what_follows_an_end_that_only_our_call_knows_is_a_restart() -> None:
    """So the next one waits, also where the agent is killed before anybody inspects the first end."""
    ours = {
        "app": Ours(number=5),
        "other": Ours(number=9, report=ContainerReport(record=made("other"))),
    }
    record = PodRecord(
        pod=POD, life=LifeState.SYNCING, ours=ours, doubt=5, images={"app": "i"}, attempts={"app": 0}
    )
    answer = decided(record)
    assert [(one.verb, one.scope[-1]) for one in answer.steps] == [("start", "app")]
    assert answer.record.ended["app"] == ("app", 100.0)
    ((key, entry),) = answer.record.restarts.entries.items()
    assert (key[0], entry.delay_s, entry.started_s) == ("app", 10.0, 100.0)
