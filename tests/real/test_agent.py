"""The example agent on this machine: its demo, and what it says to bad input."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from examples.agent.node import empty_node
from examples.agent.outside import AgentProcess, clean, held, may_mount, mounts
from examples.agent.place import Place, find_place
from examples.agent.rebuild import adopt_running
from examples.agent.runtime import Process, ProcessRuntime
from nodealloc.cgroups import QosTree, TreeOptions, container_limits, container_name
from nodealloc.checkpoint import MemoryStore
from nodealloc.idset import CPUSet, NodeSet
from nodealloc.machine import Machine, discover, machine_from_text, machine_to_json
from nodealloc.node import FORMATS, NodeAllocator
from nodealloc.podspec import Pod
from nodealloc.testing.machine import write_sysfs
from nodealloc.topology import Owner
from nodealloc.volumes import LinuxMounter, SafeRoot

pytestmark = pytest.mark.real
ROOT = Path(__file__).parent.parent.parent
CGROUP = f"nodealloc-test-agent-{os.getpid()}"


def call(module: str, *arguments: object, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a module of the examples."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=timeout)


@pytest.mark.slow
@pytest.mark.parametrize("machine", [[], ["--machine", "chiplets"]])
def test_the_demo_goes_as_it_should(machine: list[str]) -> None:
    """Admitted, remembered, killed, gone on with, cleaned up: on this machine and on a synthetic one."""
    done = call("examples.agent.demo", *machine)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAIL" not in done.stdout
    assert "containers are confined by" in done.stdout


BROKEN = """
kind: Pod
metadata: {name: a}
spec:
  containers:
    - {name: c, resources: {requests: {cpu: "-1"}}}
    - {name: c, resources: {limits: {memory: 5Gb}, requests: {gpu: 1}}}
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BROKEN, ["negative", "not a quantity", "unknown resource", "is taken by", "$.spec.containers[1]"]),
        ("a: [", ["not YAML", "line"]),
        ("- 1\n- 2\n", ["expected a mapping"]),
        ("kind: Deployment\nmetadata: {name: a}\n", ["expected Pod"]),
        ("\x00", ["not YAML"]),
    ],
)
def test_bad_manifests_are_one_message_and_nothing_is_written(
    tmp_path: Path, text: str, words: list[str]
) -> None:
    """Every fault with its path, exit status 2, and no state folder."""
    pods, state = tmp_path / "pods", tmp_path / "state"
    pods.mkdir()
    (pods / "bad.yaml").write_text(text)
    done = call("examples.agent", "--pods", pods, "--state", state)
    assert done.returncode == 2
    assert [word for word in words if word not in done.stderr] == []
    assert "bad.yaml" in done.stderr
    assert not state.exists()


