"""Telling a sink of pods: what is told, when, in which order, and what outlives the agent."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest

from nodealloc.checkpoint import JsonCheckpoint, rows_of
from nodealloc.dsw_asw import Done, InlineExecutor, Near, Step, World
from nodealloc.errors import ConfigurationError, DecodeError
from nodealloc.podfacts import (
    ContainerStatus,
    ContainerTerminated,
    Exited,
    LifeState,
    PodIdentity,
    PodPhase,
    PodStatus,
    status_from_manifest,
    status_to_manifest,
)
from nodealloc.podspec import Container, Pod, RestartPolicy
from nodealloc.podstatus import (
    KUBELET,
    STATUS_ROWS,
    CallSink,
    FolderSink,
    JsonLinesSink,
    Observed,
    Part,
    Rules,
    StartFailure,
    StatusManager,
    StatusOddity,
    TellingOptions,
    Told,
    ToldEnding,
    told_from_checkpoint,
    with_runtime,
)
from nodealloc.podstatus._codec import told_to_checkpoint
from nodealloc.podstatus._telling import Decide, Delivery, Telling, Tellings
from nodealloc.runtime import (
    ContainerRecord,
    ContainerReport,
    PodKnown,
    PodReport,
    RunState,
    SandboxRecord,
    SandboxReport,
)
from nodealloc.testing.dsw_asw import ManualCancel, ManualExecutor, MemoryJournal, VirtualClock, run_to_rest
from nodealloc.testing.podstatus import FakeSink, check_sink

DONE = Exited(code=0)


def pod(uid: str = "u", policy: RestartPolicy = RestartPolicy.NEVER) -> Pod:
    """A pod of one container."""
    return Pod(uid=uid, name="web", containers=(Container(name="app", image="web:1"),), restart_policy=policy)


def report(uid: str = "u", *ends: Exited, runs: bool = True) -> PodReport:
    """Instances that ended, oldest first, and one that runs."""
    who = PodIdentity(uid=uid, namespace="default", name="web")
    states = [*ends, *([None] if runs else [])]
    instances = [
        ContainerReport(
            record=ContainerRecord(
                id=f"{uid}-{at}",
                pod=who,
                name="app",
                sandbox_id="s",
                attempt=at,
                state=RunState.EXITED if one else RunState.RUNNING,
            ),
            exit=one,
            reason="Completed" if one else "",
        )
        for at, one in enumerate(states)
    ]
    box = SandboxReport(record=SandboxRecord(id="s", pod=who), ips=("10.0.0.7",))
    return PodReport.of(uid, [box], instances)


def new(uid: str = "u") -> Observed:
    """A pod that nothing runs of yet."""
    return Observed(pod=pod(uid))


def up(uid: str = "u", *ends: Exited) -> Observed:
    """A pod that runs."""
    return Observed(pod=pod(uid), report=report(uid, *ends))


def over(uid: str = "u", code: int = 0) -> Observed:
    """A pod that has ended."""
    return Observed(
        pod=pod(uid), life=LifeState.TERMINATED, report=report(uid, Exited(code=code), runs=False)
    )


class Node:
    """A manager in virtual time, with a sink that remembers."""

    def __init__(
        self,
        journal: MemoryJournal[JsonCheckpoint] | None = None,
        sink: FakeSink | None = None,
        *,
        is_inline: bool = True,
        parts: tuple[Part, ...] = (),
        options: TellingOptions = TellingOptions(),  # noqa: B008 - immutable
        rules: Rules = Rules(),  # noqa: B008 - immutable
    ) -> None:
        self.sink = FakeSink() if sink is None else sink
        self.pods: World[str, Observed] = World("pods")
        self.clock = VirtualClock(1000.0)
        self.executor = ManualExecutor()
        self.unix_s = 5000.0
        self.journal = journal
        self.manager = StatusManager(
            self.sink,
            self.pods,
            parts=parts,
            journal=journal,
            remembered=remembered(journal),
            options=options,
            rules=rules,
            executor=InlineExecutor() if is_inline else self.executor,
            clock=self.clock,
            unix_s=lambda: self.unix_s,
        )

    def put(self, observed: Observed) -> None:
        """Know this of its pod, and tell what follows."""
        self.pods.put(observed.pod.uid, observed)
        self.manager.run_until_quiet()

    def drop(self, uid: str = "u") -> None:
        """Nothing of the pod is left."""
        self.pods.drop(uid)
        self.manager.run_until_quiet()

    def after(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.advance(seconds)
        self.manager.run_until_quiet()

    def phases(self, uid: str = "u") -> list[str]:
        """What was told of a pod: phases, and `gone`."""
        return [phase_of(one) for one in self.sink.of(uid)]


def phase_of(status: PodStatus | None) -> str:
    """The phase of what was told, or `gone`."""
    if status is None:
        return "gone"
    return status.phase.value if status.phase else ""


def remembered(journal: MemoryJournal[JsonCheckpoint] | None) -> Mapping[str, Told]:
    """What an agent that starts finds in its journal."""
    rows = journal.rows if journal else {}
    return rows_of(STATUS_ROWS, rows, told_from_checkpoint)


@pytest.mark.parametrize(
    ("rules", "static", "phase"),
    [
        (Rules(), False, PodPhase.FAILED),
        (Rules(), True, PodPhase.FAILED),
        (KUBELET, False, PodPhase.FAILED),
        (KUBELET, True, PodPhase.PENDING),
    ],
)
def test_the_end_of_a_pod_that_never_began(rules: Rules, static: bool, phase: PodPhase) -> None:
    """It has failed; a kubelet leaves a static one as it was."""
    never = Pod(
        uid="u",
        name="web",
        init_containers=(Container(name="init"),),
        containers=(Container(name="app"),),
    )
    ended = Observed(pod=never, life=LifeState.TERMINATED, static=static, report=PodReport(uid="u"))
    told = Decide(rules=rules)(None, ended, 0.0)
    assert told is not None
    assert (told.status.phase, told.is_over) == (phase, phase is PodPhase.FAILED)


def test_what_is_new_is_told_once() -> None:
    """Each change is told, in order; what is known again is not, and costs no call."""
    node = Node()
    for observed in (new(), new(), up(), attrs.evolve(up()), over()):
        node.put(observed)
    assert node.phases() == ["Pending", "Running", "Succeeded"]
    tries = node.sink.tries
    node.manager.reconcile()
    node.after(10_000)
    assert node.sink.tries == tries


def test_a_pod_that_vanishes_has_ended_first() -> None:
    """One terminal phase, then that it is gone; nothing after that, and nothing is kept."""
    node = Node()
    node.put(up())
    node.drop()
    assert node.phases() == ["Running", "Failed", "gone"]
    last = node.sink.of("u")[1]
    assert last is not None
    assert isinstance(last.containers[0].state, ContainerTerminated)
    ready = last.condition("Ready")
    assert ready is not None
    assert (ready.status.value, ready.reason) == ("False", "PodFailed")
    assert node.manager.told.get("u") is None


def test_one_that_has_ended_vanishes_as_it_was_told() -> None:
    """There is no second end."""
    node = Node()
    node.put(over())
    node.drop()
    assert node.phases() == ["Succeeded", "gone"]


def test_an_end_is_never_taken_back() -> None:
    """Whatever is observed after it: another end, containers that run, a life that begins again."""
    node = Node()
    node.put(over())
    for observed in (over(code=1), up(), new(), attrs.evolve(over(), ending=ToldEnding(reason="Evicted"))):
        node.put(observed)
        status = node.manager.status("u")
        assert status is not None
        assert (status.phase, status.reason) == (PodPhase.SUCCEEDED, "")
    assert set(node.phases()) == {"Succeeded"}


def test_that_nothing_of_a_pod_runs_any_more_is_known_though_it_tells_nothing_new() -> None:
    """One that was refused had failed before, and so had one that ended under an agent before this one."""
    refused = Observed(
        pod=pod("a"), life=LifeState.TERMINATING, ending=ToldEnding(reason="OutOfcpu"), refused=True
    )
    was = PodStatus(phase=PodPhase.FAILED, reason="Evicted")
    ended = attrs.evolve(over("b"), life=LifeState.TERMINATING, source_status=was)
    node = Node()
    for before in (refused, ended):
        uid = before.pod.uid
        node.put(before)
        node.put(attrs.evolve(before, life=LifeState.TERMINATED))
        told = node.manager.told.get(uid)
        assert told is not None
        assert (told.is_over, told.version) == (True, 1)
    assert [uid for uid, _ in node.sink.calls] == ["a", "b"]


def test_ready_falls_before_anything_ends() -> None:
    """The first status after the decision says so; the containers are told as they are."""
    node = Node()
    node.put(up())
    node.put(attrs.evolve(up(), life=LifeState.TERMINATING))
    told = node.sink.of("u")[-1]
    assert told is not None
    ready, serving = told.condition("Ready"), told.condition("ContainersReady")
    assert ready is not None
    assert serving is not None
    assert (told.phase, ready.status.value, serving.status.value) == (PodPhase.RUNNING, "False", "True")


def test_a_failing_sink_is_asked_again_with_what_is_true_then() -> None:
    """After a back-off; what nobody took is not told any more."""
    node = Node()
    node.sink.error = OSError("no")
    node.put(new())
    assert len(node.manager.failures("u")) == 1
    node.put(attrs.evolve(new(), report=report(runs=False)))
    node.sink.error = None
    node.after(1.0)
    assert node.phases() == ["Pending"]
    assert node.sink.statuses["u"] == node.manager.status("u")
    assert node.manager.failures("u") == ()


def test_what_is_urgent_does_not_wait_for_a_back_off() -> None:
    """A sink that is well again hears of an end at once, though it failed before."""
    node = Node()
    node.sink.error = OSError("no")
    node.put(new())
    node.sink.error = None
    node.put(over())
    assert node.phases() == ["Succeeded"]


def test_a_sink_that_hangs_holds_up_its_pod_alone() -> None:
    """Others are told; what changes meanwhile is told when the call returns."""
    node = Node(is_inline=False)
    node.put(new("hung"))
    node.put(new("other"))
    assert len(node.executor) == 2
    assert node.executor.run(1)
    node.put(up("other"))
    assert node.executor.run(1)
    node.put(up("hung"))
    assert node.phases("other") == ["Pending", "Running"]
    assert node.phases("hung") == []
    run_to_rest(node.manager, node.executor, node.clock)
    assert node.sink.statuses["hung"] == node.manager.status("hung")


def test_what_is_told_late_is_the_newest() -> None:
    """A call that waited for a worker tells what is true when it begins."""
    node = Node(is_inline=False)
    node.put(new())
    node.put(attrs.evolve(new(), report=report(runs=False)))
    run_to_rest(node.manager, node.executor, node.clock)
    assert len(node.sink.calls) == 1
    assert node.sink.statuses["u"] == node.manager.status("u")


def test_first_running_and_ends_overtake() -> None:
    """With one call at a time and a hundred pods waiting, the two that matter come next."""
    sink = FakeSink()
    free, begun = threading.Event(), threading.Event()

    def slow(_uid: str) -> None:
        begun.set()
        assert free.wait(30)

    sink.before = slow
    pods: World[str, Observed] = World("pods")
    manager = StatusManager(sink, pods, options=TellingOptions(in_flight=1))
    pods.put("first", new("first"))
    manager.run_until_quiet()
    assert begun.wait(30)
    for at in range(100):
        pods.put(f"p{at}", new(f"p{at}"))
    manager.run_until_quiet()
    pods.put("runs", up("runs"))
    pods.put("p99", over("p99"))
    manager.run_until_quiet()
    free.set()
    with manager:
        while len(sink.statuses) < 102:
            assert not threading.Event().wait(0.01)
    assert {uid for uid, _ in sink.calls[1:3]} == {"runs", "p99"}
    assert [phase_of(one) for one in sink.of("p99")] == ["Succeeded"]


def made(uid: str = "u") -> Observed:
    """A pod with a sandbox and a container that has not begun."""
    known = report(uid)
    (app,) = known.containers
    created = attrs.evolve(app, record=attrs.evolve(app.record, state=RunState.CREATED))
    return Observed(pod=pod(uid), report=PodReport.of(uid, known.sandboxes, [created]))


def sandboxed(uid: str = "u") -> Observed:
    """A pod with a sandbox alone."""
    return Observed(pod=pod(uid), report=PodReport.of(uid, report(uid).sandboxes, []))


def gathering() -> Node:
    """A node that gathers for a second."""
    return Node(MemoryJournal(), options=TellingOptions(gather_s=1.0))


def test_steps_of_a_start_are_told_together_and_what_others_wait_for_at_once() -> None:
    """The first word at once, what is new within the second after it came, and that it runs at once."""
    node = gathering()
    node.put(new())
    assert len(node.sink.of("u")) == 1
    node.put(sandboxed())
    node.clock.advance(0.6)
    node.put(made())
    assert len(node.sink.of("u")) == 1
    assert node.manager.seconds_to_next() == pytest.approx(0.4)
    node.put(up())
    assert [phase_of(one) for one in node.sink.of("u")] == ["Pending", "Running"]
    assert node.sink.statuses["u"] == node.manager.status("u")


def test_a_start_that_takes_long_is_told_once_a_second_and_a_failure_at_once() -> None:
    """What comes meanwhile does not put it off; a pod that is gone is told of as ever."""
    node = gathering()
    node.put(new())
    node.put(sandboxed())
    node.clock.advance(0.9)
    node.put(made())
    node.clock.advance(0.1)
    node.manager.run_until_quiet()
    assert len(node.sink.of("u")) == 2
    assert node.sink.statuses["u"] == node.manager.status("u")
    failure = StartFailure(reason="ErrImagePull", message="no such image")
    node.put(attrs.evolve(made(), start_failures={"app": failure}))
    assert len(node.sink.of("u")) == 3
    node.put(made("other"))
    node.put(attrs.evolve(sandboxed("other"), life=LifeState.TERMINATING))
    assert len(node.sink.of("other")) == 2
    node.put(sandboxed("third"))
    node.put(made("third"))
    node.drop("third")
    assert node.sink.calls[-1] == ("third", None)


def settling() -> Node:
    """A node that decides a fiftieth of a second after a change."""
    return Node(MemoryJournal(), options=TellingOptions(settle_s=0.02))


def test_changes_that_come_together_are_decided_about_once() -> None:
    """The first one begins the wait, and those that follow do not put it off."""
    node = settling()
    node.put(new())
    node.after(0.015)
    node.put(sandboxed())
    assert node.sink.of("u") == []
    assert node.manager.seconds_to_next() == pytest.approx(0.005)
    node.after(0.005)
    assert [phase_of(one) for one in node.sink.of("u")] == ["Pending"]
    told = node.manager.told.get("u")
    assert told is not None
    assert (told.version, told.told_version) == (1, 1)
    node.put(up())
    node.put(up())
    node.after(0.02)
    assert node.phases() == ["Pending", "Running"]
    assert node.manager.seconds_to_next() == pytest.approx(300, abs=1)


def test_that_a_pod_has_to_end_waits_for_nothing() -> None:
    """At once, with what has waited; and what is gone is told of as ever."""
    node = settling()
    node.put(new())
    node.put(attrs.evolve(up(), life=LifeState.TERMINATING))
    assert node.phases() == ["Running"]
    node.put(over())
    assert node.phases() == ["Running", "Succeeded"]
    node.drop()
    assert node.phases()[-1] == "gone"
    node.put(attrs.evolve(new("refused"), refused=True, ending=ToldEnding(reason="OutOfcpu")))
    assert node.phases("refused") == ["Failed"]


def test_a_pod_that_is_dropped_before_anything_was_decided_is_told_to_nobody() -> None:
    """Nobody heard of it, so there is nothing to take back; nor is it kept."""
    node = settling()
    node.put(new())
    node.drop()
    node.after(61)
    node.put(new("other"))
    node.after(0.02)
    node.put(up("other"))
    assert [uid for uid, _ in node.sink.calls] == ["other"]


def test_a_pod_that_comes_back_is_told_anew() -> None:
    """Its uid was dropped and put again while the sink was told that it is gone: it is, once more."""
    node = Node(is_inline=False)
    node.put(over())
    run_to_rest(node.manager, node.executor, node.clock)
    node.drop()
    node.pods.put("u", over())
    run_to_rest(node.manager, node.executor, node.clock)
    assert node.phases()[-1] == "Succeeded"
    assert node.sink.statuses["u"] == node.manager.status("u")


def test_a_successor_has_a_status_of_its_own() -> None:
    """Same name, another uid: nothing of the old one lands on it, and its restarts begin at 0."""
    node = Node()
    node.put(up("old", DONE, DONE))
    node.put(new("new"))
    node.drop("old")
    status = node.manager.status("new")
    assert status is not None
    assert (status.phase, status.containers[0].restart_count) == (PodPhase.PENDING, 0)
    assert node.phases("new") == ["Pending"]


def test_a_kubelet_tells_nothing_that_cannot_be() -> None:
    """By its rules the whole status is dropped, time and again; by ours it is told as unknown."""
    node = Node()
    node.put(over())
    alive = attrs.evolve(up(), source_status=node.sink.statuses["u"])
    for rules, told in ((KUBELET, []), (Rules(), ["Succeeded"])):
        sink = FakeSink()
        pods: World[str, Observed] = World("pods")
        manager = StatusManager(sink, pods, rules=rules, executor=InlineExecutor())
        pods.put("u", alive)
        manager.run_until_quiet()
        assert [phase_of(one) for one in sink.of("u")] == told


def test_a_pod_that_nothing_is_kept_of_is_not_told() -> None:
    """A step that comes too late says nothing."""
    sink = FakeSink()
    told: World[str, Told] = World("told")
    unheard: World[str, int] = World("unheard")
    domain: Tellings[Observed] = Tellings(
        sink,
        told,
        lambda one: one,
        parts=(),
        unheard=Near(unheard, lambda uid: [uid]),
        decide=Decide(rules=Rules()),
        unix_s=lambda now_s: now_s,
        deadline_s=None,
    )
    step = Step(scope=("status", "u"), verb="tell", detail=Telling(uid="u"))
    assert domain.perform(step, ManualCancel()) == Delivery()
    assert domain.settled(None, step, Done(Delivery())) is None
    assert sink.calls == []


def test_worlds_of_others_add_to_what_is_known() -> None:
    """A change in one of them is told; a pod that has no record there is as without it."""
    known: World[str, PodKnown] = World("runtime pods")
    node = Node(parts=(Part.of(known, with_runtime),))
    node.put(new())
    known.put("u", PodKnown(uid="u", report=report()))
    node.manager.run_until_quiet()
    assert node.phases() == ["Pending", "Running"]


def test_records_of_others_are_turned_into_what_is_known() -> None:
    """A world of anything will do, with a function; without one it has to hold `Observed`."""
    sink = FakeSink()
    names: World[str, str] = World("names")
    manager = StatusManager(sink, names, observed=new, executor=InlineExecutor())
    names.put("u", "u")
    manager.run_until_quiet()
    assert list(sink.statuses) == ["u"]
    wrong = StatusManager(sink, names, executor=InlineExecutor())
    wrong.run_until_quiet()
    (failure,) = wrong.failures("u")
    assert isinstance(failure.error, ConfigurationError)


def test_since_when_things_are_follows_the_wall_clock() -> None:
    """Conditions carry Unix seconds, whatever the engine's clock counts from."""
    node = Node()
    node.put(new())
    node.unix_s = 9000.0
    node.clock.advance(50.0)
    node.put(up())
    status = node.manager.status("u")
    assert status is not None
    times = {one.type: one.last_transition_unix_s for one in status.conditions}
    assert (status.started_unix_s, times["PodScheduled"], times["Ready"]) == (5000.0, 5000.0, 9000.0)


