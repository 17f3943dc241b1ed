"""Pods from sources, rows that are damaged, preparers and hooks that go wrong."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import CancelledError
from pathlib import Path

import attrs
import pytest

from nodealloc.checkpoint import FileStore, JsonCheckpoint, row_formats, row_key, rows_of
from nodealloc.dsw_asw import Moment, Step, UncertainError, World
from nodealloc.errors import DecodeError
from nodealloc.podfacts import LifeState, PodIdentity
from nodealloc.podlife import (
    POD_ROWS,
    Ending,
    EndingKind,
    MountInTheWayError,
    PodFolders,
    PodLives,
    PodRecord,
    Preparation,
    Provided,
    Restarts,
    record_from_checkpoint,
)
from nodealloc.podlife._codec import record_to_checkpoint
from nodealloc.podlife._listings import Listings
from nodealloc.podlife._record import HookState, Starting, Stopping
from nodealloc.podlife._restarts import RestartEntry
from nodealloc.podlife._wanted import PodWanted
from nodealloc.podsources import PodSources
from nodealloc.podspec import (
    Container,
    ExecAction,
    Lifecycle,
    LifecycleHandler,
    Pod,
    Probe,
    PullPolicy,
    RestartPolicy,
)
from nodealloc.runtime import (
    ContainerConfig,
    PodListing,
    PodReport,
    RuntimeRefusedError,
    RuntimeUnavailableError,
    RuntimeWatch,
    SandboxConfig,
)
from nodealloc.testing.dsw_asw import ManualExecutor, VirtualClock
from nodealloc.testing.podlife import FakePreparer, PlainConfiguration
from nodealloc.testing.podsources import FakeSource
from nodealloc.testing.runtime import FakeContainerRuntime
from nodealloc.verdicts import NotYet, Refused
from tests.unit.podlife_node import Node, Verdicts, pod

APP = Container(name="app", image="busybox")
HOOK = LifecycleHandler(exec=ExecAction(command=("true",)))
NOW = Moment(boot_id="a", monotonic_s=100.0, unix_s=5000.0)

FULL = PodRecord(
    pod=pod(containers=[attrs.evolve(APP, image_pull_policy=PullPolicy.IF_NOT_PRESENT)]),
    edition=3,
    life=LifeState.TERMINATING,
    noticed_s=10.0,
    noticed_unix_s=4910.0,
    ending=Ending(kind=EndingKind.EVICTED, reason="Evicted", message="short", grace_s=3.0),
    grace_s=3.0,
    deadline_s=103.0,
    made=("cgroup", "volumes"),
    sandbox_attempt=1,
    starting={"app": Starting(attempt=2, sandbox_id="s")},
    attempts={"app": 2},
    completed={"setup": "s"},
    ended={"app": ("c", 90.0)},
    restarts=Restarts(entries={("app", "v1:x"): RestartEntry(delay_s=20.0, started_s=80.0)}),
    stopping={"c": Stopping(name="app", deadline_s=101.0, grace_s=5.0)},
    post_start={"c": HookState.DONE},
    pre_stop={"c": HookState.WAITS},
    resized={"c": "{}"},
    pokes={"": 1},
)


def test_what_is_remembered_comes_back_from_files(tmp_path: Path) -> None:
    """All of it, by another program of the same boot; moments are on its clock."""
    formats = row_formats(POD_ROWS)
    with FileStore(tmp_path, formats) as store:
        store.commit({row_key(POD_ROWS, "u/1"): record_to_checkpoint(FULL, NOW)})
    with FileStore(tmp_path, formats) as store:
        found = rows_of(POD_ROWS, store.read().values, lambda row: record_from_checkpoint(row, NOW))
    assert found.keys() == {"u/1"}
    assert attrs.evolve(found["u/1"], pod=FULL.pod) == FULL
    assert found["u/1"].pod == FULL.pod


def test_after_another_boot_moments_are_where_the_wall_clock_has_them() -> None:
    """Twenty seconds later by it, on a clock that begins anew."""
    later = Moment(boot_id="b", monotonic_s=7.0, unix_s=5020.0)
    found = record_from_checkpoint(record_to_checkpoint(FULL, NOW), later)
    assert (found.deadline_s, found.noticed_s) == (-10.0, -103.0)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (JsonCheckpoint(kind="pod life", version=2, value={}), "version 1, found pod life version 2"),
        (JsonCheckpoint(kind="pod life", version=1, value={"uid": 3}), "expected a text, found 3 @ ..uid"),
        (
            JsonCheckpoint(kind="pod life", version=1, value={"pod": 3}),
            "expected a manifest, found 3 @ ..pod",
        ),
    ],
)
def test_a_row_that_is_no_record_is_refused(row: JsonCheckpoint, says: str) -> None:
    """With what is wrong, and where."""
    with pytest.raises(DecodeError, match=says):
        record_from_checkpoint(row, NOW)


def test_pods_come_from_sources_and_go_with_them() -> None:
    """What a source says is put; a mirror is not run; what none has is removed once all were heard."""
    runtime, clock, executor = FakeContainerRuntime(), VirtualClock(), ManualExecutor()
    source = FakeSource(pods=[pod()])
    sources = PodSources({"file": source}, executor=executor, clock=clock)
    watch = RuntimeWatch(runtime, executor=executor, clock=clock)
    lives = PodLives(
        runtime,
        watch=watch,
        configuring=PlainConfiguration(),
        sources=sources,
        remembered={"old": PodRecord(pod=pod("old"), life=LifeState.SYNCING)},
        executor=executor,
        clock=clock,
    )

    def after(seconds: int) -> None:
        for _ in range(seconds * 2):
            clock.advance(0.5)
            for one in (sources, watch, lives):
                one.run_until_quiet()
            while executor.run_all():
                for one in (sources, watch, lives):
                    one.run_until_quiet()

    after(3)
    assert [one.record.name for one in runtime.inspect("u").containers] == ["app"]
    assert lives.is_ready()
    assert "old" not in lives.wanted
    sources.pods.put("m", pod("m", annotations={"kubernetes.io/config.mirror": "x"}))
    source.pods.clear()
    after(60)
    assert (len(lives.wanted), runtime.listing().pods) == (0, {})
    lives.stop()


def test_a_second_reason_counts_where_it_leaves_less_time() -> None:
    """Whoever says the same again, in other words, changes nothing."""
    first = PodWanted(pod=pod()).ended(Ending(kind=EndingKind.EVICTED, message="1", grace_s=10))
    assert first.ended(Ending(kind=EndingKind.EVICTED, message="2", grace_s=10)) is first
    assert first.ended(Ending(kind=EndingKind.EVICTED, message="3")) is first
    assert len(first.ended(Ending(kind=EndingKind.EVICTED, message="4", grace_s=3)).endings) == 2


def test_a_phase_that_became_final_ends_the_pod() -> None:
    """Somebody else decided that it is over; what runs of it has to end."""
    node = Node()
    node.lives.put(pod())
    node.after(1)
    node.lives.put(attrs.evolve(pod(), labels={"a": "b"}, status={"phase": "Failed"}))
    node.after(1)
    assert (node.running(), node.life()) == ([], LifeState.FINISHED)
    facts = node.lives.facts.get("u")
    assert facts is not None
    assert facts.is_terminal


def test_what_a_preparer_gives_is_with_the_record() -> None:
    """Who configures finds it under the preparer's name."""
    part = FakePreparer(answer=lambda _: Provided(value="gift"))
    node = Node(preparations=[Preparation(name="cgroup", why="", by=part)])
    node.lives.put(pod())
    node.after(1)
    assert node.record().provided == {"cgroup": "gift"}


