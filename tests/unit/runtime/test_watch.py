"""Looking at a runtime all the time: what is asked, what is kept, and what one that hangs costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

import attrs
import pytest

from nodealloc.checkpoint import FileStore, JsonCheckpoint, row_formats, row_key, rows_of
from nodealloc.dsw_asw import ThreadExecutor, View, World
from nodealloc.errors import DecodeError, NodeallocError
from nodealloc.podfacts import Exited, ExitUnknown, PodIdentity
from nodealloc.runtime import (
    RUNTIME_ROWS,
    CgroupDriverKind,
    ContainerConfig,
    ContainerEnd,
    ContainerReport,
    Oddity,
    Pace,
    PodKnown,
    RunState,
    RuntimeRefusedError,
    RuntimeUnavailableError,
    RuntimeWatch,
    SandboxConfig,
    may_start,
    pod_from_checkpoint,
)
from nodealloc.runtime._codec import pod_to_checkpoint
from nodealloc.runtime._relist import LISTING, Answered, Asked, Questions
from nodealloc.testing.dsw_asw import ManualExecutor, MemoryJournal, VirtualClock
from nodealloc.testing.runtime import FakeContainerRuntime

P = ParamSpec("P")
T = TypeVar("T")


@attrs.define
class Node:
    """A watch that a test drives by hand."""

    fake: FakeContainerRuntime = attrs.field(factory=FakeContainerRuntime)
    clock: VirtualClock = attrs.field(factory=VirtualClock)
    executor: ManualExecutor = attrs.field(factory=ManualExecutor)
    journal: MemoryJournal[JsonCheckpoint] = attrs.field(factory=MemoryJournal[JsonCheckpoint])
    known: Mapping[str, PodKnown] = attrs.field(factory=dict[str, PodKnown])
    watch: RuntimeWatch = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.watch = RuntimeWatch(
            self.fake, journal=self.journal, known=self.known, executor=self.executor, clock=self.clock
        )

    def settle(self, seconds: float = 0.0) -> None:
        """Let time pass in steps of a period, and do all that is due in each."""
        left = seconds
        while True:
            self.watch.run_until_quiet()
            while self.executor.run_all():
                self.watch.run_until_quiet()
            if left <= 0:
                return
            self.clock.advance(min(1.0, left))
            left -= 1.0

    def pod(self, uid: str, *, start: bool = True) -> str:
        """A pod with one container; its id."""
        box = SandboxConfig(pod=PodIdentity(uid=uid, namespace="default", name=uid))
        sandbox = self.fake.run_sandbox(box)
        made = self.fake.create_container(sandbox, ContainerConfig(name="app", image="busybox"), box)
        if start:
            self.fake.start_container(made)
        return made

    def asked(self) -> list[str]:
        """Calls since the last time, without those for the health."""
        calls = [one for one in self.fake.calls if one != "health"]
        self.fake.calls.clear()
        return calls


@pytest.fixture
def node() -> Node:
    """Empty."""
    return Node()


def test_an_idle_node_costs_one_list_a_period_and_no_inspection(node: Node) -> None:
    """However many containers there are."""
    for number in range(1000):
        node.pod(f"u{number}")
    node.settle()
    node.asked()
    node.settle(10.0)
    assert node.asked() == ["listing"] * 10


def test_what_changed_is_inspected_and_nothing_else(node: Node) -> None:
    """Each pod once for a change of its listing."""
    ids = [node.pod(uid) for uid in "abc"]
    node.settle()
    node.asked()
    node.fake.exit(ids[1], Exited(code=3))
    node.settle(2.0)
    assert node.asked() == ["listing", "inspect b", "listing"]
    known = node.watch.pods.get("b")
    assert known is not None
    assert known.ends[ids[1]].exit == Exited(code=3)
    assert known.is_current(node.watch.seen.get("b"))


class Threads:
    """An executor of real threads, for calls of which some hang."""

    def __init__(self) -> None:
        self.futures: list[Future[object]] = []

    def submit(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """A thread for each."""
        future = ThreadExecutor("test").submit(call, *args, **kwargs)
        self.futures.append(cast("Future[object]", future))
        return future

    def wait(self, but: int) -> bool:
        """Until all calls but so many have returned; whether any had not before."""
        waited = False
        for _ in range(10_000):
            self.futures = [one for one in self.futures if not one.done()]
            if len(self.futures) <= but:
                return waited
            waited = True
            time.sleep(0.001)
        raise AssertionError("a call has not returned")


def test_one_inspection_that_hangs_delays_that_pod_alone() -> None:
    """For an hour: others are seen within two seconds, the runtime counts as heard, that pod is unknown."""
    fake, clock, threads = FakeContainerRuntime(), VirtualClock(), Threads()
    node = Node(fake=fake, clock=clock)
    node.watch = RuntimeWatch(fake, executor=threads, clock=clock)

    def settle(seconds: float, but: int) -> None:
        for _ in range(int(seconds)):
            clock.advance(1.0)
            node.watch.run_until_quiet()
            while threads.wait(but):
                node.watch.run_until_quiet()

    hung, other = node.pod("hung"), node.pod("other")
    settle(2, but=0)
    gate = fake.hang("inspect", "hung")
    fake.exit(hung, Exited(code=1))
    settle(150, but=1)
    clock.advance(3600.0)
    settle(2, but=1)
    fake.exit(other, Exited(code=2))
    settle(2, but=1)
    assert node.watch.stored() == {other}
    known, listed = node.watch.pods.get("hung"), node.watch.seen.get("hung")
    assert known is not None
    assert listed is not None
    assert listed.marks[hung] is RunState.EXITED
    assert "has not returned after 120 s" in known.fault
    assert not known.is_current(listed)
    assert may_start(node.watch.heard(), now_s=clock.monotonic_s()) is None
    assert fake.calls.count("inspect hung") == 2
    gate.set()
    settle(2, but=0)
    after = node.watch.pods.get("hung")
    assert after is not None
    assert (after.fault, after.ends[hung].exit) == ("", Exited(code=1))


def test_events_only_hurry_a_listing(node: Node) -> None:
    """A thousand of them are one listing more, after a gap; none of them, one a period all the same."""
    node.settle()
    node.asked()
    for _ in range(1000):
        node.watch.hurry()
    node.settle()
    assert node.asked() == []
    node.clock.advance(0.1)
    node.settle()
    assert node.asked() == ["listing"]
    node.settle(1.0)
    assert node.asked() == ["listing"]


def test_a_hurry_during_a_listing_brings_another_one(node: Node) -> None:
    """The listing may have begun before what the event tells of."""
    node.watch.run_until_quiet()
    node.watch.hurry()
    node.settle()
    node.asked()
    node.clock.advance(0.1)
    node.settle()
    assert node.asked() == ["listing"]


def test_an_end_is_stored_before_it_is_seen(node: Node) -> None:
    """As long as the disk refuses, nobody hears of it, and its record may not go."""
    made = node.pod("u")
    node.settle()

    def full() -> None:
        raise OSError("no space left on device")

    node.journal.fault = full
    node.fake.exit(made, Exited(code=7))
    node.settle(5.0)
    assert made not in node.watch.stored()
    node.journal.fault = lambda: None
    node.settle(130.0)
    assert node.watch.stored() == {made}
    assert pod_from_checkpoint(node.journal.rows["runtime.u"]).ends[made].exit == Exited(code=7)


def test_the_first_word_on_an_end_stays(node: Node) -> None:
    """Whatever the runtime says later, and when it has forgotten it."""
    made = node.pod("u")
    node.settle()
    node.fake.exit(made, Exited(code=0))
    node.settle(1.0)
    (report,) = node.fake.inspect("u").containers
    node.fake.put(attrs.evolve(report, exit=Exited(code=137)))
    node.fake.put(attrs.evolve(report, record=attrs.evolve(report.record, id="other"), exit=ExitUnknown()))
    node.settle(1.0)
    node.fake.remove_sandbox(report.record.sandbox_id)
    node.settle(1.0)
    known = node.watch.pods.get("u")
    assert known is not None
    assert {one: end.exit for one, end in known.ends.items()} == {
        made: Exited(code=0),
        "other": ExitUnknown(),
    }


def test_a_container_that_vanishes_has_ended_and_nobody_knows_how(node: Node) -> None:
    """Its record alone, or the whole pod's."""
    first, second = node.pod("a"), node.pod("b")
    node.settle()
    node.fake.lose_records(first)
    node.fake.lose_records(second, *node.fake.listing().pods["b"].marks)
    node.settle(1.0)
    for uid, made in (("a", first), ("b", second)):
        known = node.watch.pods.get(uid)
        assert known is not None
        assert (known.ends[made].exit, known.ends[made].name) == (ExitUnknown(), "app")
        assert not known.live


