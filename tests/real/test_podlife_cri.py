"""Pods on a real containerd: they run, outlive their agent, end in time. `nox -s cri` runs these."""

from __future__ import annotations

import itertools
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import attrs
import pytest

from nodealloc.checkpoint import JsonCheckpoint, rows_of
from nodealloc.cri import CriDeadlines, CriRuntime
from nodealloc.dsw_asw import Group, Moment
from nodealloc.podfacts import LifeState
from nodealloc.podlife import POD_ROWS, LifePolicy, PodLives, record_from_checkpoint
from nodealloc.podspec import Container, ExecAction, Lifecycle, LifecycleHandler, Pod, RestartPolicy
from nodealloc.runtime import (
    RUNTIME_ROWS,
    Pace,
    RunState,
    RuntimeWatch,
    SandboxConfig,
    pod_from_checkpoint,
)
from nodealloc.testing.dsw_asw import MemoryJournal
from nodealloc.testing.podlife import PlainConfiguration
from tests.real.podlife_killed import Life, calls_of, check_all, many_moments, moments

pytestmark = [pytest.mark.cri]

VERSION = os.environ.get("NODEALLOC_CRI_VERSION", "")
if VERSION:
    from tests.cri.containerd import Containerd, running
else:
    pytest.skip("needs a containerd of its own: nox -s cri", allow_module_level=True)

ROOT: Final = Path(os.environ["NODEALLOC_CRI_ROOT"])
FOLDER: Final = Path(os.environ["NODEALLOC_CRI_FOLDER"])
CGROUPS: Final = os.environ["NODEALLOC_CRI_CGROUPS"]
IMAGE: Final = "localhost/busybox:1"
NUMBERS = itertools.count()


class Configuration(PlainConfiguration):
    """In a cgroup of these tests."""

    def sandbox(self, pod: Pod, attempt: int, provided: Mapping[str, object], /) -> SandboxConfig:
        """See `Configures.sandbox`."""
        made = super().sandbox(pod, attempt, provided)
        return attrs.evolve(
            made,
            cgroup_parent=f"/{CGROUPS}/{pod.uid}",
            log_directory=str(FOLDER / "logs" / pod.uid),
        )


def connected(socket: str) -> CriRuntime:
    """The adapter, with deadlines that a test can wait for."""
    return CriRuntime(socket, deadlines=CriDeadlines(look_s=20.0, change_s=60.0, pull_s=60.0))


class Node:
    """A runtime, a journal, and the agent that runs now, with a connection of its own."""

    def __init__(self, socket: str) -> None:
        self.socket = socket
        self.runtime = connected(socket)
        self.agents: list[CriRuntime] = []
        self.journal: MemoryJournal[JsonCheckpoint] = MemoryJournal()
        self.start()

    def start(self) -> None:
        """A new agent, with what the journal remembers."""
        rows, now = self.journal.rows, Moment.now()
        runtime = connected(self.socket)
        self.agents.append(runtime)
        self.watch = RuntimeWatch(
            runtime,
            events=runtime,
            journal=self.journal,
            known=rows_of(RUNTIME_ROWS, rows, pod_from_checkpoint),
            pace=Pace(period_s=0.5, gap_s=0.05),
        )
        self.lives = PodLives(
            runtime,
            watch=self.watch,
            configuring=Configuration(),
            journal=self.journal,
            remembered=rows_of(POD_ROWS, rows, lambda row: record_from_checkpoint(row, now)),
            policy=LifePolicy(call_s=60),
        )
        self.group = Group(self.watch, self.lives)
        self.group.start()

    def kill(self) -> None:
        """The agent goes, without a word to anybody; what it began may still come to an end."""
        self.group.stop(0.0)

    def running(self, uid: str) -> list[str]:
        """`name#attempt` of what runs, in order."""
        found = self.runtime.inspect(uid).containers
        return sorted(
            f"{one.record.name}#{one.record.attempt}" for one in found if one.record.state is RunState.RUNNING
        )

    def until(self, is_so: Callable[[], bool], what: str, within_s: float = 60.0) -> float:
        """Wait until something is so; how long that took."""
        began_s = time.monotonic()
        while not is_so():
            if time.monotonic() > began_s + within_s:
                told = [
                    f"{uid} {record.value.life.value}: {[*map(str, self.lives.failures(uid))]}"
                    for uid, record in self.lives.pods.snapshot().items()
                ]
                raise AssertionError(f"{what}: not within {within_s:g} s; {'; '.join(told)}")
            time.sleep(0.05)
        return time.monotonic() - began_s

    def is_gone(self, uid: str) -> bool:
        """Nothing of a pod is left, neither here nor in the runtime."""
        return uid not in self.lives.pods and uid not in self.runtime.listing().pods


