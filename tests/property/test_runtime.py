"""Laws of looking at a runtime: whatever events, faults and restarts there are, the end is the same."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
from hypothesis import example, given
from hypothesis import strategies as st

from nodealloc.checkpoint import JsonCheckpoint, row_key, rows_of
from nodealloc.podfacts import Exited, ExitUnknown, PodIdentity
from nodealloc.runtime import (
    KUBELET,
    RUNTIME_ROWS,
    ContainerConfig,
    ContainerEnd,
    ContainerGcPolicy,
    PodReport,
    Rules,
    RunState,
    RuntimeUnavailableError,
    RuntimeWatch,
    SandboxConfig,
    plan_container_gc,
    pod_from_checkpoint,
)
from nodealloc.runtime._listing import Marks
from nodealloc.testing.conformance._pleg_model import Pleg, changes_of, relist
from nodealloc.testing.dsw_asw import ManualExecutor, MemoryJournal, VirtualClock
from nodealloc.testing.runtime import FakeContainerRuntime

UIDS = ("a", "b", "c")
ACTIONS = (
    "run",
    "run",
    "second",
    "second",
    "exit",
    "lose",
    "remove",
    "event",
    "fail",
    "away",
    "restart",
    "crash",
    "tick",
)
scripts = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 5)), max_size=40)


@attrs.define
class Story:
    """One life of a runtime and of whoever looks at it."""

    fake: FakeContainerRuntime = attrs.field(factory=FakeContainerRuntime)
    clock: VirtualClock = attrs.field(factory=VirtualClock)
    executor: ManualExecutor = attrs.field(factory=ManualExecutor)
    journal: MemoryJournal[JsonCheckpoint] = attrs.field(factory=MemoryJournal[JsonCheckpoint])
    made: list[str] = attrs.field(factory=list[str])
    attempts: dict[str, int] = attrs.field(factory=dict[str, int])
    told: dict[str, ContainerEnd] = attrs.field(factory=dict[str, ContainerEnd])
    watch: RuntimeWatch = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.watch = self._watch({})

    def _watch(self, known: Mapping[str, object]) -> RuntimeWatch:
        rows = rows_of(RUNTIME_ROWS, self.journal.rows, pod_from_checkpoint)
        assert rows.keys() >= known.keys()
        return RuntimeWatch(
            self.fake, journal=self.journal, known=rows, executor=self.executor, clock=self.clock
        )

    def act(self, action: str, number: int) -> None:
        """One thing happens."""
        uid = UIDS[number % len(UIDS)]
        there = [one for one in self.made if one in self.fake._containers]
        one = there[number % len(there)] if there else ""
        match action:
            case "run":
                self._run(uid)
            case "exit" if one:
                self.fake.exit(one, Exited(code=number))
            case "lose" if one:
                self.fake.lose_records(one)
            case "remove":
                self.fake.lose_records(*(self.fake._sandboxes if number == 0 else ()))
            case "event":
                for _ in range(number):
                    self.watch.hurry()
            case "fail":
                call = ("listing", "inspect")[number % 2]
                self.fake.fail(call, RuntimeUnavailableError(call, "as drawn"))
            case "away":
                self.fake.go_away()
            case "restart":
                self.fake.restart(died=[one] if one else [])
            case "crash":
                self.executor = ManualExecutor()
                self.watch = self._watch({})
            case "second":
                self.clock.advance(1.0)
                self.drive()
            case _:
                self.watch.run_until_quiet()
                self.executor.run(number)

    def drive(self) -> None:
        """All that is due."""
        self.watch.run_until_quiet()
        while self.executor.run_all():
            self.watch.run_until_quiet()
        self._check_ends()

    def settle(self) -> None:
        """The runtime is well, and time passes."""
        self.fake.restart()
        self.fake._faults.clear()
        for _ in range(5):
            self.clock.advance(1.0)
            self.drive()
            self.clock.advance(0.2)
            self.drive()

    def _run(self, uid: str) -> None:
        if self.fake._away:
            return
        attempt = self.attempts[uid] = self.attempts.get(uid, -1) + 1
        box = SandboxConfig(pod=PodIdentity(uid=uid, namespace="default", name=uid), attempt=attempt)
        config = ContainerConfig(name="app", image="busybox", attempt=attempt)
        made = self.fake.create_container(self.fake.run_sandbox(box), config, box)
        self.fake.start_container(made)
        self.made.append(made)

    def _check_ends(self) -> None:
        """What was once told of an end stays, and is on disk."""
        for uid, record in self.watch.pods.snapshot().items():
            stored = self.journal.rows.get(row_key(RUNTIME_ROWS, uid))
            kept = {} if stored is None else pod_from_checkpoint(stored).ends
            for one, end in record.value.ends.items():
                assert kept.get(one) == end
                assert self.told.setdefault(one, end) == end


@given(scripts)
def test_every_story_ends_with_what_is_there(script: list[tuple[str, int]]) -> None:
    """Lost, doubled and early events, failures, restarts of both sides: the listing's truth comes out."""
    story = Story()
    for action, number in script:
        story.act(action, number)
    story.settle()
    listing = story.fake.listing()
    assert {uid: one.value for uid, one in story.watch.seen.snapshot().items()} == dict(listing.pods)
    for uid, pod in listing.pods.items():
        known = story.watch.pods.get(uid)
        assert known is not None
        assert known.is_current(pod)
        assert known.report == story.fake.inspect(uid)
        for report in known.report.containers:
            if report.exit is not None:
                assert known.ends[report.record.id].exit == report.exit
    assert story.told.keys() >= story.watch.stored()