@pytest.mark.parametrize("runs", [True, False])
def test_a_container_that_only_a_listing_showed_has_begun_all_the_same(node: Node, runs: bool) -> None:
    """Its record goes before the first inspection, whatever it did: its number is not taken again."""
    made = node.pod("u")
    if not runs:
        node.fake.exit(made, Exited(code=1))
    node.asked()
    node.watch.run_until_quiet()
    while not node.asked():
        assert node.executor.run()
    node.watch.run_until_quiet()
    node.fake.lose_records(made)
    node.settle(1.0)
    known = node.watch.pods.get("u")
    assert known is not None
    assert not known.live
    assert (known.ends[made].exit, known.ends[made].attempt) == (ExitUnknown(), 0)


def test_what_was_only_made_leaves_no_end(node: Node) -> None:
    """It never ran: nothing of the pod is kept."""
    made = node.pod("u", start=False)
    node.settle()
    node.fake.lose_records(*node.fake.listing().pods["u"].marks)
    node.settle(1.0)
    assert "u" not in node.watch.pods
    assert made not in node.watch.stored()


def test_ends_outlive_the_process(node: Node) -> None:
    """Started again, nothing counts as gone before the first listing; then what vanished is unknown."""
    there, gone = node.pod("a"), node.pod("b")
    node.settle()
    node.fake.exit(there, Exited(code=5))
    node.settle(1.0)
    node.fake.lose_records(gone, *node.fake.listing().pods["b"].marks)
    rows = rows_of(RUNTIME_ROWS, node.journal.rows, pod_from_checkpoint)
    after = Node(fake=node.fake, known=rows)
    after.fake.go_away()
    after.settle(3.0)
    waiting = after.watch.pods.get("b")
    assert waiting is not None
    assert (waiting.ends, waiting.fault) == ({}, "the runtime has not been listed since the start")
    after.fake.restart()
    after.settle(2.0)
    ends = {one: end.exit for pod in "ab" for one, end in _ends(after, pod).items()}
    assert ends == {there: Exited(code=5), gone: ExitUnknown()}


