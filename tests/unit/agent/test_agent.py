"""An agent of fakes: what one package decides, the others follow."""

from __future__ import annotations

import errno
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import attrs
import pytest
from typing_extensions import override

from nodealloc.admission import Rules as AdmissionRules
from nodealloc.admission import chain_of
from nodealloc.agent import (
    AGENT_FORMATS,
    AdmissionPreparer,
    Agent,
    ConfinedRuntime,
    ContainerGc,
    GrantedConfiguration,
    Remembered,
    StaticPodSink,
    remembering_editions,
)
from nodealloc.agent._agent import _Once
from nodealloc.checkpoint import FileStore
from nodealloc.cpuset import CpuAllocator, CpusetReconciler
from nodealloc.dsw_asw import Cancel, Group, InlineExecutor, Moment, Step, Summary
from nodealloc.errors import ConfigurationError, RetryableError
from nodealloc.idset import CPUSet
from nodealloc.machine import machine_from_text
from nodealloc.node import NodeAllocator
from nodealloc.podfacts import Exited, LifeState, NodeView, PodIdentity, PodOnNode, PodPhase, PodStatus
from nodealloc.podlife import KUBELET, Ending, NodeConfiguration, NodeSettings, PodLives, Preparation
from nodealloc.podlife import Rules as LifeRules
from nodealloc.podsources import Editions, PodSources, Polling, Source
from nodealloc.podspec import (
    Container,
    ExecAction,
    Lifecycle,
    LifecycleHandler,
    Pod,
    Probe,
    Quantity,
    resources,
)
from nodealloc.podstatus import Part, StatusManager, observed_of, with_verdicts
from nodealloc.probes import ExecProber, Probers, Probing
from nodealloc.runtime import (
    CommandResult,
    ContainerConfig,
    Listing,
    PodListing,
    PodReport,
    RunState,
    RuntimeHealth,
    RuntimeRefusedError,
    RuntimeUnavailableError,
    RuntimeWatch,
    SandboxConfig,
)
from nodealloc.testing.cpuset import FakeCpusetWriter
from nodealloc.testing.dsw_asw import ManualCancel, ManualExecutor, VirtualClock
from nodealloc.testing.podfacts import FakePods
from nodealloc.testing.podlife import PlainConfiguration
from nodealloc.testing.podsources import FakeSource
from nodealloc.testing.podstatus import FakeSink
from nodealloc.testing.runtime import (
    FakeContainerRuntime,
    check_containers,
    check_images,
    check_sandboxes,
)
from nodealloc.topology import Owner, Snapshot
from nodealloc.verdicts import Admitted, NotYet, Refused
from nodealloc.volumes import VolumeManager

MACHINE = machine_from_text("1 socket x 4 cores, memory=8Gi")
NOW = ManualCancel()


def pod(uid: str, cpus: int = 0, **more: object) -> Pod:
    """A pod of one container, with so many CPUs of its own."""
    own = {"cpu": Quantity.of(cpus), "memory": Quantity.of(1 << 20)} if cpus else {}
    app = Container(name="app", image="busybox", requests=own, limits=own, **more)  # type: ignore[arg-type]
    return Pod(uid=uid, name=uid, containers=(app,), termination_grace_period_seconds=1)


class Writer(FakeCpusetWriter):
    """Every container is there to be confined."""

    def write(self, target: str, cpus: CPUSet, mems: object, /) -> None:
        """See `CpusetWriter.write`."""
        self.sets.setdefault(target, (CPUSet.parse("0-3"), None))
        super().write(target, cpus, None)

    def read(self, target: str, /) -> tuple[CPUSet, None]:
        """See `CpusetWriter.read`."""
        return self.sets.setdefault(target, (CPUSet.parse("0-3"), None))[0], None


class Meanwhile(FakeContainerRuntime):
    """A runtime during whose calls something else happens."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.during: dict[str, Callable[[], object]] = {}

    def create_container(self, sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig, /) -> str:
        """See `Containers.create_container`; what happens meanwhile comes behind it."""
        made = super().create_container(sandbox_id, config, sandbox)
        self.during.pop("create_container", bool)()
        return made

    def start_container(self, container_id: str, /) -> None:
        """See `Containers.start_container`."""
        super().start_container(container_id)
        self.during.pop("start_container", bool)()


class Node:
    """What outlives the agent, and the agent that runs now."""

    def __init__(
        self,
        folder: Path,
        *,
        rules: LifeRules | None = None,
        waits_for_deleted: bool = True,
        admits_anew: bool = False,
    ) -> None:
        self.folder, self.waits_for_deleted, self.admits_anew = folder, waits_for_deleted, admits_anew
        self.view: NodeView | None = None
        self.clock = VirtualClock(1000.0)
        self.rules = rules or LifeRules()
        self.runtime = Meanwhile(unix_s=self.unix_s)
        self.source, self.sink = FakeSource(), FakeSink()
        self.gone: list[str] = []
        self.once: list[str] = []
        self.fails = 0
        self.ended: list[tuple[str, Ending]] = []
        self.start_agent()

    def unix_s(self) -> float:
        """The wall clock."""
        return 1_000_000.0 + self.clock.monotonic_s()

    def now(self) -> Moment:
        """This moment."""
        return Moment(boot_id="boot", monotonic_s=self.clock.monotonic_s(), unix_s=self.unix_s())

    def origins(self) -> dict[str, Source]:
        """Where pods come from."""
        return {"api": self.source}

    def start_agent(self) -> None:
        """A new process on what the store remembers."""
        self.executor = ManualExecutor()
        drive = {"executor": self.executor, "clock": self.clock}
        self.store = FileStore(self.folder, AGENT_FORMATS)
        was = Remembered.read(self.store, now=self.now())
        allocators = [CpuAllocator.of(MACHINE, reserved=1)]
        self.held = NodeAllocator(
            Snapshot.of(MACHINE, allocators=allocators),
            self.store,
            view=self.view,
            chain=chain_of(),
            admits_anew=self.admits_anew,
        )
        self.held.start()
        watch = self.watch = RuntimeWatch(self.runtime, journal=self.store, known=was.known, **drive)  # type: ignore[arg-type]
        self.sources = PodSources(
            self.origins(),
            editions=was.editions,
            remember=remembering_editions(self.store),
            polling=Polling(period_s=1.0),
            **drive,  # type: ignore[arg-type]
        )
        self.writer = Writer()
        self.cpusets = CpusetReconciler(
            self.writer,
            allocator=self.held.snapshot[CpuAllocator],
            **drive,  # type: ignore[arg-type]
        )
        self.starts = ConfinedRuntime(self.runtime, node=self.held, cpusets=self.cpusets, watch=watch)
        self.admission = AdmissionPreparer(self.held, confined=self.starts, end=self.end)
        self.probing = Probing(
            Probers(exec=ExecProber(self.runtime)),
            reports=watch.pods,
            journal=self.store,
            remembered=was.verdicts,
            unix_s=self.unix_s,
            **drive,  # type: ignore[arg-type]
        )
        self.lives = PodLives(
            self.starts,
            watch=watch,
            configuring=GrantedConfiguration(
                whole=NodeConfiguration(NodeSettings(name="n", memory_capacity_bytes=8 << 30)), node=self.held
            ),
            preparations=[
                Preparation(name="admission", why="a test", by=self.admission, wakes=self.admission.room)
            ],
            probes=self.probing.verdicts,
            sources=self.sources,
            journal=self.store,
            remembered=was.asking_again("admission") if self.admits_anew else was.lives,
            rules=self.rules,
            now=self.now,
            **drive,  # type: ignore[arg-type]
        )
        self.status = StatusManager(
            self.sink,
            self.lives.facts,
            observed=observed_of,
            parts=[Part.of(self.probing.verdicts, with_verdicts)],
            journal=self.store,
            remembered=was.told,
            unix_s=self.unix_s,
            **drive,  # type: ignore[arg-type]
        )
        collects = ContainerGc(
            self.runtime,
            watch=watch,
            lives=self.lives,
            unix_s=self.unix_s,
            **drive,  # type: ignore[arg-type]
        )
        self.agent = Agent(
            self.sources,
            watch,
            self.probing,
            *([] if self.rules.clears_away else [collects]),
            lives=self.lives,
            probing=self.probing,
            status=self.status,
            node=self.held,
            cpusets=self.cpusets,
            once_known={"a task": self.task},
            gone=self.gone.append,
            waits_for_deleted=self.waits_for_deleted,
            **drive,  # type: ignore[arg-type]
        )

    def kill(self) -> None:
        """The agent is gone, and another one comes."""
        self.store.close()
        self.start_agent()

    def end(self, uid: str, why: Ending) -> None:
        """What the admission calls for those that make room."""
        self.ended.append((uid, why))
        self.lives.end(uid, why)

    def task(self) -> None:
        """Something that is done once all is known."""
        if self.fails:
            self.fails -= 1
            raise RetryableError("not now", after_s=0.1)
        self.once.append("done")

    def after(self, seconds: float) -> None:
        """Let time pass, in small steps."""
        ends_s = self.clock.monotonic_s() + seconds
        self.settle()
        while self.clock.monotonic_s() < ends_s:
            self.clock.advance(0.25)
            self.settle()

    def settle(self) -> None:
        """Do all that can be done at this moment."""
        self.agent.run_until_quiet()
        while self.executor.run_all():
            self.agent.run_until_quiet()

    def container(self, uid: str) -> str:
        """The runtime's id of a pod's newest container."""
        found = self.runtime.inspect(uid).newest("app")
        assert found is not None
        return found.record.id

    def cpus(self, uid: str) -> str:
        """Where a pod's container is confined to."""
        applied = self.cpusets.applied(self.container(uid))
        assert applied is not None
        return str(applied.cpus)


