"""The example agent on this machine: its demo, its soak, and what it says to bad input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from examples.agent.__main__ import _cgroups
from examples.agent.demo import FLAG, FOREVER, container, pod
from examples.agent.outside import surroundings
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


def test_pods_from_nowhere_are_told_before_anything_is_made(tmp_path: Path) -> None:
    """With the fields of which one is missing."""
    done = call("examples.agent", "--config", configuration(tmp_path), "--root", tmp_path / "root")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert "pods come from nowhere; set staticPodPath or staticPodURL" in done.stderr
    assert not (tmp_path / "root").exists()


@pytest.mark.parametrize("name", ["pods", "logs", "containers"])
def test_what_stands_in_place_of_a_folder_is_named(tmp_path: Path, name: str) -> None:
    """Else each pod would fail by itself, with words that name no remedy."""
    root, machine = tmp_path / "root", ("--machine", "1 socket x 2 cores, memory=4Gi")
    (root / name).parent.mkdir()
    config = configuration(tmp_path, staticPodPath=str(tmp_path))
    for put in (Path.touch, os.mkfifo, lambda path: path.symlink_to("nowhere")):
        put(root / name)
        done = call("examples.agent", "--config", config, "--root", root, "--status", tmp_path, *machine)
        assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
        assert f"{root / name} is there and is no folder; move it away" in done.stderr
        assert [one.name for one in root.iterdir()] == [name]
        (root / name).unlink()


def test_a_root_that_leads_in_a_circle_is_named(tmp_path: Path) -> None:
    """As anything else in its place, with the option and what to do."""
    (tmp_path / "root").symlink_to("root")
    (tmp_path / "file").touch()
    machine = ("--machine", "1 socket x 2 cores, memory=4Gi")
    config = configuration(tmp_path, staticPodPath=str(tmp_path))
    for root in (tmp_path / "root", tmp_path / "file"):
        done = call("examples.agent", "--config", config, "--root", root, *machine)
        assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
        assert f"--root {root}: File exists; name a folder" in done.stderr


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"cpuManagerPolicy": "static"}, "without a CPU for the system"),
        ({"topologyManagerPolicy": "loose"}, "loose"),
        ({"systemReserved": {"memory": "900Ti"}}, "memory"),
        ({"fileCheckFrequency": "soon", "staticPodPath": "/nowhere"}, "soon"),
        (
            {"containerRuntimeEndpoint": "tcp://x:1"},
            "such as /run/x.sock or unix:///run/x.sock, found 'tcp://x:1'",
        ),
    ],
)
def test_what_contradicts_the_machine_is_named(tmp_path: Path, fields: dict[str, object], words: str) -> None:
    """Exit status 2, with the word that is wrong and no traceback."""
    fields = {"cgroupRoot": "/nodealloc-test-agent", "staticPodPath": str(tmp_path), **fields}
    path = configuration(tmp_path, **fields)
    done = call("examples.agent", "--config", path, "--root", tmp_path / "root")
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_folders_of_logs_and_links_are_made_or_named(tmp_path: Path) -> None:
    """Relative ones begin where it was called; without them it would write no log, or no link, in silence."""
    config = configuration(tmp_path, staticPodPath=str(tmp_path))
    words = ("--config", config, "--root", tmp_path / "root", "--machine", "1 socket x 2 cores, memory=4Gi")
    logs, links = (os.path.relpath(tmp_path / name, ROOT) for name in ("logs", "a/links"))
    # A place of statuses that is none ends it once all else is there.
    done = call("examples.agent", *words, "--logs", logs, "--links", links, "--status", tmp_path)
    assert f"--status {tmp_path}: Is a directory" in done.stderr, done.stderr
    assert (tmp_path / "logs").is_dir()
    assert (tmp_path / "a" / "links").is_dir()
    for option in ("--logs", "--links"):
        done = call("examples.agent", *words, option, config)
        assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
        assert f"{option} {config}: File exists; name a folder that can be made" in done.stderr


def test_a_place_of_statuses_that_is_none_is_named(tmp_path: Path) -> None:
    """With the option and what to do."""
    words = ("--config", configuration(tmp_path, staticPodPath=str(tmp_path)), "--root", tmp_path / "root")
    for status, why in ((tmp_path, "Is a directory"), (tmp_path / "no" / "x", "No such file or directory")):
        machine = ("--machine", "1 socket x 2 cores, memory=4Gi")
        done = call("examples.agent", *words, *machine, "--status", status)
        assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
        assert f"--status {status}: {why}; name a file in a folder that is there" in done.stderr


THREADLESS = """
import sys, threading
from examples.agent import __main__ as agent
def none_left(thread):
    raise RuntimeError("can't start new thread")