@pytest.fixture(scope="module")
def containerd() -> Iterator[Containerd]:
    """One daemon for all tests."""
    with running(ROOT, FOLDER / "podlife", VERSION) as one:
        yield one


@pytest.fixture
def node(containerd: Containerd) -> Iterator[Node]:
    """An agent over it; every pod is gone afterwards."""
    made = Node(str(containerd.socket))
    yield made
    made.group.stop()
    runtime = made.runtime
    for pod in runtime.listing().pods.values():
        for sandbox in pod.sandboxes:
            runtime.stop_sandbox(sandbox.id)
            runtime.remove_sandbox(sandbox.id)
    for one in (runtime, *made.agents):
        one.close()


def sleeper(name: str = "app", script: str = "exec sleep 1000") -> Container:
    """A container that sleeps; as the first process of its own it hears TERM only if it says so."""
    return Container(name=name, image=IMAGE, entrypoint=("sh", "-c", script))


def pod(*containers: Container, **more: object) -> Pod:
    """With a uid that nobody had."""
    number = next(NUMBERS)
    fields: dict[str, object] = {
        "name": f"web{number}",
        "host_network": True,
        "termination_grace_period_seconds": 2,
        **more,
    }
    return Pod(uid=f"life{number}-{os.getpid()}", containers=containers, **fields)  # type: ignore[arg-type]


def test_a_pod_runs_outlives_its_agent_and_ends(node: Node) -> None:
    """The same containers run on under the next agent, none is made twice, and nothing is left in the end."""
    web = pod(sleeper(), init_containers=(sleeper("setup", "exit 0"),))
    node.lives.put(web)
    node.until(lambda: node.running(web.uid) == ["app#0"], "the pod runs")
    before = {one.record.id for one in node.runtime.inspect(web.uid).containers}
    node.kill()
    node.start()
    node.lives.put(web)
    node.lives.heard()
    time.sleep(2)
    assert {one.record.id for one in node.runtime.inspect(web.uid).containers} == before
    assert node.running(web.uid) == ["app#0"]
    node.lives.remove(web.uid)
    node.until(lambda: node.is_gone(web.uid), "the pod is gone")
    assert node.journal.rows == {}
    procs = Path("/sys/fs/cgroup").glob(f"**/{CGROUPS}/{web.uid}/**/cgroup.procs")
    assert [one for one in procs if one.read_text().strip()] == []


def test_an_agent_that_is_killed_while_pods_start_makes_none_twice(node: Node) -> None:
    """At several moments of the start; each container was made once, with the attempt 0."""
    pods = [pod(sleeper(), sleeper("side")) for _ in range(4)]
    for number, one in enumerate(pods):
        node.lives.put(one)
        time.sleep(0.05 * (number + 1))
        node.kill()
        node.start()
        for other in pods[: number + 1]:
            node.lives.put(other)
    for one in pods:
        node.until(lambda uid=one.uid: node.running(uid) == ["app#0", "side#0"], "all run")  # type: ignore[misc]
        assert len(node.runtime.inspect(one.uid).containers) == 2


