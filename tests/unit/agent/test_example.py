"""What the example agent says by itself."""

from __future__ import annotations

import argparse
import errno
import json
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from examples.agent import build
from examples.agent.__main__ import _runtime as runtime_of
from examples.agent.__main__ import _store as store_of
from examples.agent.__main__ import options, run
from examples.agent.build import node_of
from examples.agent.place import Place
from examples.agent.saying import ProbeEvents, SaidHooks, Waits, say_outages
from examples.agent.simulated import agent
from examples.agent.state_file import check_state_files, link_state_files
from nodealloc.agent import AGENT_FORMATS, AdmissionPreparer, Agent
from nodealloc.cgroups import CgroupName, Layout, Limits, stand_in
from nodealloc.checkpoint import CPU_STATE, MEMORY_STATE, FileStore, JsonCheckpoint, MemoryStore
from nodealloc.cri import CriRuntime
from nodealloc.dsw_asw import Failure, InlineExecutor, World
from nodealloc.errors import ConfigurationError, DecodeError
from nodealloc.kubeconfig import KubeletConfig, NodePlan, kubelet_config
from nodealloc.machine import machine_from_text
from nodealloc.node import NodeAllocator
from nodealloc.podfacts import EventKind, LifeState, PodEvent, PodIdentity
from nodealloc.podlife import Ending, EndingKind, HookCall, PodFacts, PodLives, SecretCredentials
from nodealloc.podspec import Container, ExecAction, Lifecycle, LifecycleHandler, Pod, resources
from nodealloc.runtime import PodKnown, PodReport, RuntimeWatch
from nodealloc.testing.dsw_asw import ManualCancel, VirtualClock
from nodealloc.testing.podlife import FakeHooks
from nodealloc.testing.runtime import FakeContainerRuntime
from nodealloc.testing.simulation.node import NodeSimulation
from nodealloc.testing.volume_sources import FakeConfigSource
from nodealloc.topology import Placed
from nodealloc.verdicts import NotYet
from nodealloc.volumes.plugins import PodObjects


def test_an_outage_of_the_runtime_is_said_once_and_its_end_too() -> None:
    """Also one from the start: nothing else tells why no pod comes to run."""
    runtime, clock = FakeContainerRuntime(), VirtualClock()
    said: list[str] = []
    watch = RuntimeWatch(runtime, executor=InlineExecutor(), clock=clock)
    say_outages(watch, said.append)

    def listed_twice() -> None:
        for _ in range(2):
            clock.advance(60.0)
            watch.run_until_quiet()

    runtime.go_away("/run/x.sock: nothing is there")
    listed_twice()
    runtime.restart()
    listed_twice()
    runtime.go_away("/run/x.sock: nobody listens there")
    listed_twice()
    (first, back, again) = said
    assert first.startswith("runtime: ")
    assert "/run/x.sock: nothing is there; it is asked again until it answers" in first
    assert back == "runtime: it answers again"
    assert "/run/x.sock: nobody listens there" in again


def test_what_a_pod_waits_for_is_said_once_it_lasts() -> None:
    """A volume that cannot be mounted was told nowhere: its pod was Pending, without a reason."""
    facts: World[str, PodFacts] = World("facts")
    said: list[str] = []
    waits = Waits(facts, lambda _: (), said.append)

    def looks(message: str | None, life: LifeState = LifeState.SYNCING) -> list[str]:
        found = None if message is None else NotYet(blocker="volumes", message=message)
        pod = Pod(uid="u", name="web", namespace="shop")
        facts.put("u", PodFacts(pod=pod, life=life, waits_for=found), by="test")
        said.clear()
        waits.look()
        return list(said)

    assert looks("not mounted yet: moment") == looks(None) == []  # as at the start of most pods
    assert looks("not mounted yet: data (no such folder (1 try))") == []
    named = "pod shop/web waits for volumes: not mounted yet: data (no such folder)"
    assert looks("not mounted yet: data (no such folder (2 tries))") == [named]
    assert looks("not mounted yet: data (no such folder (3 tries))") == []
    assert looks("not mounted yet: data (no disk (4 tries))") == [named.replace("such folder", "disk")]
    assert looks(None) == ["pod shop/web goes on"]
    assert looks("still mounted", LifeState.TERMINATED) == []
    assert looks("still mounted", LifeState.TERMINATED) == ["pod shop/web waits for volumes: still mounted"]
    assert looks(None, LifeState.TERMINATED) == []  # it has ended
    looks("not mounted yet: data")
    facts.drop("u", by="test")
    waits.look()
    assert said == []  # of a pod that is gone nothing is said