def test_what_was_told_is_not_told_again_after_a_restart() -> None:
    """And what was not, is: the agent's end changes nothing that others see."""
    journal: MemoryJournal[JsonCheckpoint] = MemoryJournal()
    node = Node(journal)
    node.put(up("told"))
    node.sink.error = OSError("no")
    node.put(new("untold"))
    again = Node(journal)
    again.put(up("told"))
    again.put(new("untold"))
    again.manager.heard()
    again.manager.run_until_quiet()
    assert [uid for uid, _ in again.sink.calls] == ["untold"]
    assert again.manager.status("told") == node.manager.status("told")


def test_until_sources_were_heard_a_remembered_pod_stays() -> None:
    """It may be there still; once they were, and it is not, it has ended and is gone."""
    journal: MemoryJournal[JsonCheckpoint] = MemoryJournal()
    Node(journal).put(up())
    again = Node(journal)
    again.manager.run_until_quiet()
    assert again.sink.calls == []
    again.manager.heard()
    again.manager.run_until_quiet()
    assert again.phases() == ["Failed", "gone"]
    assert journal.rows == {}


def test_a_remembered_pod_that_is_said_to_be_there_is_waited_for() -> None:
    """Whoever runs it may be slower than its source; once it was there, it may go."""
    journal: MemoryJournal[JsonCheckpoint] = MemoryJournal()
    Node(journal).put(up())
    again = Node(journal)
    again.manager.heard(["u"])
    again.manager.run_until_quiet()
    again.put(up())
    assert again.sink.calls == []
    again.drop()
    assert again.phases() == ["Failed", "gone"]