def test_containers_leave_cpus_before_they_are_somebodys_own(tmp_path: Path) -> None:
    """A container that shares all CPUs is moved before the one that gets two of them is made."""
    node = Node(tmp_path)
    node.source.pods = [pod("shared")]
    node.after(3)
    assert node.cpus("shared") == "0-3"
    node.source.pods = [pod("shared"), pod("own", cpus=2)]
    node.after(3)
    own = CPUSet.parse(node.cpus("own"))
    assert len(own) == 2
    assert own.isdisjoint(CPUSet.parse(node.cpus("shared")))
    node.source.pods = [pod("shared")]
    node.after(5)
    assert node.cpus("shared") == "0-3"


def test_who_still_runs_on_its_cpus_is_waited_for(tmp_path: Path) -> None:
    """Not yet, with the container's name; nothing of the pod is made meanwhile."""
    node = Node(tmp_path)
    node.source.pods = [pod("shared")]
    node.after(3)
    shared = node.container("shared")
    answer = node.admission.make_ready(pod("own", cpus=2), NOW)  # nobody runs the writer's calls now
    assert isinstance(answer, NotYet)
    assert answer.blocker == "cpusets"
    assert shared in answer.message
    node.settle()
    assert isinstance(node.admission.make_ready(pod("own", cpus=2), NOW), Admitted)


def test_of_two_who_follow_grants_at_once_the_older_snapshot_is_not_followed_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Containers of others went back to CPUs that had just been granted, which were said to be free."""
    node = Node(tmp_path)
    node.source.pods = [pod("shared")]
    node.after(3)
    plain, others = vars(NodeAllocator)["snapshot"].fget, list[threading.Thread]()

    def admit() -> None:
        node.held.admit(pod("own", cpus=2))
        node.starts.follow_grants()

    def snapshot(held: NodeAllocator) -> Snapshot:
        found: Snapshot = plain(held)
        if not others:
            others.append(threading.Thread(target=admit))
            others[0].start()
            others[0].join(0.2)  # it ends in that time, or waits for whoever asks now
        return found

    monkeypatch.setattr(NodeAllocator, "snapshot", property(snapshot))
    node.starts.follow_grants()
    others[0].join()
    assert node.cpusets.intruders_of(Owner("own", "app")) == (node.container("shared"),)


@pytest.mark.parametrize("inspects", [True, False])
def test_a_container_of_which_the_runtime_knows_nothing_may_run(tmp_path: Path, *, inspects: bool) -> None:
    """It is moved off CPUs that become somebody's own, and waited for until it is."""
    node = Node(tmp_path)
    node.source.pods = [pod("shared")]
    node.after(3)
    shared = node.container("shared")
    node.kill()
    report = next(iter(node.runtime.inspect("shared").containers))
    unknown = attrs.evolve(report.record, state=RunState.UNKNOWN)
    node.runtime.put(attrs.evolve(report, record=unknown))
    if not inspects:
        node.runtime.fail("inspect", RetryableError("hangs", after_s=1.0), times=None)
    node.runtime.fail("stop_container", RetryableError("hangs", after_s=1.0), times=None)
    node.settle()
    assert node.cpusets.has(shared) is inspects  # what is only listed is added once somebody asks for CPUs
    answer = node.admission.make_ready(pod("own", cpus=2), NOW)
    assert isinstance(answer, NotYet)
    assert shared in answer.message
    node.settle()
    assert isinstance(node.admission.make_ready(pod("own", cpus=2), NOW), Admitted)
    assert node.writer.sets[shared][0] == node.held.snapshot[CpuAllocator].shared


def test_an_instance_that_is_about_to_start_pushes_no_dead_one_out(tmp_path: Path) -> None:
    """The collection of each minute keeps the newest that died, also between the two calls of a start."""
    node = Node(tmp_path, rules=KUBELET)
    node.source.pods = [pod("crashes")]
    node.after(3)
    first = node.container("crashes")
    start, begun = node.runtime.start_container, list[str]()
    node.runtime.start_container = begun.append  # type: ignore[method-assign]
    node.runtime.exit(first, Exited(code=1))
    node.after(70)
    assert begun
    assert first in {one.record.id for one in node.runtime.inspect("crashes").containers}
    node.runtime.start_container = start  # type: ignore[method-assign]