def test_a_container_that_ends_starts_again_and_a_job_finishes(node: Node) -> None:
    """By the pod's restart policy; how it ended is known."""
    again = pod(sleeper(script="sleep 0.2; exit 3"), restart_policy=RestartPolicy.ON_FAILURE)
    job = pod(sleeper(script="exit 0"), restart_policy=RestartPolicy.ON_FAILURE)
    node.lives.put(again)
    node.lives.put(job)

    def finished() -> bool:
        record = node.lives.pods.get(job.uid)
        return record is not None and record.life is LifeState.FINISHED

    node.until(finished, "the job finishes")

    def restarts() -> int:
        facts = node.lives.facts.get(again.uid)
        return 0 if facts is None or "app" not in facts.containers else facts.containers["app"].restart_count

    node.until(lambda: restarts() >= 1, "it starts again")


def test_a_shorter_grace_is_kept_though_a_hook_and_a_process_do_not_listen(node: Node) -> None:
    """The hook sleeps, TERM is ignored, the first grace is an hour: the pod is gone soon after the second."""
    hook = LifecycleHandler(exec=ExecAction(command=("sleep", "600")))
    deaf = attrs.evolve(
        sleeper(script="trap '' TERM; while true; do sleep 1; done"), lifecycle=Lifecycle(pre_stop=hook)
    )
    web = pod(deaf, termination_grace_period_seconds=3600)
    node.lives.put(web)
    node.until(lambda: node.running(web.uid) == ["app#0"], "the pod runs")
    node.lives.remove(web.uid)
    time.sleep(1)
    assert node.running(web.uid) == ["app#0"]
    node.lives.remove(web.uid, grace_s=2)
    assert node.until(lambda: node.running(web.uid) == [], "the container ends") < 10
    node.until(lambda: node.is_gone(web.uid), "the pod is gone")


def test_what_only_the_runtime_knows_is_ended(node: Node) -> None:
    """Its records go as well; nothing happens before every source was heard."""
    web = pod(sleeper(script="trap 'exit 0' TERM; while true; do sleep 0.1; done"))
    node.lives.put(web)
    node.until(lambda: node.running(web.uid) == ["app#0"], "the pod runs")
    node.kill()
    node.journal.rows.clear()
    node.start()
    time.sleep(1)
    assert node.running(web.uid) == ["app#0"]
    node.lives.heard()
    node.until(lambda: node.is_gone(web.uid), "the orphan is gone", within_s=90)


def killed(
    socket: str, name: str, choose: Callable[[int, int], list[tuple[int, bool]]], every: int
) -> list[Life]:
    """An agent that is killed at every so many of its calls, before and after; each with a pod of its own."""
    top = Path(tempfile.mkdtemp(dir=FOLDER, prefix=f"killed-{name}-"))
    whole = Life(
        folder=top / "whole",
        uid=f"{name}-{next(NUMBERS)}-{os.getpid()}",
        image=IMAGE,
        socket=socket,
        cgroups=CGROUPS,
    )
    count = calls_of(whole)
    assert count > 20, "the story is too short to be one"
    return [
        attrs.evolve(
            whole,
            folder=top / f"{at}-{late:d}",
            uid=f"{name}{at}{late:d}-{next(NUMBERS)}-{os.getpid()}",
            at=at,
            late=late,
        )
        for at, late in choose(count, every)
    ]


def test_killed_now_and_then_each_container_ran_once(containerd: Containerd) -> None:
    """By SIGKILL: no init container runs again, no attempt starts twice, no grace begins anew."""
    check_all(killed(str(containerd.socket), "some", moments, 24))


@pytest.mark.slow
@pytest.mark.skipif("CI" in os.environ, reason="minutes: nox -s cri has it")
def test_killed_at_many_calls_each_container_ran_once(containerd: Containerd) -> None:
    """At every other one, and in `nox -s kills` at every one."""
    lives = killed(str(containerd.socket), "most", many_moments, 2)
    check_all(lives)
    print(f"killed at {len(lives)} moments")
