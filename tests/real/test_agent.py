"""The example agent on this machine: its demo, its soak, and what it says to bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from examples.agent.__main__ import _cgroups
from nodealloc.cgroups import CgroupFs

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]


def call(*words: object) -> subprocess.CompletedProcess[str]:
    """Run a module of the examples."""
    command = [sys.executable, "-m", *map(str, words)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        [],
        pytest.param(
            ["--store", "sqlite", "--machine", "server"],
            marks=pytest.mark.skipif(
                "CI" in os.environ,
                reason="half a minute more beside all other tests: nox -s demo takes the same options",
            ),
        ),
    ],
    ids=["files", "sqlite"],
)
def test_the_demo_goes_as_it_should(options: list[str]) -> None:
    """Probes, a crash loop, a kill, an edit, a graceful end: here, and on a synthetic machine."""
    done = call("examples.agent.demo", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The demo went as it should" in done.stdout
    assert "nobody was told to be less ready" in done.stdout


@pytest.mark.slow
def test_random_pods_and_kills_violate_nothing() -> None:
    """A short soak: the same containers run after each kill, and nothing is left at the end."""
    done = call("examples.agent.soak", "--seconds", "15", "--seed", "4")
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 violations" in done.stdout


def configuration(folder: Path, **fields: object) -> Path:
    """A configuration file."""
    path = folder / "kubelet.yaml"
    kind = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
    path.write_text(json.dumps({**kind, **fields}))
    return path


def test_a_bad_configuration_is_one_message_and_nothing_is_written(tmp_path: Path) -> None:
    """Every fault with its field, exit status 2, and no folder of state."""
    path = configuration(tmp_path, evictionSoft={}, nonsense=1)
    done = call("examples.agent", "--config", path, "--root", tmp_path / "root")
    assert done.returncode == 2
    assert "$.evictionSoft" in done.stderr
    assert "$.nonsense" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "root").exists()


def test_a_root_that_leads_in_a_circle_is_named(tmp_path: Path) -> None:
    """As anything else in its place."""
    (tmp_path / "root").symlink_to("root")
    machine = ("--machine", "1 socket x 2 cores, memory=4Gi")
    done = call("examples.agent", "--config", configuration(tmp_path), "--root", tmp_path / "root", *machine)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert str(tmp_path / "root") in done.stderr


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"cpuManagerPolicy": "static"}, "without a CPU for the system"),
        ({"topologyManagerPolicy": "loose"}, "loose"),
        ({"systemReserved": {"memory": "900Ti"}}, "memory"),
        ({"fileCheckFrequency": "soon", "staticPodPath": "/nowhere"}, "soon"),
    ],
)
def test_what_contradicts_the_machine_is_named(tmp_path: Path, fields: dict[str, object], words: str) -> None:
    """Exit status 2, with the word that is wrong and no traceback."""
    path = configuration(tmp_path, cgroupRoot="/nodealloc-test-agent", **fields)
    done = call("examples.agent", "--config", path, "--root", tmp_path / "root")
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_agents_that_begin_at_once_take_no_cgroup_of_each_other(tmp_path: Path) -> None:
    """Each tries whether it may make one, under the same process id where each has namespaces of its own."""
    tree = Path("/sys/fs/cgroup")
    if _cgroups(tree, tmp_path).layout.stand_in:
        pytest.skip("this machine lets nobody here make cgroups")

    def begins(at: int) -> list[CgroupFs]:
        return [_cgroups(tree, tmp_path / f"{at}-{time}") for time in range(20)]

    with ThreadPoolExecutor(4) as pool:
        drivers = [one for many in pool.map(begins, range(4)) for one in many]
    assert [one for one in drivers if one.layout.stand_in] == []