@given(scripts)
@example([("run", 0), ("second", 0), ("lose", 0)])
@example([("run", 0), ("second", 0), ("away", 0), ("crash", 0), ("second", 0)])
def test_what_ran_and_is_gone_has_an_end(script: list[tuple[str, int]]) -> None:
    """Whoever was seen to run runs still and has no end, or has one."""
    story = Story()
    ran: set[str] = set()
    for action, number in script:
        story.act(action, number)
        ran |= {one for pod in story.watch.pods.snapshot().values() for one in pod.value.live}
    story.settle()
    running = {one for one, report in story.fake._containers.items() if report.exit is None}
    assert ran - running <= story.watch.stored()
    assert not running & story.watch.stored()
    vanished = story.watch.stored() - story.fake._containers.keys()
    assert all(
        isinstance(story.told[one].exit, (Exited, ExitUnknown)) and story.told[one].name == "app"
        for one in vanished
    )


marks = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(RunState), max_size=4)


@given(marks, marks)
def test_changes_say_what_differs_and_nothing_else(before: Marks, after: Marks) -> None:
    """None for the same; each change is of something whose state differs; made and unknown are one state."""
    found = changes_of(before, after)
    differing = {
        one
        for one in {*before, *after}
        if before.get(one) is not after.get(one)
        and {before.get(one), after.get(one)} != {RunState.CREATED, RunState.UNKNOWN}
    }
    assert {change.id for change in found} == differing
    assert changes_of(after, after) == ()


listings = st.dictionaries(st.sampled_from(UIDS), marks, max_size=3)


@given(st.lists(st.tuples(listings, st.sets(st.sampled_from(UIDS))), max_size=8), listings)
def test_relisting_comes_to_the_newest_listing(
    steps: list[tuple[Mapping[str, Marks], set[str]]], last: Mapping[str, Marks]
) -> None:
    """Whichever inspections failed on the way, one sound listing makes it up to date; the next is idle."""
    pleg = Pleg()
    for at, (listing, failing) in enumerate(steps):
        answers = {uid: None if uid in failing else PodReport(uid=uid) for uid in UIDS}
        pleg = relist(pleg, listing, answers.__getitem__, now_s=float(at)).pleg
    sound = relist(pleg, last, lambda uid: PodReport(uid=uid), now_s=100.0).pleg
    assert dict(sound.marks) == {uid: one for uid, one in last.items() if uid in sound.marks}
    assert {uid for uid, one in last.items() if one} <= sound.marks.keys()
    idle = relist(sound, last, lambda uid: PodReport(uid=uid), now_s=101.0)
    assert (idle.changes, idle.inspected) == ({}, ())


@given(st.lists(st.tuples(st.sampled_from(RunState), st.integers(0, 100)), max_size=12), st.integers(0, 5))
def test_nothing_goes_that_runs_or_is_not_stored(ages: list[tuple[RunState, int]], most: int) -> None:
    """And under either rules no more goes than the limits ask for."""
    fake = FakeContainerRuntime()
    box = SandboxConfig(pod=PodIdentity(uid="u", namespace="default", name="u"))
    sandbox = fake.run_sandbox(box)
    for attempt in range(len(ages)):
        fake.create_container(sandbox, ContainerConfig(name="app", image="busybox", attempt=attempt), box)
    containers = [
        attrs.evolve(one, state=state, created_unix_s=1000.0 - age)
        for one, (state, age) in zip(fake.listing().pods["u"].containers, ages, strict=True)
    ]
    policy = ContainerGcPolicy(most_per_container=most)
    dead = {one.id for one in containers if one.state is not RunState.RUNNING}
    for rules in (Rules(), KUBELET):
        plan = plan_container_gc(containers, policy, now_s=1000.0, rules=rules)
        assert set(plan.remove) <= dead
        assert len(plan.remove) == max(0, len(dead) - most)
    held = plan_container_gc(containers, policy, now_s=1000.0, stored=())
    assert not {one.id for one in containers if one.state is RunState.EXITED} & set(held.remove)