def test_steps_of_a_pod_that_fail_are_said_where_its_status_has_nothing() -> None:
    """A sandbox that could not be had was told nowhere either; a container is told of by the status."""
    facts: World[str, PodFacts] = World("facts")
    facts.put("u", PodFacts(pod=Pod(uid="u", name="web"), life=LifeState.SYNCING), by="test")
    said: list[str] = []
    failed = [
        Failure(scope=("pod", "u", scope), verb=verb, subject=0, error=OSError("no"), tries=tries, due_s=1.0)
        for scope, verb, tries in (
            ("sandbox", "run sandbox", 2),
            ("start", "start", 2),
            ("parts", "make ready volumes", 2),
            ("kill", "kill", 1),
        )
    ]
    waits = Waits(facts, lambda _: failed, said.append)
    waits.look()
    waits.look()
    waits.look()
    assert said == ["pod default/web cannot run sandbox: no"]
    failed.clear()
    waits.look()
    assert said[1:] == ["pod default/web goes on"]


def test_a_pod_of_which_the_runtime_does_not_say_how_it_is_is_said() -> None:
    """It ended, nothing started it again, and nobody was told why."""
    facts: World[str, PodFacts] = World("facts")
    facts.put("u", PodFacts(pod=Pod(uid="u", name="web"), life=LifeState.SYNCING), by="test")
    watched: World[str, PodKnown] = World("runtime pods")
    said: list[str] = []
    waits = Waits(facts, lambda _: (), said.append, watched=watched)
    watched.put("u", PodKnown(uid="u", fault="ContainerStatus: BAD ANSWER: c: state 55"), by="test")
    waits.look()
    assert said == []  # the next answer may be a better one
    waits.look()
    waits.look()
    why = "ContainerStatus: BAD ANSWER: c: state 55"
    assert said == [f"pod default/web is left as it is while the runtime does not say how it is: {why}"]
    watched.put("u", PodKnown(uid="u"), by="test")
    waits.look()
    assert said[1:] == ["pod default/web goes on"]


def test_the_agent_says_what_its_pods_wait_for() -> None:
    """Its passes look as time goes on; in a life in which nothing waits, nothing is said of it."""

    def waited_in(seed: int) -> bool:
        said: list[str] = []
        with NodeSimulation(seed, partial(agent, say=said.append)) as node:
            node.run()
        return any(" waits for " in one for one in said)

    assert any(map(waited_in, range(8)))


