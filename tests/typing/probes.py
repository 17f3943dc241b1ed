"""A prober of one's own, and what comes of its answers."""

from __future__ import annotations

from typing import assert_never, assert_type

from nodealloc.dsw_asw import InlineExecutor, World
from nodealloc.podfacts import PodIdentity
from nodealloc.podspec import Container, ExecAction, Pod
from nodealloc.podspec import Probe as PodProbe
from nodealloc.probes import (
    NoAnswer,
    NoProbe,
    Passed,
    PodVerdicts,
    Prober,
    Probers,
    ProbeVerdict,
    Probing,
    Question,
    Reply,
    ReplyKind,
    Unwell,
)
from nodealloc.runtime import ContainerRecord, ContainerReport, PodKnown, PodReport, RunState
from nodealloc.testing.runtime import FakeContainerRuntime


class Always:
    """Everybody is well."""

    def probe(self, _question: Question, /) -> Reply:
        """Whoever asks."""
        return Reply(ReplyKind.SUCCESS)


def may_serve(verdict: ProbeVerdict) -> bool:
    """Only what has no probe is ready without an answer."""
    match verdict:
        case NoProbe() | Passed():
            return True
        case NoAnswer():
            return False
        case Unwell(message=message):
            assert_type(message, str)
            return False
        case _ as never:
            assert_never(never)


prober: Prober = Always()
reports: World[str, PodKnown] = World("reports")
probing = Probing(Probers(exec=prober), reports=reports, executor=InlineExecutor())
assert_type(probing.verdicts, World[str, PodVerdicts])
pod = Pod(
    uid="u",
    name="web",
    containers=(Container(name="app", readiness_probe=PodProbe(exec=ExecAction(command=("true",)))),),
)
record = ContainerRecord(
    id="c1", pod=PodIdentity.of(pod), name="app", sandbox_id="box", state=RunState.RUNNING
)
reports.put("u", PodKnown(uid="u", report=PodReport(uid="u", containers=(ContainerReport(record=record),))))
probing.put(pod)
probing.run_until_quiet()
verdicts = probing.verdicts.get("u")
assert verdicts is not None
assert may_serve(verdicts.by_container["c1"].readiness)
assert_type(Probers.real(commands=FakeContainerRuntime()), Probers)