def test_a_folder_that_cannot_be_written_is_said_first(tmp_path: Path) -> None:
    """Before any pod is admitted."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "checkpoint").write_text("a file stands where the folder belongs")
    done = call("examples.agent", "--state", tmp_path / "state")
    assert done.returncode == 2
    assert "admitted" not in done.stdout
    assert "checkpoint" in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--machine", "3 turnips"], "turnips"),
        (["--reserved", "0-"], "decimal id"),
        (["--reserved", "0-4000"], "4000"),
        (["--policy", "strictest"], "strictest"),
        (["--pods", "/nonexistent"], "no such folder"),
    ],
)
def test_bad_options_are_named(tmp_path: Path, options: list[str], words: str) -> None:
    """Each ends in status 2 with the word that is wrong."""
    done = call("examples.agent", "--state", tmp_path / "state", *options)
    assert done.returncode == 2, done.stdout + done.stderr
    assert words in done.stderr


@pytest.mark.parametrize("form", ["tree", "json"])
def test_the_machine_may_be_a_captured_one(tmp_path: Path, form: str) -> None:
    """A folder with a sysfs tree, or a JSON file; unlike pods are then refused for its sake."""
    machine = machine_from_text("2 sockets x 4 cores x 2 threads, memory=1Gi")
    captured = tmp_path / "machine"
    if form == "tree":
        captured.mkdir()
        write_sysfs(machine, captured / "sys")
    else:
        captured.write_text(json.dumps(machine_to_json(machine)))
    pods = tmp_path / "pods"
    pods.mkdir()
    (pods / "huge.yaml").write_text(
        "metadata: {name: huge}\nspec: {containers: [{name: c, resources: {limits: {cpu: 9, memory: 1Mi}}}]}"
    )
    options = ["--pods", str(pods), "--state", str(tmp_path / "s"), "--machine", str(captured)]
    command = [sys.executable, "-u", "-m", "examples.agent", *options]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdout is not None
        said = ""
        for line in agent.stdout:
            said += line
            if line.startswith("settled"):
                break
        agent.terminate()
        assert agent.wait(20) == 0
    assert "TopologyAffinityError" in said
    assert "confine nobody" in said
    assert "16 CPUs" in said
    assert list((tmp_path / "s" / "containers").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("junk", [b"", b"garbage", b"{}"])
def test_a_damaged_record_moves_nobody(junk: bytes) -> None:
    """A record is destroyed while the agent is dead: its container stays on its CPUs."""
    with clean(CGROUP) as folder:
        pods, state = folder / "pods", folder / "state"
        shutil.copytree(ROOT / "examples" / "agent" / "pods", pods)
        for name in ("60-trainer.yaml", "70-cache.yaml"):
            (pods / name).unlink()
        options = ["--pods", str(pods), "--state", str(state), "--cgroup", CGROUP]
        first = AgentProcess(options, echo=False)
        first.wait_for("settled with 4 pods")
        before = held(state)
        first.end(signal.SIGKILL)
        (record,) = (state / "checkpoint").glob("workload.*0001")
        record.write_bytes(junk)
        second = AgentProcess(options, echo=False)
        said = "".join(second.wait_for("settled with 4 pods"))
        assert "damaged workload." in said
        assert "taken over where it runs" in said
        assert held(state) == before
        for manifest in pods.glob("*.yaml"):
            manifest.unlink()
        second.wait_for("settled with 0 pods")
        second.end(signal.SIGTERM)
        assert held(state) == {}


ALONE = Pod.from_manifest(
    {
        "metadata": {"name": "alone", "uid": "alone"},
        "spec": {"containers": [{"name": "app", "resources": {"limits": {"cpu": 1, "memory": "8Mi"}}}]},
    }
)


def running(runtime: ProcessRuntime, place: Place, cpus: CPUSet, mems: NodeSet) -> Process:
    """The container of `ALONE`, confined by the kernel."""
    QosTree(place.driver, TreeOptions(root=place.root)).reconcile([ALONE])
    cgroup = container_name(place.root, ALONE, ALONE.containers[0])
    place.driver.apply(cgroup, container_limits(ALONE.containers[0]))
    return runtime.start(
        Owner("alone", "app"),
        cgroup,
        ["sleep", "60"],
        {},
        lambda one: place.writer.write(place.target(cgroup, one.pid), cpus, mems),
    )


def adopt_on_the_last_node(machine: Machine) -> None:
    """A container runs on the highest CPU and NUMA node, and its record is damaged: it stays there."""
    cpus, mems = CPUSet.of(machine.cpus[-1].id), NodeSet.of(max(machine.nodes))
    with clean(CGROUP) as folder:
        state = folder / "state"
        place = find_place(CGROUP, state / "cgroup", real_machine=True)
        if not place.words.startswith("real cgroups"):
            pytest.skip(f"needs cgroups with cpusets: {place.words}")
        runtime = ProcessRuntime(state / "containers", place.driver)
        process = running(runtime, place, cpus, mems)
        empty = empty_node(machine, policy="best-effort", reserved=CPUSet.of(0))
        store = MemoryStore(FORMATS, data={"workload.alone": b"{"})
        node = NodeAllocator(empty, store, runtime=runtime)
        node.start()
        adopt_running(node, {"alone": ALONE}, runtime, place, print)
        confined = node.before_start(process.owner, process.container_id)
        runtime.stop(process)
        assert (confined.exclusive, confined.mems) == (cpus, mems)


def test_memory_nodes_are_read_back_after_damage(as_root: None) -> None:
    """From the container's cgroup, like its CPUs."""
    adopt_on_the_last_node(discover().machine)


@pytest.mark.vm
def test_memory_nodes_are_read_back_from_a_machine_with_four(as_root: None) -> None:
    """Where the rules of grants would have taken the first."""
    machine = discover().machine
    assert len(machine.nodes) == 4
    adopt_on_the_last_node(machine)


def started(folder: Path, command: str) -> tuple[ProcessRuntime, Process]:
    """A container that runs `command` in a shell, and says when it has come so far."""
    place = find_place(CGROUP, folder / "cgroup", real_machine=False)
    runtime = ProcessRuntime(folder / "containers", place.driver)
    QosTree(place.driver, TreeOptions(root=place.root)).reconcile([ALONE])
    cgroup = container_name(place.root, ALONE, ALONE.containers[0])
    place.driver.apply(cgroup, container_limits(ALONE.containers[0]))
    process = runtime.start(Owner("alone", "app"), cgroup, ["sh", "-c", command], {}, lambda _: None)
    log = folder / "containers" / "alone_app.log"
    until = time.monotonic() + 30
    while "started" not in log.read_text() and time.monotonic() < until:
        time.sleep(0.01)
    assert "started" in log.read_text()
    return runtime, process