def test_who_makes_room_says_whether_there_is_such_a_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that nobody ends is not counted as ending: whoever comes in later would wait for it."""
    ends: list[Callable[[str, Ending], object]] = []

    def caught(
        node: NodeAllocator, *, end: Callable[[str, Ending], object], **parts: Any
    ) -> AdmissionPreparer:
        ends.append(end)
        return AdmissionPreparer(node, end=end, **parts)

    monkeypatch.setattr("examples.agent.wiring.AdmissionPreparer", caught)
    with NodeSimulation(0, agent) as node:
        node.run()
    assert ends[0]("nobody", Ending(kind=EndingKind.EVICTED)) is False


def test_a_hook_that_fails_is_said() -> None:
    """Its container was stopped, and started again so soon that no status told why."""
    post, pre = (LifecycleHandler(exec=ExecAction(command=(name,))) for name in ("warm", "bye"))
    app = Container(name="app", lifecycle=Lifecycle(post_start=post, pre_stop=pre))
    said: list[str] = []
    hooks = SaidHooks(FakeHooks(answer=lambda one: "exit 5:\n no" if one.timeout_s < 9 else ""), said.append)
    pod = Pod(uid="u", name="web", namespace="shop", containers=(app,))
    for handler, timeout_s in ((post, 9.0), (post, 8.0), (pre, 8.0)):
        call = HookCall(
            pod=pod,
            container=app,
            container_id="c",
            handler=handler,
            timeout_s=timeout_s,
            report=PodReport(uid="u"),
        )
        assert bool(hooks.run_hook(call, ManualCancel())) is (timeout_s < 9)
    assert said == [
        "pod shop/web: the post-start hook of app failed, so that it is stopped: exit 5: no",
        "pod shop/web: the pre-stop hook of app failed: exit 5: no",
    ]


def test_a_probe_that_fails_is_said_once() -> None:
    """Why a container is not ready, or was started again, was told nowhere."""
    said: list[str] = []
    now = [0.0]
    events = ProbeEvents(said.append, now_s=lambda: now[0])

    def comes(message: str, *, after_s: float, uid: str = "u") -> list[str]:
        said.clear()
        now[0] += after_s
        pod = PodIdentity(uid=uid, namespace="shop", name="web")
        events.told(
            PodEvent(pod=pod, kind=EventKind.WARNING, reason="Unhealthy", message=message, container="app")
        )
        return list(said)

    assert comes("Liveness probe failed: HTTP 500:\nno", after_s=1) == [
        "pod shop/web: app: Liveness probe failed: HTTP 500: no"
    ]
    assert comes("Liveness probe failed: HTTP 500:\nno", after_s=50) == []
    assert comes("Liveness probe failed: HTTP 500:\nno", after_s=50) == []
    assert len(comes("Liveness probe failed: HTTP 503", after_s=0)) == 1
    assert len(comes("Liveness probe failed: HTTP 503", after_s=0, uid="v")) == 1
    assert comes(f"exec {'a1' * 32} failed", after_s=0) != comes(f"exec {'b2' * 32} failed", after_s=0) == []
    assert len(comes("Liveness probe failed: HTTP 503", after_s=61)) == 1


@pytest.mark.parametrize("has_secrets", [True, False])
def test_images_are_fetched_as_the_secrets_of_pods_say(
    monkeypatch: pytest.MonkeyPatch, *, has_secrets: bool
) -> None:
    """Where there are secrets to ask for: whoever joins the agent to an API server has them."""
    given: list[object] = []

    def lives(*args: Any, **options: Any) -> PodLives:
        given.append(options.get("credentials"))
        return PodLives(*args, **options)

    objects = PodObjects(secrets=FakeConfigSource() if has_secrets else None)
    monkeypatch.setattr("examples.agent.wiring.PodLives", lives)
    monkeypatch.setattr("examples.agent.simulated.Place", partial(Place, objects=objects))
    with NodeSimulation(0, agent) as node:
        node.built()
        assert [isinstance(one, SecretCredentials) for one in given] == [has_secrets]


def test_the_runtime_has_as_long_as_the_configuration_says(tmp_path: Path) -> None:
    """A call that takes five minutes where ten are given is not taken for lost after four."""
    config = kubelet_config({"runtimeRequestTimeout": "10m"})
    chosen = argparse.Namespace(runtime="containerd")
    made, _ = runtime_of(chosen, config, tmp_path, Layout(mounts=()))
    assert isinstance(made, CriRuntime)
    assert (made._deadlines.look_s, made._deadlines.change_s) == (600.0, 1200.0)
    made.close()


def test_a_kubelets_own_configuration_is_read_with_its_drop_ins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What nothing here acts upon is refused by name, or said by name where that is asked for."""
    kind = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    path, folder = tmp_path / "kubelet.yaml", tmp_path / "kubelet.conf.d"
    folder.mkdir()
    path.write_text(json.dumps({**kind, "maxPods": 10, "rotateCertificates": True, "cgroupRoot": "/na"}))
    (folder / "10-more.conf").write_text(json.dumps({**kind, "maxPods": 20}))
    words = ["agent", "--config", str(path), "--config-dir", str(folder), "--root", str(tmp_path / "root")]
    words += ["--machine", "1 socket x 2 cores, memory=4Gi", "--runtime", "processes"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(DecodeError, match="rotateCertificates"):
        run(options())
    assert not (tmp_path / "root").exists()
    read: list[int] = []

    def wiring(config: KubeletConfig, *_: object) -> Agent:
        read.append(config.max_pods)
        raise ConfigurationError("that will do")

    monkeypatch.setattr(sys, "argv", [*words, "--leave-out"])
    with pytest.raises(ConfigurationError, match="that will do"):
        run(options(), wiring)
    assert read == [20]
    said = "left out: $.rotateCertificates is not supported: nothing here acts upon it yet"
    assert said in capsys.readouterr().out.splitlines()


Fields = Mapping[str, object]


def plan_of(fields: Fields) -> NodePlan:
    """Of a node of four CPUs."""
    return NodePlan.of(
        kubelet_config(fields, source="a test"),
        machine_from_text("1 socket x 4 cores, memory=8Gi"),
        name="n1",
        capacity=resources({"cpu": 4, "memory": "8Gi", "ephemeral-storage": "1Gi", "pid": 1 << 15}),
        kernel="6.1.0",
    )


@pytest.mark.parametrize("version", [2, 7])
def test_grants_of_a_later_release_are_not_given_twice(version: int) -> None:
    """An agent that was set back took them for lost, and gave out CPUs on which containers still ran."""
    plan = plan_of({"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"})
    own = resources({"cpu": 2, "memory": "1Gi"})
    app = Container(name="app", image="x", requests=own, limits=own)
    store = MemoryStore(AGENT_FORMATS)
    node = node_of(plan, store)
    assert isinstance(node.admit(Pod(uid="db", name="db", containers=(app,))), Placed)
    (row,) = store.read().rows("workload.", JsonCheckpoint).values()
    store.commit({"workload.db": JsonCheckpoint(kind=row.kind, version=version, value=row.value)})
    later = MemoryStore(AGENT_FORMATS, data=store.data())
    words = f"workload.db: .*version {version}; start the version that wrote it"
    with pytest.raises(ConfigurationError, match=words):
        node_of(plan, later)
    assert later.data() == store.data()


OWN_MEMORY = {
    "memoryManagerPolicy": "Static",
    "systemReserved": {"cpu": "100m"},
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "100Mi"}}],
    "evictionHard": {"memory.available": "100Mi"},
}
MORE_KEPT = {
    **OWN_MEMORY,
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "200Mi"}}],
    "evictionHard": {"memory.available": "200Mi"},
}
OWN_CPUS = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}