def overlaps(node: Node, uid: str) -> bool:
    """Whether the one container of a pod runs on CPUs that the pod `own` holds for itself."""
    made_with = node.runtime.limits(node.container(uid)).cpus
    applied = node.writer.sets.get(node.container(uid), (made_with, None))[0]
    return applied is None or not applied.isdisjoint(
        node.held.snapshot[CpuAllocator].exclusive_of(Owner("own", "app"))
    )


def answers_until_free(node: Node) -> list[object]:
    """What a pod with CPUs of its own is answered, call by call of the agent, until it may start."""
    answers: list[object] = []
    while len(answers) < 99:
        answers.append(node.admission.make_ready(pod("own", cpus=2), NOW))
        if not isinstance(answers[-1], NotYet):
            break
        node.agent.reconcile()
        node.executor.run()
    return answers


def test_nobody_has_cpus_for_itself_before_the_runtime_was_heard(tmp_path: Path) -> None:
    """A restarted agent knows of no container, listed or inspected, and says not yet."""
    node = Node(tmp_path)
    node.source.pods = [pod("shared")]
    node.after(3)
    node.kill()
    answers = answers_until_free(node)
    assert isinstance(answers[-1], Admitted)
    assert not overlaps(node, "shared")
    blockers = list(dict.fromkeys(one.blocker for one in answers if isinstance(one, NotYet)))
    assert blockers == ["runtime", "cpusets"]


def test_a_container_that_cannot_be_inspected_is_moved_all_the_same(tmp_path: Path) -> None:
    """What the listing shows is enough to know whose it is."""
    node = Node(tmp_path)
    node.source.pods = [pod("shared")]
    node.after(3)
    shared = node.container("shared")
    node.kill()
    node.runtime.fail("inspect", RetryableError("hangs", after_s=1.0), times=None)
    node.settle()
    assert isinstance(node.admission.make_ready(pod("own", cpus=2), NOW), NotYet)
    node.settle()
    assert isinstance(node.admission.make_ready(pod("own", cpus=2), NOW), Admitted)
    assert node.writer.sets[shared][0] == node.held.snapshot[CpuAllocator].shared


def test_what_was_listed_alone_and_ended_is_moved_no_more(tmp_path: Path) -> None:
    """Nobody inspected it, so that nobody else takes it out."""
    node = Node(tmp_path)
    node.source.pods = [pod("shared")]
    node.after(3)
    shared = node.container("shared")
    node.kill()
    node.runtime.fail("inspect", RetryableError("hangs", after_s=1.0), times=None)
    node.settle()
    answers_until_free(node)
    confined = node.writer.sets[shared]
    node.runtime.exit(shared, Exited(code=0))
    node.after(3)
    node.admission.take_back(pod("own", cpus=2), NOW)
    node.after(3)
    assert not node.cpusets.has(shared)
    assert node.writer.sets[shared] == confined


def test_what_was_listed_alone_and_is_removed_is_moved_no_more(tmp_path: Path) -> None:
    """Its pod lives on and nobody else leaves: to look for it again and again would be for nothing."""
    node = Node(tmp_path)
    node.source.pods = [pod("shared")]
    node.after(3)
    shared = node.container("shared")
    node.kill()
    node.runtime.fail("inspect", RetryableError("hangs", after_s=1.0), times=None)
    node.settle()
    answers_until_free(node)
    assert node.cpusets.has(shared)
    node.runtime.exit(shared, Exited(code=0))
    node.starts.remove_container(shared)
    assert not node.cpusets.has(shared)


def test_a_container_that_is_being_made_starts_beside_cpus_that_are_granted_meanwhile(tmp_path: Path) -> None:
    """It was made for all CPUs; it starts on those that are left."""
    node = Node(tmp_path)
    answers: list[object] = []
    node.runtime.during["create_container"] = lambda: answers.append(
        node.admission.make_ready(pod("own", cpus=2), NOW)
    )
    on: list[bool] = []
    node.runtime.during["start_container"] = lambda: on.append(overlaps(node, "shared"))
    node.source.pods = [pod("shared")]
    node.after(0.5)
    assert isinstance(answers[0], Admitted)
    assert on == [False]


def test_a_start_that_is_under_way_is_waited_for(tmp_path: Path) -> None:
    """Until the container is listed and moved; it began on CPUs that were everybody's."""
    node = Node(tmp_path)
    answers: list[object] = []

    def ask() -> None:
        answers.append(node.admission.make_ready(pod("own", cpus=2), NOW))

    node.runtime.during["start_container"] = ask
    node.source.pods = [pod("shared")]
    while not answers:
        node.agent.reconcile()
        node.executor.run()
    ask()  # the call has come back, and nobody has listed what it did
    assert [isinstance(one, NotYet) for one in answers] == [True, True]
    node.after(1)
    assert isinstance(answers_until_free(node)[-1], Admitted)
    assert not overlaps(node, "shared")


def test_a_start_that_failed_keeps_nobody_waiting(tmp_path: Path) -> None:
    """Once a listing shows that nothing came of it, and before it is tried again."""
    node = Node(tmp_path)
    no = RuntimeRefusedError("start_container", "FAILED", "no")
    node.runtime.fail("start_container", no, times=None)
    node.source.pods = [pod("shared")]
    node.after(1)
    assert isinstance(node.admission.make_ready(pod("own", cpus=2), NOW), Admitted)


def test_what_an_agent_before_made_starts_on_cpus_that_are_free_now(tmp_path: Path) -> None:
    """It had been made for all CPUs, and another pod was granted some when that agent was gone."""
    node = Node(tmp_path)
    node.runtime.fail("start_container", RuntimeUnavailableError("start_container", "gone"))
    node.source.pods = [pod("shared")]
    node.after(0)
    made = node.container("shared")
    node.kill()
    assert isinstance(answers_until_free(node)[-1], Admitted)
    on: list[bool] = []
    node.runtime.during["start_container"] = lambda: on.append(overlaps(node, "shared"))
    node.after(15)
    assert node.container("shared") == made
    assert on == [False]


def test_a_container_that_anybody_may_have_made_is_not_confined_where_nobody_holds_cpus(
    tmp_path: Path,
) -> None:
    """No call more than a start takes."""
    node = Node(tmp_path)
    node.source.pods = [pod("shared")]
    node.after(3)
    calls = [one.partition(" ")[0] for one in node.runtime.calls]
    assert calls.count("start_container") == 1
    assert "update_container" not in calls


class Seen(ConfinedRuntime):
    """With the looks of the runtime below it, which the checks of runtimes need."""

    def __init__(self, node: Node) -> None:
        super().__init__(node.runtime, node=node.held, cpusets=node.cpusets, watch=node.watch)
        self.looks = node.runtime

    def listing(self) -> Listing:
        """See `Looks.listing`."""
        return self.looks.listing()

    def inspect(self, uid: str, listed: PodListing | None = None, /) -> PodReport:
        """See `Looks.inspect`."""
        return self.looks.inspect(uid, listed)

    def health(self) -> RuntimeHealth:
        """See `Looks.health`."""
        return self.looks.health()

    def follow(self, on_event: Callable[[], None], cancel: Cancel, /) -> None:
        """See `Looks.follow`."""
        self.looks.follow(on_event, cancel)