def test_a_preparer_that_raises_is_asked_again() -> None:
    """Its words are told meanwhile."""
    answers = iter([OSError("no such device"), None])

    def answer(_: Pod) -> Provided:
        error = next(answers)
        if error is not None:
            raise error
        return Provided(value=None)

    node = Node(preparations=[Preparation(name="volumes", why="", by=FakePreparer(answer=answer))])
    node.lives.put(pod())
    node.settle()
    facts = node.lives.facts.get("u")
    assert facts is not None
    assert facts.waits_for is not None
    assert (facts.waits_for.blocker, facts.waits_for.message) == ("volumes", "no such device")
    assert [one.verb for one in node.lives.failures("u")] == ["make ready volumes"]
    node.after(5)
    assert node.running() == ["app#0"]


def test_parts_that_follow_each_other_are_one_step() -> None:
    """One commit and one thread for all; a part that has to wait ends it, and begins the next one."""
    wakes: World[str, object] = World("wakes")
    order: list[str] = []
    waits = {"c"}

    def part(name: str) -> Preparation:
        def answer(_: Pod) -> Provided | NotYet:
            order.append(name)
            return (
                NotYet(blocker=name, message="not there", after_s=60)
                if name in waits
                else Provided(value=name)
            )

        return Preparation(name=name, why="", by=FakePreparer(answer=answer), wakes=wakes)

    node = Node(preparations=[part("a"), part("b"), part("c"), part("d")])
    node.executor.held |= {"make ready a"}
    node.lives.put(pod())
    node.settle()
    node.after(1)
    assert node.record().made == ("a", "b", "c", "d")
    node.executor.parked.pop()()
    node.settle()
    assert order == ["a", "b", "c", "c"]
    waits.clear()
    wakes.put("u", 1, by="a test")
    node.after(0.25)
    assert order == ["a", "b", "c", "c", "c", "d"]
    assert node.record().provided == {"a": "a", "b": "b", "c": "c", "d": "d"}
    assert node.running() == ["app#0"]


