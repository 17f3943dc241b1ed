"""Laws of probing: kills of the agent move no verdict, whatever happens when."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
from hypothesis import given
from hypothesis import strategies as st

from nodealloc.checkpoint import JsonCheckpoint, rows_of
from nodealloc.dsw_asw import World
from nodealloc.podfacts import LifeState, PodIdentity
from nodealloc.podspec import Container, ExecAction, Pod, Probe
from nodealloc.probes import (
    PROBE_ROWS,
    Asking,
    ContainerVerdicts,
    Passed,
    PodVerdicts,
    ProbeKind,
    ProbeOptions,
    Probers,
    Probing,
    Reply,
    ReplyKind,
    Schedule,
    Tally,
    Unwell,
    hear,
    verdicts_from_checkpoint,
)
from nodealloc.probes._tally import Heard, changes_nothing
from nodealloc.runtime import ContainerRecord, ContainerReport, PodKnown, PodReport, RunState
from nodealloc.testing.dsw_asw import ManualExecutor, MemoryJournal, VirtualClock
from nodealloc.testing.probes import FakeProber

PROBE = Probe(exec=ExecAction(command=("ask",)), period_seconds=1, failure_threshold=2, success_threshold=1)
POD = Pod(
    uid="u",
    name="web",
    containers=(Container(name="app", startup_probe=PROBE, liveness_probe=PROBE, readiness_probe=PROBE),),
)
REPLIES = st.sampled_from(list(ReplyKind))


@attrs.define
class Story:
    """An agent in virtual time, the runtime and the disk beside it, and what the agent's users saw last."""

    clock: VirtualClock = attrs.field(factory=VirtualClock)
    executor: ManualExecutor = attrs.field(factory=ManualExecutor)
    prober: FakeProber = attrs.field(factory=FakeProber)
    reports: World[str, PodKnown] = attrs.field(factory=lambda: World("reports"))
    journal: MemoryJournal[JsonCheckpoint] = attrs.field(factory=MemoryJournal[JsonCheckpoint])
    instance: int = 1
    life: LifeState = LifeState.SYNCING

    def begin(self, remembered: Mapping[str, PodVerdicts]) -> Probing[PodKnown]:
        """An agent that starts."""
        return Probing(
            Probers(exec=self.prober),
            reports=self.reports,
            journal=self.journal,
            remembered=remembered,
            options=ProbeOptions(first_per_s=1e6),
            executor=self.executor,
            clock=self.clock,
        )

    def runs(self) -> None:
        """The runtime has the present instance."""
        record = ContainerRecord(
            id=f"c{self.instance}",
            pod=PodIdentity.of(POD),
            name="app",
            sandbox_id="box",
            attempt=self.instance,
            state=RunState.RUNNING,
        )
        report = PodReport(uid="u", containers=(ContainerReport(record=record),))
        self.reports.put("u", PodKnown(uid="u", report=report))


def told(probing: Probing[PodKnown], instance: int) -> ContainerVerdicts | None:
    """What whoever looks at the world sees of the present instance."""
    verdicts = probing.verdicts.get("u")
    return None if verdicts is None else verdicts.of(f"c{instance}")


STEPS = st.one_of(
    st.tuples(st.just("answer"), REPLIES),
    st.tuples(st.just("time"), st.sampled_from([0.1, 0.5, 1.0, 10.0])),
    st.tuples(st.sampled_from(["pass", "run", "restart", "fault", "room"]), st.none()),
    st.tuples(st.sampled_from(["work", "second", "kill"]), st.none()),
    st.tuples(st.just("second"), st.none()),
)


@given(st.lists(STEPS, min_size=5, max_size=60))
def test_an_agent_that_is_killed_at_any_moment_moves_no_verdict(
    steps: list[tuple[str, object]],
) -> None:
    """Between the last look before a kill and the first answer after the start nothing changes."""
    story = Story()
    story.runs()
    probing = story.begin({})
    probing.put(POD)
    for what, value in steps:
        before = told(probing, story.instance)
        if what == "answer" and isinstance(value, ReplyKind):
            story.prober.says("", value, "as told")
        elif what == "time" and isinstance(value, float):
            story.clock.advance(value)
        elif what in {"work", "second"}:
            story.clock.advance(float(what == "second"))
            probing.reconcile()
            story.executor.run_all()
            probing.reconcile()
        elif what == "pass":
            probing.reconcile()
        elif what == "run":
            story.executor.run()
        elif what == "restart":
            story.instance += 1
            story.runs()
        elif what == "fault":
            story.journal.fault = refuse
        elif what == "room":
            story.journal.fault = lambda: None
        else:
            story.executor = ManualExecutor()
            probing = story.begin(rows_of(PROBE_ROWS, story.journal.rows, verdicts_from_checkpoint))
            seen = [told(probing, story.instance)]
            probing.reconcile()
            seen.append(told(probing, story.instance))
            probing.put(POD)
            for _ in range(4):
                probing.reconcile()
                seen.append(told(probing, story.instance))
            assert {one for one in seen if answered(one)} <= {before}
            assert not answered(before) or seen == [before] * len(seen)
    probing.stop(0.0)


def refuse() -> None:
    """The disk is full."""
    raise OSError("no space left on device")


def answered(verdicts: ContainerVerdicts | None) -> bool:
    """Whether anything has counted yet."""
    return verdicts is not None and any(isinstance(verdicts[kind], Passed | Unwell) for kind in ProbeKind)


@given(st.lists(REPLIES, max_size=30), st.integers(1, 4), st.integers(1, 4), st.sampled_from(ProbeKind))
def test_a_verdict_needs_its_threshold_in_a_row(
    kinds: list[ReplyKind], success: int, failure: int, kind: ProbeKind
) -> None:
    """Counted from scratch: what stands is the last run that was long enough, without what says nothing."""
    asking = Asking(kind=kind, schedule=Schedule(success_threshold=success, failure_threshold=failure))
    tally, counted, expected = Tally(container_id="c"), list[bool](), list[bool]()
    for one in kinds:
        if tally.is_settled:
            break
        heard: Heard = hear(tally, asking, Reply(one))
        tally = heard.tally
        if one in {ReplyKind.ERROR, ReplyKind.UNKNOWN}:
            assert heard.told is None
            continue
        counted.append(one.is_success)
        needed = success if one.is_success else failure
        if counted[-needed:] == [one.is_success] * needed:
            expected.append(one.is_success)
    stands = {Passed: True, Unwell: False}.get(type(tally.verdict))
    assert stands == (expected[-1] if expected else None)


@given(
    kind=st.sampled_from(list(ProbeKind)),
    successes=st.integers(1, 3),
    failures=st.integers(1, 3),
    replies=st.lists(REPLIES, max_size=30),
)
def test_what_changes_nothing_may_be_left_out(
    kind: ProbeKind, successes: int, failures: int, replies: list[ReplyKind]
) -> None:
    """All that is told is the same whether one more success of who is well is counted or not."""
    asking = Asking(kind=kind, schedule=Schedule(success_threshold=successes, failure_threshold=failures))
    all_heard, some_heard = Tally(container_id="c"), Tally(container_id="c")
    for one in replies:
        reply = Reply(one)
        heard = hear(all_heard, asking, reply)
        all_heard = heard.tally
        if changes_nothing(some_heard, asking, reply):
            assert heard.told is None
        else:
            some = hear(some_heard, asking, reply)
            some_heard = some.tally
            assert some.told == heard.told
        assert (some_heard.verdict, some_heard.is_settled) == (all_heard.verdict, all_heard.is_settled)