def _ends(node: Node, uid: str) -> Mapping[str, ContainerEnd]:
    known = node.watch.pods.get(uid)
    return {} if known is None else known.ends


def test_ends_are_forgotten_when_somebody_was_told(node: Node) -> None:
    """Not before nothing of the pod is listed; the journal's row goes as well."""
    made = node.pod("u")
    node.settle()
    node.fake.exit(made, Exited(code=0))
    node.settle(1.0)
    node.watch.forget("u")
    node.settle(1.0)
    assert node.watch.stored() == {made}
    node.fake.lose_records(*node.fake.listing().pods["u"].marks)
    node.settle(1.0)
    assert (node.watch.stored(), node.journal.rows) == (frozenset(), {})
    node.watch.forget("u")
    assert len(node.watch._told) == 0


def test_nonsense_spoils_its_pod_alone(node: Node) -> None:
    """It is not inspected, says why, and goes on when the nonsense ends."""
    made, other = node.pod("a"), node.pod("b")
    node.settle()
    node.fake.oddities = [Oddity.of("a", "state 17 of container c"), Oddity.of("", "a sandbox without id")]
    node.fake.exit(made, Exited(code=1))
    node.fake.exit(other, Exited(code=1))
    node.settle(1.0)
    known = node.watch.pods.get("a")
    assert known is not None
    assert known.fault == "state 17 of container c"
    assert node.watch.stored() == {other}
    assert node.watch.heard().oddities == ("a sandbox without id",)
    node.fake.oddities = []
    node.settle(1.0)
    assert node.watch.stored() == {made, other}


def test_a_runtime_that_fails_is_asked_again_and_told(node: Node) -> None:
    """What was known stays; silence is counted from the last answer."""
    node.pod("u")
    node.settle()
    health = node.watch.heard().health
    assert health is not None
    assert health.cgroup_driver is CgroupDriverKind.CGROUPFS
    node.fake.fail("listing", RuntimeUnavailableError("listing", "busy"), times=None)
    node.settle(200.0)
    heard = node.watch.heard()
    assert heard.silent_s(node.clock.monotonic_s()) == 200.0
    assert heard.failed_s == 1.0
    assert "busy" in heard.error
    assert "u" in node.watch.pods
    verdict = may_start(heard, now_s=node.clock.monotonic_s())
    assert verdict is not None
    assert "for 200 s" in verdict.message