@pytest.mark.parametrize("sees_it", [False, True])
def test_a_remembered_pod_that_was_there_for_a_moment_is_gone(sees_it: bool) -> None:
    """Such as one of which only the runtime had something left: nobody had decided what is true of it."""
    journal: MemoryJournal[JsonCheckpoint] = MemoryJournal()
    Node(journal).put(up())
    again = Node(journal, options=TellingOptions(settle_s=0.02))
    again.manager.heard(["u"])
    again.pods.put("u", up())
    if sees_it:
        again.manager.run_until_quiet()
        assert again.sink.calls == []
    again.drop()
    assert again.phases() == ["Failed", "gone"]


def test_restarts_count_on_after_a_reboot() -> None:
    """The runtime has forgotten everything and begins at 0; the count does not fall."""
    journal: MemoryJournal[JsonCheckpoint] = MemoryJournal()
    Node(journal).put(attrs.evolve(up("u", DONE, DONE), pod=pod(policy=RestartPolicy.ALWAYS)))
    again = Node(journal)
    for one in (report(runs=False), report()):
        again.put(Observed(pod=pod(policy=RestartPolicy.ALWAYS), report=one))
        status = again.manager.status("u")
        assert status is not None
        assert status.containers[0].restart_count == 2


@pytest.mark.parametrize(("rules", "count"), [(Rules(), 3), (KUBELET, 0)])
def test_what_an_agent_knows_of_what_an_earlier_one_told(rules: Rules, count: int) -> None:
    """All of it; a kubelet asks the runtime and its sources anew, and then remembers what it told itself."""
    journal: MemoryJournal[JsonCheckpoint] = MemoryJournal()
    running = attrs.evolve(up("u", DONE, DONE, DONE), pod=pod(policy=RestartPolicy.ALWAYS))
    Node(journal, rules=rules).put(running)
    lost = Observed(pod=running.pod, report=PodReport(uid="u"))
    again = Node(journal, rules=rules)
    again.put(lost)
    status = again.manager.status("u")
    assert status is not None
    assert status.containers[0].restart_count == count
    again.put(running)
    again.put(lost)
    status = again.manager.status("u")
    assert status is not None
    assert status.containers[0].restart_count == 3