def test_a_runtime_that_confines_keeps_every_promise_of_the_one_below_it(tmp_path: Path) -> None:
    """All calls are passed on, also beside somebody's own CPUs."""
    node = Node(tmp_path)
    node.held.admit(pod("own", cpus=2))
    where = SandboxConfig(pod=PodIdentity(uid="u", namespace="default", name="u"))
    app = ContainerConfig(name="app", image="busybox", definition="d1")
    check_sandboxes(Seen(node), where)
    check_containers(Seen(node), where, app)
    check_images(Seen(node), "another")
    made = node.starts.create_container(node.starts.run_sandbox(where), app, where)
    node.starts.start_container(made)
    assert isinstance(node.starts.run_command(made, ("true",), 1.0), CommandResult)
    assert node.runtime.limits(made).cpus == node.held.snapshot[CpuAllocator].shared


def test_a_pod_that_is_no_more_leaves_nothing_behind(tmp_path: Path) -> None:
    """Neither a cpuset that somebody would wait for, nor a verdict, nor a grant."""
    node = Node(tmp_path)
    probe = Probe(exec=ExecAction(command=("true",)), period_seconds=1)
    node.source.pods = [pod("web", cpus=1, readiness_probe=probe)]
    node.after(4)
    target = node.container("web")
    assert node.probing.verdicts.get("web") is not None
    assert node.held.snapshot.admitted
    node.source.pods = []
    node.after(6)
    assert node.cpusets.applied(target) is None
    assert node.probing.verdicts.get("web") is None
    assert not node.held.snapshot.admitted
    assert node.gone == ["web"]
    assert node.sink.of("web")[-1] is None


def test_who_raises_when_a_pod_is_gone_keeps_nobody_from_hearing_of_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What went at the same moment was told to nobody, and what it had left stayed."""
    node = Node(tmp_path)
    node.source.pods = [pod("bad"), pod("web")]
    node.after(1)
    heard: list[str] = []

    def gone(uid: str) -> None:
        heard.append(uid)
        if uid == "bad":
            raise OSError("no room")

    Agent(lives=node.lives, gone=gone)
    node.lives.facts.replace({})
    assert heard == ["bad", "web"]
    assert "following pod bad raised" in caplog.text


def test_a_restart_goes_on_with_what_was_remembered(tmp_path: Path) -> None:
    """The same container runs, its verdict stands, it is told nothing new, and once more all is known."""
    node = Node(tmp_path)
    probe = Probe(exec=ExecAction(command=("true",)), period_seconds=1)
    node.source.pods = [pod("web", cpus=1, readiness_probe=probe)]
    node.after(4)
    before, told = node.container("web"), node.sink.statuses["web"]
    count = len(node.sink.calls)
    node.kill()
    node.after(4)
    assert node.container("web") == before
    assert node.sink.statuses["web"] == told
    assert len(node.sink.calls) == count
    assert node.once == ["done", "done"]


@pytest.mark.parametrize("anew", [True, False])
def test_by_a_kubelets_rules_a_restart_with_less_ends_who_does_not_come_in_any_more(
    tmp_path: Path, anew: bool
) -> None:
    """Like a pod that only the runtime knows: in a second, which comes to two, and without its hook."""
    node = Node(tmp_path, rules=KUBELET if anew else None, admits_anew=anew)
    hook = Lifecycle(pre_stop=LifecycleHandler(exec=ExecAction(command=("bye",))))
    slow = attrs.evolve(pod("b", 2, lifecycle=hook), termination_grace_period_seconds=30)
    node.source.pods = [pod("a", 1), slow]
    node.after(4)
    before = {uid: node.container(uid) for uid in "ab"}
    node.view = NodeView(name="n", allocatable=resources({"cpu": 2, "memory": "1Gi", "pods": 10}))
    node.kill()
    node.after(8)
    assert node.container("a") == before["a"]
    left = [one.record.id for one in node.runtime.inspect("b").containers]
    assert left == ([] if anew else [before["b"]])
    lives = {uid: node.lives.pods.snapshot()[uid].value.life for uid in "ab"}
    assert lives == {"a": LifeState.SYNCING, "b": LifeState.FINISHED if anew else LifeState.SYNCING}
    assert node.sink.statuses["a"].phase is PodPhase.RUNNING
    assert (f"stop_container {before['b']}" in node.runtime.calls) == anew
    assert node.lives.pods.snapshot()["b"].value.grace_s == (1.0 if anew else None)
    assert not any(one.startswith("run_command") for one in node.runtime.calls)
    assert node.held.snapshot.admitted.keys() == ({"a"} if anew else {"a", "b"})
    told = node.sink.statuses["b"]
    assert (told.phase, told.reason) == ((PodPhase.FAILED, "OutOfcpu") if anew else (PodPhase.RUNNING, ""))
    assert (told.containers == ()) == anew


def test_pods_that_went_while_the_agent_was_down_are_forgotten(tmp_path: Path) -> None:
    """Once every source was heard: told gone, no verdict, no grant."""
    node = Node(tmp_path)
    node.source.pods = [pod("web", cpus=1)]
    node.after(4)
    node.source.pods = []
    node.kill()
    node.after(6)
    assert node.sink.of("web")[-1] is None
    assert not node.held.snapshot.admitted
    assert node.runtime.inspect("web").containers == ()


def test_what_is_done_once_waits_until_all_is_known_and_is_tried_again(tmp_path: Path) -> None:
    """Nothing of others is touched before every source was heard."""
    node = Node(tmp_path)
    node.fails = 2
    node.source.synced = False
    node.after(3)
    assert node.once == []
    node.source.synced = True
    node.after(10)
    assert node.once == ["done"]


def test_ending_pods_are_waited_for(tmp_path: Path) -> None:
    """Whoever wants what an ending pod holds is not refused."""
    node = Node(tmp_path)
    node.source.pods = [pod("old", cpus=3)]
    node.after(4)
    node.source.pods = [attrs.evolve(pod("new", cpus=3))]
    node.after(0.25)
    node.after(8)
    assert node.lives.pods.snapshot().keys() == {"new"}
    assert PodPhase.RUNNING is node.sink.statuses["new"].phase


@pytest.mark.parametrize(
    ("is_deleted", "waits", "phase"),
    [
        (True, True, PodPhase.RUNNING),
        (True, False, PodPhase.FAILED),
        (False, False, PodPhase.RUNNING),
    ],
)
def test_a_kubelet_refuses_who_needs_what_a_pod_holds_that_is_being_deleted(
    tmp_path: Path, *, is_deleted: bool, waits: bool, phase: PodPhase
) -> None:
    """`waits_for_deleted`: as long as an API server has that pod; of one that is had by nobody it is free."""
    node = Node(tmp_path, waits_for_deleted=waits)
    old, new = pod("old", cpus=3), pod("new", cpus=3)
    node.source.pods = [old]
    node.after(4)
    gone = attrs.evolve(old, deletion_timestamp="2026-01-01T00:00:00Z", deletion_grace_period_seconds=1)
    node.source.pods = [gone, new] if is_deleted else [new]
    node.after(8)
    assert node.sink.statuses["new"].phase is phase
    assert node.sink.statuses["new"].reason == ("OutOfcpu" if phase is PodPhase.FAILED else "")


def test_who_was_ending_when_the_agent_was_killed_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its containers are gone and what it holds could not be given back yet: who wants it waits."""
    node = Node(tmp_path)
    node.source.pods = [pod("old", cpus=3)]
    node.after(4)
    with monkeypatch.context() as full:
        full.setattr(NodeAllocator, "release", lambda *_: (_ for _ in ()).throw(RetryableError("full")))
        node.source.pods = [pod("new", cpus=3)]
        node.after(6)
        node.kill()
        node.after(6)
        waiting = node.lives.pods.get("new")
        assert waiting is not None
        assert "default/old still holds cpu, and is ending" in str(waiting.waits_for)
    node.after(6)
    assert PodPhase.RUNNING is node.sink.statuses["new"].phase