@pytest.mark.parametrize(
    ("first", "then", "file", "words"),
    [
        (OWN_CPUS, {}, CPU_STATE, "cpuManagerPolicy was 'static' before, and is 'none'; bring it back, or"),
        (OWN_CPUS, {**OWN_CPUS, "reservedSystemCPUs": "1"}, CPU_STATE, "CPUs 1 are reserved, and were given"),
        (OWN_MEMORY, {}, MEMORY_STATE, "memoryManagerPolicy was 'Static' before, and is 'None'; bring it"),
        ({}, OWN_MEMORY, MEMORY_STATE, "memoryManagerPolicy was 'None' before, and is 'Static'; bring it"),
        (OWN_MEMORY, MORE_KEPT, MEMORY_STATE, "reservedMemory: the memory of the machine, or what is kept"),
    ],
)
def test_by_a_kubelets_rules_an_agent_is_started_as_before_until_its_state_file_is_gone(
    tmp_path: Path, first: Fields, then: Fields, file: str, words: str
) -> None:
    """A kubelet does not start otherwise; by ours an agent moves what runs, and says so."""
    root, data = tmp_path, tmp_path / "checkpoint"
    plan = plan_of(first)
    with FileStore(data, AGENT_FORMATS) as store:
        check_state_files(root, plan.empty)
        node = node_of(plan, store, files=("cpu", "memory"))
        link_state_files(root)
        own = resources({"cpu": 3, "memory": "1Gi"})
        app = Container(name="app", image="x", requests=own, limits=own)
        assert isinstance(node.admit(Pod(uid="db", name="db", containers=(app,))), Placed)
    check_state_files(root, plan.empty)
    now = plan_of(then).empty
    with pytest.raises(ConfigurationError, match=words):
        check_state_files(root, now)
    (root / file).unlink()
    check_state_files(root, now)
    (root / file).write_text("{")
    with pytest.raises(ConfigurationError, match=f"{root / file}: .*; take the file away"):
        check_state_files(root, now)
    link_state_files(root)
    assert not (root / file).is_symlink()