def test_nothing_is_told_before_it_is_remembered() -> None:
    """A full disk keeps it back; then it is told."""
    journal: MemoryJournal[JsonCheckpoint] = MemoryJournal()
    node = Node(journal)

    def full() -> None:
        raise OSError("no space left")

    journal.fault = full
    node.put(new())
    assert node.sink.calls == []
    journal.fault = lambda: None
    node.after(10.0)
    assert node.phases() == ["Pending"]


class KilledError(BaseException):
    """The agent is killed here."""


def story() -> list[tuple[str, Observed | None]]:
    """What two pods of one name go through; None where one is dropped."""
    ends = attrs.evolve(up(), life=LifeState.TERMINATING, ending=ToldEnding(reason="Evicted"))
    gone = attrs.evolve(over(), ending=ToldEnding(reason="Evicted"))
    steps = [new(), up(), ends, gone]
    after: list[tuple[str, Observed | None]] = [("u", None), ("v", new("v")), ("v", over("v")), ("v", None)]
    return [*(("u", one) for one in steps), *after]


def lived(kill_at: int) -> tuple[FakeSink, int]:
    """A story with an agent that is killed at one of its commits and calls, and starts again."""
    journal: MemoryJournal[JsonCheckpoint] = MemoryJournal()
    sink, count = FakeSink(), 0

    def point(_uid: str = "") -> None:
        nonlocal count
        count += 1
        if count == kill_at:
            raise KilledError

    sink.before = journal.fault = point
    node = Node(journal, sink)
    for uid, observed in story():
        for _ in range(2):
            try:
                if observed is None:
                    node.drop(uid)
                else:
                    node.put(observed)
            except KilledError:
                before = node.pods.snapshot()
                node = Node(journal, sink)
                for other, record in before.items():
                    node.pods.put(other, record.value)
                node.manager.heard()
    return sink, count