def test_a_part_that_raises_behind_others_keeps_what_they_gave() -> None:
    """It is the first of the next step, and its failure is its own."""
    first = FakePreparer(answer=lambda _: Provided(value="gift"))
    fails = [True, True]

    def answer(_: Pod) -> Provided:
        if fails:
            fails.pop()
            raise OSError("no such device")
        return Provided(value=None)

    parts = [
        Preparation(name="cgroup", why="", by=first),
        Preparation(name="volumes", why="", by=FakePreparer(answer=answer)),
    ]
    node = Node(preparations=parts)
    node.lives.put(pod())
    node.settle()
    assert node.record().provided == {"cgroup": "gift"}
    assert [one.verb for one in node.lives.failures("u")] == ["make ready volumes"]
    node.after(5)
    assert (first.calls, node.running()) == (["make u"], ["app#0"])


def test_of_a_refused_pod_only_what_was_tried_is_taken_back() -> None:
    """Nothing was made behind the part that said no."""
    no = FakePreparer(answer=lambda _: Refused(reason="No", message="not here"))
    behind = FakePreparer()
    parts = [Preparation(name="admission", why="", by=no), Preparation(name="folders", why="", by=behind)]
    node = Node(preparations=parts)
    node.lives.put(pod())
    node.after(2)
    assert (no.calls, behind.calls) == (["make u", "back u"], [])


def test_a_listing_wakes_those_who_wait_for_it_alone() -> None:
    """Others have nothing to learn from it, as long as nothing of theirs has changed."""
    runtime = FakeContainerRuntime(unix_s=lambda: 0.0)
    executor, clock = ManualExecutor(), VirtualClock(1000.0)
    watch = RuntimeWatch(runtime, executor=executor, clock=clock)
    listings = Listings(watch)

    def listed() -> None:
        clock.advance(0.5)
        watch.run_until_quiet()
        while executor.run_all():
            watch.run_until_quiet()

    assert listings.keys_of("a") == ("a",), "nothing is known yet"
    listed()
    changes = listings.world.watch()
    assert listings.keys_of("a") == listings.keys_of("b") != ("a",)
    number = listings.hurry("a")
    assert listings.keys_of("a") == ("a",)
    changes.take()
    listed()
    assert set(changes.take()) == {"a"}
    record = listings.world.get("a")
    assert record is not None
    assert record >= number
    listings.forget("a")
    assert "a" not in listings.world