def forgets(node: Node, folder: Path) -> None:
    """The agent is killed, and nothing that it remembered is left."""
    node.store.close()
    node.folder = folder
    node.start_agent()


def test_who_ends_and_of_whom_nothing_is_remembered_is_waited_for(tmp_path: Path) -> None:
    """It was started by an earlier agent, and this one was never asked to admit it."""
    node = Node(tmp_path / "before")
    old, new = pod("old", cpus=2), pod("new", cpus=2)
    node.source.pods = [old]
    node.after(4)
    forgets(node, tmp_path / "after")
    node.source.pods = [attrs.evolve(old, deletion_timestamp="2026-01-01T00:00:00Z"), new]
    blockers: set[str] = set()
    for _ in range(60):
        node.after(0.25)
        record = node.lives.pods.get("new")
        if record is not None and record.waits_for is not None:
            blockers.add(record.waits_for.blocker)
        runs = {
            uid
            for uid in ("old", "new")
            for one in node.runtime.inspect(uid).containers
            if one.record.state is RunState.RUNNING
        }
        assert runs != {"old", "new"}
    assert "default/old" in blockers
    assert runs == {"new"}
    assert node.held.view.pods.keys() == {"new"}


def test_of_a_pod_that_only_the_runtime_knows_nothing_is_counted(tmp_path: Path) -> None:
    """Nobody can tell what it requests: it is no pod of the view, whatever it is named like."""
    node = Node(tmp_path / "before")
    node.source.pods = [pod("old", cpus=2)]
    node.after(4)
    forgets(node, tmp_path / "after")
    node.source.pods = []
    seen: set[str] = set()
    for _ in range(20):
        node.after(0.25)
        seen |= node.held.view.pods.keys()
    assert not seen
    assert not node.runtime.inspect("old").containers


def test_a_critical_pod_ends_others_in_the_fields_words(tmp_path: Path) -> None:
    """Victims hear why they end; the pod comes in once they have."""
    node = Node(tmp_path)
    small = attrs.evolve(node.held.view, allocatable={"pods": Quantity.of(1)}, elsewhere=frozenset())
    node.held.alter_view(lambda _: small)
    node.source.pods = [pod("web")]
    node.after(3)
    assert node.held.view.pods.keys() == {"web"}
    critical = attrs.evolve(pod("vital"), priority=2_000_000_000, priority_class_name="system-node-critical")
    node.source.pods = [pod("web"), critical]
    while "web" in node.held.view.pods:
        node.after(0.25)
    assert node.runtime.inspect("vital").containers, "it waits though there is room"
    node.after(8)
    assert [(uid, why.reason) for uid, why in node.ended][:1] == [("web", "Preempting")]
    assert node.sink.statuses["vital"].phase is PodPhase.RUNNING


def test_two_critical_pods_that_come_at_once_end_no_more_than_they_need(tmp_path: Path) -> None:
    """The second one waits for the room that is made already, before its pod has begun to end."""
    view = NodeView(name="n", allocatable=resources({"cpu": 4, "memory": "1Gi", "pods": 2}))
    store = FileStore(tmp_path, AGENT_FORMATS)
    held = NodeAllocator(Snapshot.of(MACHINE, allocators=[]), store, view=view, chain=chain_of())
    held.start()
    for uid in ("web", "app"):
        assert isinstance(held.admit(pod(uid)), Admitted)
    ended: list[str] = []
    preparer = AdmissionPreparer(held, end=lambda uid, _why: ended.append(uid))
    for uid in ("vital", "also"):
        critical = attrs.evolve(pod(uid), priority=2_000_000_000, priority_class_name="system-node-critical")
        assert isinstance(preparer.make_ready(critical, NOW), NotYet)
    assert len(ended) == 1


def test_a_pod_that_nobody_ends_to_make_room_is_not_taken_for_one_that_ends(tmp_path: Path) -> None:
    """Others would wait for what it holds, and it goes on holding that."""
    view = NodeView(name="n", allocatable=resources({"cpu": 4, "memory": "1Gi", "pods": 1}))
    store = FileStore(tmp_path, AGENT_FORMATS)
    held = NodeAllocator(Snapshot.of(MACHINE, allocators=[]), store, view=view, chain=chain_of())
    held.start()
    assert isinstance(held.admit(pod("web")), Admitted)
    preparer = AdmissionPreparer(held, end=lambda _uid, _why: False)
    critical = attrs.evolve(pod("vital"), priority=2_000_000_000, priority_class_name="system-node-critical")
    assert isinstance(preparer.make_ready(critical, NOW), NotYet)
    assert not held.view.pods["web"].state.is_ending


def test_who_does_not_come_in_waits_for_pods_that_may_be_about_to_go(tmp_path: Path) -> None:
    """A pod in place of another one was refused for good, if its manifest was read before that had ended."""
    view = NodeView(name="n", allocatable=resources({"cpu": 4, "memory": "1Gi", "pods": 1}))
    store = FileStore(tmp_path, AGENT_FORMATS)
    held = NodeAllocator(Snapshot.of(MACHINE, allocators=[]), store, view=view, chain=chain_of())
    held.start()
    leaving: set[str] = set()
    preparer = AdmissionPreparer(held, may_leave=leaving.__contains__)
    assert isinstance(preparer.make_ready(pod("old"), NOW), Admitted)
    assert isinstance(preparer.make_ready(pod("new"), NOW), Refused)
    leaving.add("old")
    waits = preparer.make_ready(pod("new"), NOW)
    assert isinstance(waits, NotYet)
    assert waits.blocker == pod("old").full_name
    assert waits.message.endswith(f"{pod('old').full_name} may be about to go")
    held.mark_ending("old")
    assert isinstance(preparer.make_ready(pod("new"), NOW), NotYet)
    large = attrs.evolve(pod("large"), containers=pod("large", 64).containers)
    assert isinstance(preparer.make_ready(large, NOW), Refused)  # it would not fit without it either
    held.release("old")
    assert isinstance(preparer.make_ready(pod("new"), NOW), Admitted)