def test_killed_anywhere_it_tells_the_same_story() -> None:
    """Each pod ends once, as it ended; nothing follows that it is gone; nobody is left."""
    whole, points = lived(0)
    assert points > 20
    for kill_at in range(1, points + 1):
        sink, _ = lived(kill_at)
        assert sink.statuses == {}
        for uid, end in (("u", "Failed"), ("v", "Succeeded")):
            phases = [phase_of(one) for one in sink.of(uid)]
            squeezed = [one for at, one in enumerate(phases) if at == 0 or phases[at - 1] != one]
            assert squeezed[-2:] == [end, "gone"], (kill_at, phases)
            assert squeezed.count("gone") == 1
            told = [one for one in whole.of(uid) if one is not None and one.phase is PodPhase(end)]
            again = [one for one in sink.of(uid) if one is not None and one.phase is PodPhase(end)]
            assert again[-1] == told[-1], kill_at


def test_what_is_kept_comes_back_from_its_row() -> None:
    """Status, versions and oddities; a row of something else is refused with every fault."""
    told = Told(
        status=PodStatus(
            phase=PodPhase.RUNNING, containers=(ContainerStatus(name="app"),), started_unix_s=7.0
        ),
        version=4,
        told_version=3,
        told_phase=PodPhase.PENDING,
        sidecars=frozenset({"b", "a"}),
        oddities=(StatusOddity(container="app", message="m"),),
    )
    row = told_to_checkpoint(told)
    assert told_from_checkpoint(row) == told
    with pytest.raises(DecodeError, match="expected pod status version 1, found pod status version 2"):
        told_from_checkpoint(attrs.evolve(row, version=2))
    with pytest.raises(DecodeError, match=r"required field missing @ .*is_leaving"):
        told_from_checkpoint(attrs.evolve(row, value={}))
    assert isinstance(row.value, Mapping)
    wrong = {
        **row.value,
        "version": -1,
        "told_phase": "Up",
        "is_over": 1,
        "sidecars": [1],
        "oddities": [["a"]],
    }
    with pytest.raises(DecodeError) as caught:
        told_from_checkpoint(attrs.evolve(row, value=wrong))
    assert [one.path for one in caught.value.faults] == [
        "$.version",
        "$.told_phase",
        "$.is_over",
        "$.sidecars",
        "$.oddities[0]",
    ]
    with pytest.raises(DecodeError, match="oddities"):
        told_from_checkpoint(attrs.evolve(row, value={**row.value, "oddities": "no"}))