def test_a_container_may_end_while_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look at it and the signal; another's child is reaped by others, at any time."""
    real = os.killpg

    def too_late(group: int, number: int) -> None:
        calls.append(number)
        real(group, signal.SIGKILL)
        os.waitpid(group, 0)
        until = time.monotonic() + 30
        while time.monotonic() < until:  # until nobody is left to be signalled
            real(group, signal.SIGKILL)
            time.sleep(0.001)

    calls: list[int] = []
    with clean(CGROUP) as folder:
        runtime, process = started(folder, "echo started; exec sleep 60")
        monkeypatch.setattr(os, "killpg", too_late)
        assert runtime.stop(process)
        monkeypatch.undo()
        assert calls == [signal.SIGTERM]
        assert runtime.processes() == []


def test_a_container_has_its_grace_period() -> None:
    """What it does at TERM is done to its end; how it ended is not taken for an end of its own."""
    with clean(CGROUP) as folder:
        trap = "trap 'sleep 0.1; echo saved; exit 0' TERM; echo started; while :; do sleep 0.02; done"
        runtime, process = started(folder, trap)
        assert runtime.stop(process, grace_s=30)
        assert "saved" in (folder / "containers" / "alone_app.log").read_text()
        assert runtime.exit_status(process.owner) is None
        assert runtime.processes() == []


def test_a_container_that_ignores_term_is_killed() -> None:
    """After its grace period."""
    with clean(CGROUP) as folder:
        runtime, process = started(folder, "trap '' TERM; echo started; while :; do sleep 0.02; done")
        assert runtime.stop(process, grace_s=0.1)
        assert runtime.processes() == []


def put(
    folder: Path, name: str, container: str, *, memory: str = "8Mi", command: str = "sleep, '60'"
) -> None:
    """A manifest of one container, as people edit it."""
    limits = f"{{cpu: 100m, memory: {memory}}}"
    spec = f"{{containers: [{{name: {container}, command: [{command}], resources: {{limits: {limits}}}}}]}}"
    (folder / f"{name}.new").write_text(f"metadata: {{name: {name}, uid: {name}}}\nspec: {spec}\n")
    (folder / f"{name}.new").rename(folder / f"{name}.yaml")


def test_one_pods_trouble_is_no_others() -> None:
    """Who cannot start waits, who asks for nonsense is refused by name; a pod that changed runs anew."""
    with clean(CGROUP) as folder:
        pods, state = folder / "pods", folder / "state"
        pods.mkdir()
        put(pods, "a-nul", "c", command='"a\\0b"')
        put(pods, "b-tiny", "c", memory="1")
        put(pods, "c-good", "first")
        agent = AgentProcess(["--pods", str(pods), "--state", str(state), "--machine", "laptop"], echo=False)
        try:
            said = "".join(agent.wait_for("container c-good/first starts"))
            assert "pod default/a-nul waits: c cannot be started: embedded null byte" in said
            assert "pod default/b-tiny does not come in\n  limits: memory_bytes 1 is below" in said
            (state / "containers" / "who_knows.json").write_text("{")
            said = agent.wait_for("the agent waits: ")[-1]
            assert "who_knows.json: says no more what runs" in said
            put(pods, "c-good", "second")
            (state / "containers" / "who_knows.json").unlink()
            agent.wait_for("pod default/c-good has ended")
            agent.wait_for("container c-good/second starts")
            (pods / "a-nul.yaml").unlink()
            (pods / "b-tiny.yaml").unlink()
            agent.wait_for("settled with 1 pods")
            assert set(held(state)) == {"c-good_second"}
        finally:
            agent.end(signal.SIGTERM)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0, 4])
def test_a_soak_that_ends_with_or_without_pods(seconds: int) -> None:
    """Nothing is violated, and a node that is empty already is not waited for."""
    done = call("examples.agent.soak", "--seconds", seconds, "--seed", 1)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("0 violations") == 2


@pytest.mark.slow
def test_a_full_disk_is_waited_for(as_root: None) -> None:
    """Nothing is granted or given back that cannot be remembered; with room again, everything goes on."""
    with clean(CGROUP) as folder:
        pods, state = folder / "pods", folder / "state"
        pods.mkdir()
        state.mkdir()
        if not may_mount():
            pytest.skip("this process may not mount")
        mounter = LinuxMounter(SafeRoot(str(folder)))
        mounter.mount("tmpfs", str(state), fstype="tmpfs", options=["size=4m"])
        put(pods, "a", "c")
        agent = AgentProcess(["--pods", str(pods), "--state", str(state), "--machine", "laptop"], echo=False)
        try:
            agent.wait_for("settled with 1 pods")
            fill = state / "fill"
            with contextlib.suppress(OSError), fill.open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(4096))
            (pods / "a.yaml").unlink()
            assert "No space left" in agent.wait_for("the agent waits: ")[-1]
            assert [path.name for path in (state / "checkpoint").glob("workload.*")] == ["workload.a"]
            fill.unlink()
            agent.wait_for("settled with 0 pods")
            assert not list((state / "checkpoint").glob("workload.*"))
        finally:
            agent.end(signal.SIGTERM)
            for target in mounts(state):
                mounter.unmount(target)
            mounter.unmount(str(state))