def test_a_configuration_that_cannot_be_is_told_of_its_container() -> None:
    """A config map that is not there, say; it is tried again."""

    class Failing(PlainConfiguration):
        def container(
            self, record: PodRecord, container: Container, attempt: int, image_id: str, report: PodReport, /
        ) -> ContainerConfig:
            if node.clock.monotonic_s() < 1005:
                raise LookupError("config map web is not there")
            return super().container(record, container, attempt, image_id, report)

    node = Node(configuring=Failing())
    node.lives.put(pod())
    node.after(1)
    facts = node.lives.facts.get("u")
    assert facts is not None
    waiting = facts.containers["app"].waiting
    assert waiting is not None
    assert (waiting.reason, waiting.message) == ("CreateContainerConfigError", "config map web is not there")
    node.after(30)
    assert node.running() == ["app#0"]


def test_no_container_is_made_before_its_pod_has_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runtime may be asked the same at that moment, and refuse: its hosts file would lack the pod."""
    told: list[tuple[str, ...]] = []

    class Noting(PlainConfiguration):
        def container(
            self, record: PodRecord, container: Container, attempt: int, image_id: str, report: PodReport, /
        ) -> ContainerConfig:
            told.append(report.ips)
            return super().container(record, container, attempt, image_id, report)

    node = Node(configuring=Noting())
    plain, asked = node.runtime.inspect, list[str]()

    def inspect(uid: str, listed: PodListing | None = None, /) -> PodReport:
        if listed is None:
            asked.append(uid)
            if len(asked) == 1:
                raise RuntimeUnavailableError("PodSandboxStatus", "the same call has not returned yet")
        return plain(uid, listed)

    monkeypatch.setattr(node.runtime, "inspect", inspect)
    node.lives.put(pod())
    node.after(10)
    assert node.running() == ["app#0"]
    assert told == [("10.0.0.1",)]


def test_what_cannot_be_made_for_long_is_tried_as_often_as_by_a_kubelet() -> None:
    """Each 10 to 15 s: whoever writes the config map that was missing does not wait for two minutes more."""

    class Failing(PlainConfiguration):
        def sandbox(self, pod: Pod, attempt: int, provided: Mapping[str, object], /) -> SandboxConfig:
            if node.clock.monotonic_s() < 1300:
                raise LookupError("no network yet")
            return super().sandbox(pod, attempt, provided)

        def container(
            self, record: PodRecord, container: Container, attempt: int, image_id: str, report: PodReport, /
        ) -> ContainerConfig:
            if node.clock.monotonic_s() < 1600:
                raise LookupError("config map web is not there")
            return super().container(record, container, attempt, image_id, report)

    node = Node(configuring=Failing())
    node.lives.put(pod())
    node.after(315, step_s=0.5)
    assert any(one.startswith("run_sandbox") for one in node.calls())
    node.after(300, step_s=0.5)
    assert node.running() == ["app#0"]


@pytest.mark.parametrize("error", [RuntimeError("no shell"), CancelledError()])
def test_a_hook_that_cannot_be_run_has_failed(error: Exception) -> None:
    """A pre-stop hook that raises holds nothing up."""

    def answer(_: object) -> str:
        raise error

    node = Node()
    node.hooks.answer = answer
    node.lives.put(pod(containers=[attrs.evolve(APP, lifecycle=Lifecycle(pre_stop=HOOK))], grace_s=10))
    node.after(1)
    node.lives.heard()
    node.lives.remove("u")
    node.after(12)
    assert "u" not in node.lives.pods


def test_a_startup_probe_that_fails_gives_its_own_grace() -> None:
    """The container has as long as the probe says."""
    probe = Probe(exec=ExecAction(command=("true",)), termination_grace_period_seconds=7)
    node = Node()
    node.lives.put(pod(containers=[attrs.evolve(APP, startup_probe=probe)]))
    node.after(1)
    node.verdicts.put("u", Verdicts(started={node.id_of("app"): False}))
    node.after(1)
    assert [grace_s for _, grace_s in node.stops] == [7.0]
    assert node.running() == ["app#1"]


def test_a_sandbox_of_the_wrong_network_is_ended_before_the_right_one_is_made() -> None:
    """An edit moves the pod to the node's network; never are two sandboxes ready."""
    node = Node()
    node.lives.put(pod(policy=RestartPolicy.ALWAYS))
    node.after(1)
    node.lives.put(pod(host_network=True))
    node.after(2)
    boxes = [(one.record.attempt, one.record.is_ready) for one in node.runtime.inspect("u").sandboxes]
    assert (boxes, node.running()) == ([(1, True), (0, False)], ["app#1"])