def test_a_folder_holds_a_file_for_each_pod(tmp_path: Path) -> None:
    """Whole, readable as the API's JSON, and gone with its pod; names are safe whatever the uid is."""
    sink = FolderSink(tmp_path / "status")

    def read(uid: str) -> str | None:
        return sink.path(uid).read_text() if sink.path(uid).exists() else None

    check_sink(sink, read)
    sink.told("../u", PodStatus(phase=PodPhase.RUNNING))
    assert [one.name for one in (tmp_path / "status").iterdir()] == ["..%2Fu.json"]
    (tmp_path / "status" / ".0123456789abcdef.new").write_text("{")  # its writer was killed
    FolderSink(tmp_path / "status")
    assert [one.name for one in (tmp_path / "status").iterdir()] == ["..%2Fu.json"]


def test_a_file_that_cannot_be_written_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call raises, so that it is repeated; nothing half is left behind."""
    sink = FolderSink(tmp_path)
    sink.told("u", PodStatus(phase=PodPhase.PENDING))
    before = sink.path("u").read_text()

    def full(_descriptor: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        sink.told("u", PodStatus(phase=PodPhase.RUNNING))
    assert [one.name for one in tmp_path.iterdir()] == ["u.json"]
    assert sink.path("u").read_text() == before


def test_functions_are_a_sink() -> None:
    """One for statuses, and one for ends where somebody wants those."""
    held: dict[str, PodStatus] = {}
    check_sink(CallSink(held.__setitem__, lambda uid: held.pop(uid, None)), held.get)
    CallSink(held.__setitem__).gone("u")


@pytest.mark.parametrize("broken", ["kept", "lost", "stale"])
def test_a_broken_sink_is_refused(broken: str) -> None:
    """One that keeps what is gone, forgets at once, or holds on to the first status."""
    held: dict[str, PodStatus] = {}

    def told(uid: str, status: PodStatus) -> None:
        if broken == "stale":
            held.setdefault(uid, status)
        elif broken != "lost":
            held[uid] = status

    def gone(uid: str) -> None:
        if broken != "kept":
            held.pop(uid, None)

    with pytest.raises(AssertionError):
        check_sink(CallSink(told, gone), held.get)


def test_options_that_allow_nothing_are_refused() -> None:
    """No call at once, no time for one."""
    with pytest.raises(ValueError, match="in_flight"):
        TellingOptions(in_flight=0)
    with pytest.raises(ValueError, match="deadline_s"):
        TellingOptions(deadline_s=0.0)


def test_a_status_survives_the_way_out_and_back() -> None:
    """As the API's JSON, with everything that it says."""
    node = Node()
    node.put(over())
    status = node.sink.statuses["u"]
    assert status_from_manifest(status_to_manifest(status)) == status