threading.Thread.start = none_left
sys.exit(agent.main())
"""
FEW_THREADS = """
import os, sys, threading
import grpc
from examples.agent import __main__ as agent
def few_left(thread, start=threading.Thread.start):
    if threading.active_count() > 12:
        raise RuntimeError("can't start new thread")
    start(thread)
threading.Thread.start = few_left
grpc.server = lambda *_, **__: os.abort()  # as where it may start none: it asserts that it can
sys.exit(agent.main())
"""


@pytest.mark.parametrize("program", [THREADLESS, FEW_THREADS])
def test_what_keeps_it_from_starting_threads_is_named(tmp_path: Path, program: str) -> None:
    """A limit of the user's processes or of its service: exit status 2 and no traceback."""
    words = ("--config", configuration(tmp_path, staticPodPath=str(tmp_path)), "--root", tmp_path / "root")
    machine = ("--machine", "1 socket x 2 cores, memory=4Gi")
    command = [sys.executable, "-c", program, *map(str, words), *machine]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert "agent: can't start new thread; let it have more of them (ulimit -u, TasksMax)" in done.stderr


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


class Pods(BaseHTTPRequestHandler):
    """Answers with one pod, until it says no more."""

    is_silent: ClassVar[bool] = False

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        """The pod has a file in a volume of its own."""
        while self.is_silent:
            time.sleep(0.1)
        mounts = [{"name": "data", "mountPath": "/data"}]
        app = container("app", "sh", f"echo up >{FLAG}; {FOREVER}", volumeMounts=mounts)
        one = pod("far", [app], volumes=[{"name": "data", "emptyDir": {}}])
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [one]}).encode())


def until(what: Callable[[], object]) -> None:
    """Wait for something that has to come."""
    ends_s = time.monotonic() + 60.0
    while not what():
        assert time.monotonic() < ends_s, "it did not come"
        time.sleep(0.05)


def test_a_source_that_is_silent_after_a_kill_ends_nothing() -> None:
    """Containers, files and logs of its pod stay, and so does what another source took away meanwhile."""
    Pods.is_silent = False
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pods)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = {"staticPodURL": f"http://127.0.0.1:{server.server_port}/", "httpCheckFrequency": "1s"}
    with surroundings("processes", machine="1 socket x 2 cores, memory=4Gi", more=address) as place:
        near = place.pods / "near.json"
        near.write_text(json.dumps(pod("near", [container("app", "sh", FOREVER)])))
        first = place.start()
        until(lambda: set(place.running()) == {"far/app", "near/app"})
        ran, root = place.running(), place.folder / "root"
        until(lambda: [*root.glob("pods/*/volumes/*/data/ok")])
        until(lambda: sum('"phase": "Running"' in line for line in place.status()) >= 2)
        kept = sorted([*root.glob("pods/*/volumes/*/data/ok"), *root.glob("logs/*/app/0.log")])
        Pods.is_silent = True
        first.end(signal.SIGKILL)
        near.unlink()
        second, told = place.start(), len(place.status())
        until(place.is_up)
        time.sleep(8.0)  # what is away counts as gone after five seconds
        assert place.running() == ran
        assert all(one.exists() for one in kept)
        assert place.status()[told:] == []
        Pods.is_silent = False
        until(lambda: set(place.running()) == {"far/app"})
        assert place.running()["far/app"] == ran["far/app"]
        second.end(signal.SIGTERM)
    server.shutdown()
    server.server_close()


def test_ids_of_processes_are_told_as_such() -> None:
    """They were `containerd://…`; and that nothing confines them, as on another machine, was not said."""
    with surroundings("processes", machine="1 socket x 2 cores, memory=8Gi") as place:
        (place.pods / "web.json").write_text(json.dumps(pod("web", [container("app", "x", FOREVER)])))
        place.start()
        until(lambda: any('"phase": "Running"' in line for line in place.status()))
        told = json.loads(place.status()[-1])["status"]["containerStatuses"]
        assert told[0]["containerID"].startswith("processes://")
        said = (place.folder / "agent.log").read_text()
        assert "containers are not confined: a machine that is another one has no cgroups here" in said