@pytest.mark.parametrize(("last", "reason"), [(True, "OutOfcpu"), (False, "UnexpectedAdmissionError")])
def test_a_static_pod_that_does_not_fit_is_told_what_is_short(
    tmp_path: Path, last: bool, reason: str
) -> None:
    """In the word for that; a kubelet gives out CPUs first, and says that this was unexpected."""
    view = NodeView(name="n", allocatable=resources({"cpu": 2, "memory": "1Gi", "pods": 10}))
    allocators = [CpuAllocator.of(MACHINE, reserved=1)]
    store = FileStore(tmp_path, AGENT_FORMATS)
    chain = chain_of(rules=AdmissionRules(allocates_last=last))
    held = NodeAllocator(Snapshot.of(MACHINE, allocators=allocators), store, view=view, chain=chain)
    held.start()
    static = attrs.evolve(pod("s", 5), annotations={"kubernetes.io/config.source": "file"})
    verdict = AdmissionPreparer(held).make_ready(static, NOW)
    assert isinstance(verdict, Refused)
    assert verdict.reason == reason


def test_who_came_first_comes_in_and_a_refusal_stays(tmp_path: Path) -> None:
    """In the order in which they came, not in that of names; nobody is asked again by another start."""
    node = Node(tmp_path)
    node.source.pods = [pod("c", 2), pod("b", 2), pod("a", 1)]
    node.after(3)
    lives = {uid: node.lives.pods.snapshot()[uid].value.life for uid in "abc"}
    assert lives == {"c": LifeState.SYNCING, "b": LifeState.FINISHED, "a": LifeState.SYNCING}
    node.kill()
    node.source.pods = [pod("b", 2), pod("a", 1)]
    node.after(5)
    assert node.lives.pods.snapshot()["b"].value.life is LifeState.FINISHED


def test_dead_containers_stay_until_the_next_but_go_with_their_pod(tmp_path: Path) -> None:
    """As a kubelet collects them: at the second look at the latest for a pod that is gone."""
    node = Node(tmp_path, rules=attrs.evolve(LifeRules(), clears_away=False))
    node.source.pods = [pod("web")]
    node.after(3)
    node.source.pods = []
    node.after(65)
    assert node.runtime.inspect("web").containers == ()
    assert node.runtime.inspect("web").sandboxes == ()


def test_a_minute_is_collected_though_its_own_look_was_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looks that take long skip turns, and may meet none that is a whole minute."""
    node = Node(tmp_path)
    node.after(3)
    collects = ContainerGc(node.runtime, watch=node.watch, lives=node.lives, clock=node.clock)
    collected: list[object] = []
    monkeypatch.setattr(collects, "_collect", collected.append)
    counts = []
    for turn in (0, 1, 59, 61, 63, 119, 121, 299, 301):
        collects._look(turn)
        counts.append(len(collected))
    assert counts == [1, 1, 1, 2, 2, 2, 3, 4, 5]


def test_static_pods_are_listed_as_a_kubelet_lists_them(tmp_path: Path) -> None:
    """Not before they were let in, and gone with their manifest."""
    node = Node(tmp_path)
    sink = StaticPodSink(node.sink, node.lives, node.sources)
    status = PodStatus(phase=PodPhase.PENDING)
    node.source.pods = [pod("web")]
    node.after(3)
    node.writer.fail(node.container("web"), RetryableError("busy", after_s=1.0))
    node.source.pods = [pod("web"), pod("early", cpus=2)]
    node.after(2)
    assert node.lives.pods.snapshot()["early"].value.life is LifeState.SYNCING
    with pytest.raises(RetryableError, match="let in"):
        sink.told("early", status)
    sink.told("web", status)
    assert node.sink.calls[-1] == ("web", status)
    node.source.pods = []
    node.after(1.5)
    assert node.sink.of("web").count(None) >= 1
    before = len(node.sink.calls)
    sink.told("web", status)
    sink.gone("web")
    assert len(node.sink.calls) == before


def test_who_tells_a_static_pod_too_early_tries_again_once_it_is_let_in(tmp_path: Path) -> None:
    """A pod that waits for another one of its name had been told up to as long again after its start."""
    node = Node(tmp_path)
    asked: list[str] = []
    sink = StaticPodSink(node.sink, node.lives, node.sources, again=asked.append)
    node.source.pods = [pod("web")]
    node.after(3)
    busy = node.container("web")
    node.writer.fail(busy, RetryableError("busy", after_s=1.0))
    node.source.pods = [pod("web"), pod("early", cpus=2)]
    node.after(2)
    with pytest.raises(RetryableError, match="let in"):
        sink.told("early", PodStatus(phase=PodPhase.PENDING))
    assert asked == []
    node.writer.fail(busy, None)
    node.after(3)
    assert asked == ["early"]
    sink.told("early", PodStatus(phase=PodPhase.RUNNING))
    node.source.pods = []
    node.after(5)
    assert asked == ["early"]


def test_that_a_static_pod_is_gone_is_told_though_its_sink_failed_once(tmp_path: Path) -> None:
    """With whatever is told of it next; and the others that went with it are told meanwhile."""
    node = Node(tmp_path)

    class Full(FakeSink):
        fails = True

        @override
        def gone(self, uid: str, /) -> None:
            if self.fails and uid == "web":
                raise OSError(errno.ENOSPC, "No space left on device")
            super().gone(uid)

    listed = Full()
    sink = StaticPodSink(listed, node.lives, node.sources, clock=node.clock)
    node.source.pods = [pod("web"), pod("other", cpus=0)]
    node.after(3)
    for uid in ("web", "other"):
        sink.told(uid, PodStatus(phase=PodPhase.RUNNING))
    node.source.pods = []
    node.after(1.25)
    assert (listed.of("web").count(None), listed.of("other").count(None)) == (0, 1)
    with pytest.raises(OSError, match="No space"):
        sink.told("web", PodStatus(phase=PodPhase.FAILED))
    listed.fails = False
    sink.gone("web")
    assert listed.of("web").count(None) == 1


def test_a_sink_that_raises_of_one_static_pod_keeps_the_end_of_no_other_from_being_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever it raises: they were taken for told, and stayed in the list for ever."""
    node = Node(tmp_path)
    listed = FakeSink()
    sink = StaticPodSink(listed, node.lives, node.sources, clock=node.clock)
    names = ["a", "b", "c"]
    node.source.pods = [pod(name) for name in names]
    node.after(3)
    for name in names:
        sink.told(name, PodStatus(phase=PodPhase.RUNNING))

    def before(uid: str) -> None:
        if uid != "c":
            raise ValueError("a bug of the sink")

    listed.before = before
    node.source.pods = []
    node.after(1.25)
    assert [listed.of(name).count(None) for name in names] == [0, 0, 1]
    assert "ValueError: a bug of the sink" in caplog.text


