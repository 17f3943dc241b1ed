"""The example agent on this machine: its demo, and what it says to bad input."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from examples.agent.outside import AgentProcess, clean, held
from nodealloc.machine import machine_from_text, machine_to_json
from nodealloc.testing.machine import write_sysfs

pytestmark = pytest.mark.real
ROOT = Path(__file__).parent.parent.parent


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
    with clean("nodealloc-test-damage") as folder:
        pods, state = folder / "pods", folder / "state"
        shutil.copytree(ROOT / "examples" / "agent" / "pods", pods)
        for name in ("60-trainer.yaml", "70-cache.yaml"):
            (pods / name).unlink()
        options = ["--pods", str(pods), "--state", str(state), "--cgroup", "nodealloc-test-damage"]
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