def test_nobody_is_told_of_what_only_the_runtime_knew() -> None:
    """A pod that `observed` answers None for is not told of, and not told gone when it goes."""
    pods: World[str, Pod] = World("pods")
    told: list[str] = []
    manager = StatusManager(
        CallSink(lambda uid, _status: told.append(uid), told.append),
        pods,
        observed=lambda pod: None if pod.name == "orphan" else Observed(pod=pod),
        executor=InlineExecutor(),
    )
    for name in ("orphan", "web"):
        pods.put(name, Pod(uid=name, name=name, containers=(Container(name="app", image="a"),)), by="test")
    manager.run_until_quiet()
    pods.drop("orphan", by="test")
    manager.run_until_quiet()
    assert told == ["web"]


def test_lines_keep_all_that_was_told(tmp_path: Path) -> None:
    """A line each, null at the end; what a crash cut short does no harm."""
    path = tmp_path / "told.jsonl"
    path.write_text('{"cut": ')
    pods = {"u": pod()}
    sink = JsonLinesSink(path, pods.get, unix_s=lambda: 7.0)
    sink.told("u", PodStatus(phase=PodPhase.RUNNING))
    pods.clear()
    sink.gone("u")
    sink.gone("u")
    sink.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    assert [(one["unix_s"], one["uid"], one["name"]) for one in lines] == [(7.0, "u", pod().name)] * 2
    assert [one["status"] and one["status"]["phase"] for one in lines] == ["Running", None]