def test_a_failed_inspection_is_made_again(node: Node) -> None:
    """After a second, with the pod unknown in between."""
    node.fake.fail("inspect", RuntimeUnavailableError("inspect", "busy"))
    node.pod("u")
    node.settle()
    known = node.watch.pods.get("u")
    assert known is not None
    assert "busy" in known.fault
    node.settle(1.0)
    known = node.watch.pods.get("u")
    assert known is not None
    assert known.fault == ""


def test_an_older_listing_brings_nothing_back(node: Node) -> None:
    """A listing that began before the newest one changes nothing that is newer."""
    made = node.pod("u")
    node.settle()
    seen = node.watch.seen
    since, listing = seen.generation, node.fake.listing()
    node.fake.exit(made, Exited(code=0))
    node.settle(1.0)
    seen.replace(listing.pods, since=since)
    marks = seen.get("u")
    assert marks is not None
    assert marks.marks[made] is RunState.EXITED


def test_rows_that_make_no_sense_are_refused() -> None:
    """Of another kind, or with an exit that is none."""
    with pytest.raises(DecodeError, match="expected a mapping"):
        pod_from_checkpoint(JsonCheckpoint(kind="pod ends", version=1, value=[1]))
    with pytest.raises(DecodeError, match="expected pod ends version 1"):
        pod_from_checkpoint(JsonCheckpoint(kind="other", version=1, value={}))
    known = PodKnown(
        uid="u",
        ends={
            "c": ContainerEnd(name="app", exit=Exited(code=9, signal=9), finished_unix_s=5.0, image="web:1")
        },
        live={"d": ("app", 1)},
    )
    row = pod_to_checkpoint(known)
    read = pod_from_checkpoint(row)
    assert attrs.evolve(read, fault="") == known
    assert "has not been looked at" in read.fault
    broken = JsonCheckpoint(
        kind=row.kind, version=1, value={"uid": "u", "live": {}, "ends": {"c": {"name": "app", "exit": 0}}}
    )
    with pytest.raises(DecodeError, match="exit"):
        pod_from_checkpoint(broken)


def test_it_follows_events_in_threads() -> None:
    """A change is seen long before the period is over; and stopping ends the feed."""
    fake = FakeContainerRuntime()
    watch = RuntimeWatch(
        fake, events=fake, pace=Pace(period_s=60.0, gap_s=0.0), executor=ThreadExecutor("runtime")
    )
    with watch:
        fake.run_sandbox(SandboxConfig(pod=PodIdentity(uid="u", namespace="default", name="u")))
        for _ in range(1000):
            if "u" in watch.seen:
                break
            watch._stopping.wait(0.01)
        assert "u" in watch.seen
    assert not fake._feeds


def test_a_runtime_without_events_is_listed_all_the_same(node: Node) -> None:
    """The feed's refusal is told, and tried again after minutes only."""
    node.fake.fail("follow", RuntimeRefusedError("follow", "UNIMPLEMENTED", "no events"), times=None)
    node.watch = RuntimeWatch(node.fake, events=node.fake, executor=node.executor, clock=node.clock)
    node.pod("u")
    node.settle(60.0)
    calls = node.asked()
    assert calls.count("follow") == 1
    assert calls.count("listing") == 61
    answer = node.watch.answers.get("events")
    assert answer is not None
    assert "no events" in answer.error


@pytest.mark.parametrize(
    "fault",
    [
        RuntimeUnavailableError("follow", "it ended"),
        RuntimeRefusedError("follow", "UNIMPLEMENTED", "no events"),
    ],
    ids=["broken", "none"],
)
def test_while_no_events_are_heard_a_runtime_is_listed_as_often_as_by_a_kubelet(
    node: Node, fault: NodeallocError
) -> None:
    """A death is seen within a second, however seldom it is listed where events are heard."""
    node.fake.fail("follow", fault, times=None)
    pace = Pace(period_s=5.0, is_steady=True)
    node.watch = RuntimeWatch(
        node.fake, events=node.fake, pace=pace, executor=node.executor, clock=node.clock
    )
    made = node.pod("u")
    node.settle(7.0)
    node.fake.exit(made, Exited(code=3))
    node.settle(1.0)
    known = node.watch.pods.get("u")
    assert known is not None
    assert made in known.ends