def test_a_static_pod_whose_manifest_goes_while_it_is_told_is_gone(tmp_path: Path) -> None:
    """That it is gone was told before, on another thread; it had stayed in the list for ever."""
    node = Node(tmp_path)
    listed = FakeSink()
    sink = StaticPodSink(listed, node.lives, node.sources, clock=node.clock)
    node.source.pods = [pod("web")]
    node.after(3)

    def goes(_uid: str) -> None:
        listed.before = lambda _: None
        node.sources.pods.drop("web")

    listed.before = goes
    running = PodStatus(phase=PodPhase.RUNNING)
    sink.told("web", running)
    assert listed.of("web") == [None, running, None]
    sink.told("web", PodStatus(phase=PodPhase.FAILED))
    sink.gone("web")
    assert listed.of("web") == [None, running, None]


def test_a_static_pod_that_is_put_back_as_it_ends_is_listed_as_ended(tmp_path: Path) -> None:
    """What it was last is told on another thread than what it is now, and perhaps behind that."""
    node = Node(tmp_path)
    listed = FakeSink()
    sink = StaticPodSink(listed, node.lives, node.sources, clock=node.clock)
    running, ended = PodStatus(phase=PodPhase.RUNNING), PodStatus(phase=PodPhase.FAILED)
    node.source.pods = [pod("web")]
    node.after(3)
    sink.told("web", running)
    there = node.sources.pods.get("web")
    assert there is not None
    node.sources.pods.drop("web")

    def ends(_uid: str) -> None:
        listed.before = lambda _: None
        sink.told("web", ended)

    listed.before = ends
    node.sources.pods.put("web", there)
    assert listed.statuses["web"] == ended


@pytest.mark.parametrize(("away_s", "again"), [(1.5, [PodPhase.FAILED]), (4.0, [])])
def test_a_static_pod_that_is_put_back_is_listed_as_it_was_last(
    tmp_path: Path, away_s: float, again: list[PodPhase]
) -> None:
    """Though nothing of it changed, or while nobody was told; after 2 s that is forgotten."""
    node = Node(tmp_path)
    listed = FakeSink()
    sink = StaticPodSink(listed, node.lives, node.sources, clock=node.clock)
    running, ended = PodStatus(phase=PodPhase.RUNNING), PodStatus(phase=PodPhase.FAILED)
    node.source.pods = [pod("web")]
    node.after(3)
    sink.told("web", running)
    node.source.pods = []
    node.after(1.25)
    sink.told("web", ended)
    node.after(away_s - 1.25)
    node.source.pods = [pod("web")]
    node.after(1.25)
    told = [one and one.phase for one in listed.of("web")]
    assert told == [PodPhase.RUNNING, None, *again]
    sink.told("web", running)
    assert listed.of("web")[-1] == running


def test_what_a_sink_has_not_taken_is_told_at_once_where_somebody_asks_for_it(tmp_path: Path) -> None:
    """Its back-off may be long by then."""
    node = Node(tmp_path)

    def refuses(_uid: str) -> None:
        raise RetryableError("not yet", after_s=60.0)

    node.sink.before = refuses
    node.source.pods = [pod("web")]
    node.after(5)
    node.sink.before = lambda _: None
    node.after(5)
    assert node.sink.of("web") == []
    node.status.retry_now("web")
    node.settle()
    assert [one and one.phase for one in node.sink.of("web")] == [PodPhase.RUNNING]


def test_rows_of_every_package_come_back(tmp_path: Path) -> None:
    """Editions too, which sources have no store for."""
    store = FileStore(tmp_path, AGENT_FORMATS)
    remembering_editions(store)("file", Editions())
    assert Remembered.read(store).editions == {"file": Editions()}
    store.close()


def test_a_kubelet_forgets_whom_it_refused(tmp_path: Path) -> None:
    """By its rules nothing counts as told of a pod that it asks about again."""
    node = Node(tmp_path)
    node.source.pods = [pod("web")]
    node.after(3)
    was = Remembered.read(node.store, now=node.now())
    other = attrs.evolve(was, told={**was.told, "refused": was.told["web"]})
    assert other.told_of(node.lives, LifeRules()).keys() == {"web", "refused"}
    assert other.told_of(node.lives, KUBELET).keys() == {"web"}


def test_a_kubelet_forgets_how_a_static_pod_ended_that_is_looked_at_anew(tmp_path: Path) -> None:
    """By its rules; an agent keeps what was told."""
    node = Node(tmp_path)
    static = {"kubernetes.io/config.source": "file"}
    node.source.pods = [pod("web")]
    for one in ("file", "well"):
        node.lives.put(attrs.evolve(pod(one), annotations=static))
    node.after(3)
    was = Remembered.read(node.store, now=node.now())
    failed = attrs.evolve(was.told["web"], status=PodStatus(phase=PodPhase.FAILED))
    other = attrs.evolve(was, told={**was.told, "web": failed, "file": failed, "gone": failed})
    assert other.told_of(node.lives, LifeRules()).keys() == {"web", "file", "well", "gone"}
    assert other.told_of(node.lives, KUBELET).keys() == {"web", "well"}
    forgets_ends = attrs.evolve(LifeRules(), remembers_pods=False)
    assert other.told_of(node.lives, forgets_ends).keys() == {"web", "well", "gone"}


def test_wrong_parts_are_named(tmp_path: Path) -> None:
    """Which argument, and what it should be."""
    node = Node(tmp_path)
    with pytest.raises(ConfigurationError, match="node"):
        AdmissionPreparer("node")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="lives"):
        Agent(lives=node.sink)  # type: ignore[arg-type]


def test_a_node_view_knows_its_pods(tmp_path: Path) -> None:
    """What the chain judged by is what the lives run."""
    node = Node(tmp_path)
    node.source.pods = [pod("web")]
    node.after(3)
    assert isinstance(node.held.view.pods["web"], PodOnNode)


def test_a_pass_of_all_packages_is_one_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In files, while thirty pods start; what the node grants is remembered beside it, pod by pod."""
    node = Node(tmp_path)
    commits: list[int] = []
    passes: list[int] = []
    commit, reconcile = node.store.commit, node.agent.reconcile

    def remember(*what: Any, **more: Any) -> None:
        commits.append(1)
        commit(*what, **more)

    def counted() -> Summary:
        before = len(commits)
        summary = reconcile()
        passes.append(len(commits) - before)
        return summary

    monkeypatch.setattr(node.store, "commit", remember)
    monkeypatch.setattr(node.agent, "reconcile", counted)
    node.source.pods = [pod(f"u{number}") for number in range(30)]
    node.after(5)
    assert max(passes) == 1


def test_a_pod_that_starts_costs_so_much_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans of all reconcilers, questions to the runtime, rows of the store: a pod, however many come."""
    found: list[tuple[float, dict[str, float], float]] = []
    for count in (5, 40):
        node = Node(tmp_path / str(count))
        node.after(2)
        node.runtime.calls.clear()
        planned: list[int] = []
        rows: list[int] = []
        commit, reconcile = node.store.commit, node.agent.reconcile

        def remember(changes: Any, /, commit: Any = commit, rows: list[int] = rows) -> None:
            rows.append(len(changes))
            commit(changes)

        def counted(reconcile: Any = reconcile, planned: list[int] = planned) -> Summary:
            summary: Summary = reconcile()
            planned.append(summary.planned)
            return summary

        monkeypatch.setattr(node.store, "commit", remember)
        monkeypatch.setattr(node.agent, "reconcile", counted)
        node.source.pods = [pod(f"u{number}") for number in range(count)]
        node.after(5)
        calls = Counter(one.partition(" ")[0] for one in node.runtime.calls)
        asked = {name: calls[name] / count for name in ("inspect", "create_container", "start_container")}
        found.append((sum(planned) / count, asked, sum(rows) / count))
    few, many = found
    assert many[0] <= few[0] <= 31
    assert few[1:] == many[1:] == ({"inspect": 2, "create_container": 1, "start_container": 1}, 10)