def test_an_uncertain_call_of_a_preparer_is_asked_again() -> None:
    """It may have been done, and being asked twice is what preparers are made for."""
    answers = iter([UncertainError("the connection broke"), None])

    def answer(_: Pod) -> Provided:
        error = next(answers)
        if error is not None:
            raise error
        return Provided(value=None)

    node = Node(preparations=[Preparation(name="devices", why="", by=FakePreparer(answer=answer))])
    node.lives.put(pod())
    node.after(5)
    assert node.running() == ["app#0"]


def test_a_sandbox_that_somebody_else_made_is_not_made_twice() -> None:
    """Its name is reserved: the listing shows it, and it is used."""
    node = Node()
    identity = PodIdentity(uid="u", namespace="default", name="web-u")
    node.runtime.run_sandbox(SandboxConfig(pod=identity, hostname="web-u"))
    node.lives.put(pod())
    node.after(2)
    assert (len(node.runtime.inspect("u").sandboxes), node.running()) == (1, ["app#0"])


def test_facts_are_derived_and_nothing_is_done_for_them() -> None:
    """Whoever would perform a step of theirs is told so."""
    from nodealloc.podlife._facts import Facts

    derived = Facts(None)  # type: ignore[arg-type]
    step: Step[None] = Step(scope=("u",), verb="tell", detail=None)
    with pytest.raises(RuntimeError, match="nothing is done"):
        derived.perform(step, None)  # type: ignore[arg-type]
    assert derived.settled(None, step, None) is None  # type: ignore[arg-type]


def test_a_file_that_something_is_mounted_on_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel says busy; any other fault comes out as it is, and who was faster is no fault."""
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "hosts").write_text("")
    folders = PodFolders(str(tmp_path))
    (found,) = folders.found()

    def unlink(errno: int) -> None:
        def fail(*_: object, **_options: object) -> None:
            raise OSError(errno, os.strerror(errno))

        monkeypatch.setattr("nodealloc.podlife._pod_folders.os.unlink", fail)

    unlink(16)
    with pytest.raises(MountInTheWayError, match="hosts"):
        folders.remove(found)
    unlink(5)
    with pytest.raises(OSError, match="Input/output"):
        folders.remove(found)
    unlink(2)
    with pytest.raises(OSError, match="not empty"):
        folders.remove(found)


@pytest.mark.parametrize("verb", ["start", "run sandbox", "pull", "make ready cgroup"])
def test_what_comes_to_its_turn_after_the_end_was_asked_for_makes_nothing(verb: str) -> None:
    """It was asked to stop before it had begun, and looks."""
    part = FakePreparer()
    node = Node(preparations=[Preparation(name="cgroup", why="", by=part)])
    node.executor.held.add(verb)
    node.lives.put(pod(containers=[attrs.evolve(APP, image="other")]))
    node.after(1)
    made = [one for one in node.calls() if not one.startswith("pull")]
    node.lives.remove("u", grace_s=1)
    node.after(0.5)
    node.executor.held.clear()
    node.executor.parked.pop()()
    node.after(5)
    later = [one for one in node.calls() if not one.startswith("pull")][len(made) :]
    assert [one for one in later if one.startswith(("run_sandbox", "create", "start"))] == []
    assert ("u" in node.lives.pods, part.there) == (False, set())


@pytest.mark.parametrize(
    ("call", "reason"),
    [("create_container", "CreateContainerError"), ("start_container", "RunContainerError")],
)
def test_why_a_container_does_not_start_is_told_in_the_runtimes_own_words(call: str, reason: str) -> None:
    """Without the name of the call and its status: the words are what people look for."""
    node = Node()
    node.runtime.fail(call, RuntimeRefusedError(call, "UNKNOWN", 'exec: "/nope": no such file'), times=9)
    node.lives.put(pod())
    node.after(1)
    facts = node.lives.facts.get("u")
    assert facts is not None
    waiting = facts.containers["app"].waiting
    assert waiting is not None
    assert (waiting.reason, waiting.message) == (reason, 'exec: "/nope": no such file')