@pytest.mark.parametrize(("first", "then"), [("files", "sqlite"), ("sqlite", "files")])
def test_another_kind_of_store_forgets_nothing(tmp_path: Path, first: str, then: str) -> None:
    """With the other option an agent began with nothing beside all that the one before had remembered."""
    row = JsonCheckpoint(kind="workload", version=1, value={})
    with store_of(tmp_path, first) as store:
        store.commit({"workload.db": row})
    before = sorted(tmp_path.rglob("*"))
    words = rf"--store {then}: {tmp_path}/checkpoint\S* .* give --store {first}, or .*checkpoint convert"
    with pytest.raises(ConfigurationError, match=words):
        store_of(tmp_path, then)
    assert sorted(tmp_path.rglob("*")) == before
    with store_of(tmp_path, first) as store:
        assert store.read().values == {"workload.db": row}


def test_a_root_that_cannot_be_written_is_named_for_another_machine_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands in for its cgroups is the first thing that is made there; its error named no option."""
    config = tmp_path / "kubelet.yaml"
    kind = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
    config.write_text(f"{kind}staticPodPath: {tmp_path}\n")
    root = tmp_path / "root"
    root.mkdir()
    (root / "cgroup").write_text("in the way")
    words = ["agent", "--config", str(config), "--root", str(root), "--machine", "4 cores"]
    monkeypatch.setattr(sys, "argv", words)
    said = rf"--root {root}: .*/\.cgroup-stand-in: Not a directory; name a folder"
    with pytest.raises(ConfigurationError, match=said):
        run(options())


def test_what_another_root_of_cgroups_leaves_behind_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pods of before stayed in a tree that nobody looks after any more, with limits of their own."""
    config, root = tmp_path / "kubelet.yaml", tmp_path / "root"
    words = ["agent", "--config", str(config), "--root", str(root)]
    words += ["--machine", "1 socket x 2 cores, memory=4Gi", "--runtime", "containerd"]
    monkeypatch.setattr(sys, "argv", words)

    def started(cgroup_root: str) -> list[str]:
        kind = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
        config.write_text(json.dumps({**kind, "cgroupRoot": cgroup_root}))

        def wiring(_config: KubeletConfig, plan: NodePlan, place: Place, *_: object) -> Agent:
            place.driver.apply(plan.tree.root, Limits())
            raise ConfigurationError("that will do")

        with pytest.raises(ConfigurationError, match="that will do"):
            run(options(), wiring)
        return [line for line in capsys.readouterr().out.splitlines() if line.startswith("cgroupRoot: ")]

    assert started("/one") == []
    assert started("/one") == []
    for _ in range(2):
        (said,) = started("/two")
        assert said.startswith("cgroupRoot: pods were below /one/kubepods, and are below /two/kubepods now")
    stand_in(root / "cgroup").remove(CgroupName.parse("/one/kubepods"))
    assert started("/two") == []
    (said,) = started("/one")
    assert "pods were below /two/kubepods" in said


def test_folders_are_looked_at_where_the_kernel_tells_of_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All agents and editors of a user share 128 instances; without one it did not start."""

    def none_left(_folder: str, *, below: bool) -> None:
        raise OSError(errno.EMFILE, f"{os.strerror(errno.EMFILE)}, below: {below}")

    monkeypatch.setattr(build, "InotifyWatcher", none_left)
    assert build.watcher_of(tmp_path) is None
    said = capsys.readouterr().out
    assert said.startswith(f"{tmp_path} is only looked at from time to time: ")
    assert "raise fs.inotify.max_user_instances" in said