def test_whoever_is_driven_by_nobody_is_named_when_the_agent_starts() -> None:
    """An agent without its watch waited for a listing, and one without its sources for pods, for good."""
    runtime = FakeContainerRuntime()
    watch, sources = RuntimeWatch(runtime), PodSources({"file": FakeSource()})
    lives = PodLives(runtime, watch=watch, configuring=PlainConfiguration(), sources=sources)
    probing = Probing(Probers(), reports=watch.pods)
    with pytest.raises(
        ConfigurationError, match="nobody drives runtime, pod sources, probes; put each among"
    ):
        Agent(lives=lives, probing=probing).start()
    with pytest.raises(ConfigurationError, match="nobody drives pod sources; put"):
        Agent(Group(watch), lives=lives, probing=probing, beside=[probing]).start()
    sources.start()  # by whoever made it
    leave = watch.add_listener(lambda: None)  # as one does who makes its passes on an event loop
    Agent(lives=lives).start()
    leave()
    agent = Agent(watch, lives=lives)
    agent.start()
    agent.stop(1.0)
    sources.stop(1.0)


def test_what_is_done_once_all_is_known_is_done_though_a_part_of_it_raises() -> None:
    """Nobody did the rest any more: what was left of pods that had gone stayed."""
    runtime, done = FakeContainerRuntime(), list[str]()
    drive: dict[str, Any] = {"executor": InlineExecutor(), "clock": VirtualClock(1000.0)}
    watch = RuntimeWatch(runtime, **drive)

    class Broken(FakePods):
        def uids(self) -> Iterable[str]:
            raise ValueError("a bug of the source")

    lives = PodLives(runtime, watch=watch, configuring=PlainConfiguration(), **drive)
    agent = Agent(
        watch,
        lives=lives,
        volumes=VolumeManager([], pods=Broken(), executor=InlineExecutor()),
        once_known={"tidy up": lambda: done.append("tidy up")},
        **drive,
    )
    agent.run_until_quiet()
    lives.heard()
    with pytest.raises(ValueError, match="a bug of the source"):
        agent.run_until_quiet()
    agent.run_until_quiet()
    assert done == ["tidy up"]
    assert not agent.has_work
    agent.close()


class Neighbour:
    """Something that runs beside an agent."""

    def __init__(self, name: str, said: list[str], fails: str = "") -> None:
        self.name, self.said, self.fails = name, said, fails

    def start(self) -> None:
        """Begin."""
        self._do("start")

    def stop(self) -> None:
        """End."""
        self._do("stop")

    def _do(self, what: str) -> None:
        self.said.append(f"{what} {self.name}")
        if what == self.fails:
            raise OSError(errno.EIO, f"cannot {what} {self.name}")


def agent_beside(*beside: Neighbour) -> Agent:
    """An agent of nothing, with these beside it."""
    runtime = FakeContainerRuntime()
    watch = RuntimeWatch(runtime)
    return Agent(watch, lives=PodLives(runtime, watch=watch, configuring=PlainConfiguration()), beside=beside)


def test_a_part_that_cannot_be_stopped_keeps_no_other_from_being_stopped() -> None:
    """Those before it ran on, with threads and sockets of their own."""
    said: list[str] = []
    agent = agent_beside(Neighbour("a", said), Neighbour("b", said, fails="stop"), Neighbour("c", said))
    agent.start()
    with pytest.raises(OSError, match="cannot stop b"):
        agent.stop(1.0)
    assert said == ["start a", "start b", "start c", "stop c", "stop b", "stop a"]


def test_an_agent_of_which_a_part_cannot_start_has_stopped_those_before_it() -> None:
    """Nobody would: whoever was to start it has an error in place of an agent that runs."""
    said: list[str] = []
    agent = agent_beside(Neighbour("a", said), Neighbour("b", said), Neighbour("c", said, fails="start"))
    with pytest.raises(OSError, match="cannot start c"):
        agent.start()
    assert said == ["start a", "start b", "start c", "stop b", "stop a"]
    assert not agent.is_driven


def test_an_agent_that_is_started_twice_goes_on() -> None:
    """The second start is refused, and touches nothing of what runs."""
    said: list[str] = []
    agent = agent_beside(Neighbour("a", said))
    agent.start()
    with pytest.raises(ConfigurationError, match="agent was started before"):
        agent.start()
    assert said == ["start a"]
    agent.stop(1.0)
    assert said == ["start a", "stop a"]


def test_a_task_that_would_have_to_be_awaited_is_not_done() -> None:
    """It would count as done, and never have begun."""
    begun: list[str] = []

    async def tidy_up() -> None:
        begun.append("tidy up")

    step = Step(scope=("tidy up",), verb="do", detail="tidy up")
    with pytest.raises(ConfigurationError, match=r"once_known..tidy up..: expected a function that has done"):
        _Once({"tidy up": tidy_up}).perform(step, NOW)
    assert begun == []


def test_a_container_more_that_does_not_fit_ends_nothing(tmp_path: Path) -> None:
    """The edit waits with its reason; what runs of the pod runs on, as it was, until the edit may come in."""
    node = Node(tmp_path)
    node.source.pods = [pod("a", 2)]
    node.after(3)
    before = pod("a", 2)

    def edited(cpus: int) -> None:
        amounts = {"cpu": Quantity.of(cpus), "memory": Quantity.of(1 << 20)}
        more = Container(name="more", image="busybox", requests=amounts, limits=amounts)
        node.source.pods = [attrs.evolve(before, containers=(*before.containers, more))]
        node.after(20)

    def running() -> list[str]:
        listed = node.runtime.listing().pods.values()
        return [box.name for one in listed for box in one.containers if box.state is RunState.RUNNING]

    edited(2)
    assert node.lives.pods.snapshot()["a"].value.life is LifeState.SYNCING
    waits = node.lives.facts.snapshot()["a"].value.waits_for
    assert waits is not None
    assert "as it was edited it does not come in" in waits.message
    assert running() == ["app"]
    edited(1)
    assert sorted(running()) == ["app", "more"]
    assert node.lives.facts.snapshot()["a"].value.waits_for is None