def test_a_report_is_of_what_was_inspected(node: Node) -> None:
    """The newest instance and its exit are read from it."""
    made = node.pod("u")
    node.settle()
    known = node.watch.pods.get("u")
    assert known is not None
    assert known.report is not None
    newest = known.report.newest("app")
    assert isinstance(newest, ContainerReport)
    assert newest.record.id == made


def test_a_real_store_takes_every_pod(tmp_path: Path) -> None:
    """Whatever a pod's uid is made of, its ends are remembered in files and read again."""
    formats = row_formats(RUNTIME_ROWS)
    known = PodKnown(uid="a/b c..d")
    with FileStore(tmp_path, formats) as store:
        store.commit({row_key(RUNTIME_ROWS, known.uid): pod_to_checkpoint(known)})
    with FileStore(tmp_path, formats) as store:
        (read,) = rows_of(RUNTIME_ROWS, store.read().values, pod_from_checkpoint).values()
    assert read.uid == known.uid
    assert read.fault, "until it is looked at nobody knows that nothing of it is there"


@pytest.mark.parametrize(
    ("took_s", "failed_s", "due_s"),
    [(0.001, None, 100.02), (0.03, None, 100.3), (3.0, None, 105.0), (0.03, 100.0, 100.02)],
    ids=["quick", "slower", "never longer than a period", "what failed says nothing"],
)
def test_a_listing_that_takes_long_is_followed_by_a_longer_rest(
    took_s: float, failed_s: float | None, due_s: float
) -> None:
    """Ten times its own length, while events go on."""
    pace = Pace(period_s=5.0, gap_s=0.02, rest_times=10.0)
    questions = Questions(FakeContainerRuntime(), World("seen"), lambda: None, events=None, pace=pace)
    have = Answered(number=1, shown=1, count=1, tried_s=100.0, answered_s=100.0 - took_s, failed_s=failed_s)
    plan = questions.plan(View(key=LISTING, want=Asked(number=2, urgent=2), have=have, now_s=100.0))
    assert plan.again_at_s == pytest.approx(due_s)


@pytest.mark.parametrize(("is_steady", "due_s"), [(False, 103.25), (True, 103.0)])
def test_when_the_next_listing_is_due_after_one_that_was_hurried(is_steady: bool, due_s: float) -> None:
    """A period later; a steady one a whole number of periods after the first."""
    pace = Pace(period_s=1.0, is_steady=is_steady)
    questions = Questions(FakeContainerRuntime(), World("seen"), lambda: None, events=None, pace=pace)
    assert questions.plan(View(key=LISTING, want=Asked(), have=None, now_s=100.0)).steps
    have = Answered(number=2, shown=2, count=3, tried_s=102.25, answered_s=102.24)
    asked = Asked(number=2, urgent=2)
    assert questions.plan(View(key=LISTING, want=asked, have=have, now_s=102.25)).again_at_s == due_s
    urgent = asked.hurried()
    assert questions.plan(View(key=LISTING, want=urgent, have=have, now_s=102.25)).again_at_s == 102.35


def test_a_hurry_that_may_wait_goes_with_the_next_that_does_not() -> None:
    """The first of several says until when; one that was tried counts no longer, and a period is a period."""
    pace = Pace(period_s=5.0, gap_s=0.02)
    questions = Questions(FakeContainerRuntime(), World("seen"), lambda: None, events=None, pace=pace)
    have = Answered(number=2, shown=2, count=3, tried_s=100.0, answered_s=99.99)

    def due_s(asked: Asked) -> float | None:
        return questions.plan(View(key=LISTING, want=asked, have=have, now_s=100.0)).again_at_s

    idle = Asked(number=2, urgent=2, due_s=50.0)
    waits = idle.hurried_by(101.0, 2)
    assert due_s(idle) == 105.0
    assert due_s(waits) == 101.0
    assert due_s(waits.hurried_by(101.5, 2)) == 101.0
    assert due_s(waits.hurried_by(101.5, 2).hurried()) == 100.02
    assert due_s(waits.hurried().hurried_by(101.5, 3)) == 100.02
    assert due_s(idle.hurried_by(100.01, 2)) == 100.02
    assert due_s(idle.hurried_by(999.0, 2)) == 105.0
    assert waits.hurried().hurried_by(101.5, 2).due_s == 101.5, "what goes before takes all before it along"
