"""`python -m tests.cri --version 1.7 --module tests.cri.beside`: the agent on containerd, beside a bare loop.

Starts, crashes, removals, idling, probes and restarts of static pods, each as it
is seen from outside: a container says that it runs by touching a file. The bare
loop makes the same calls with the same containers, down to their mounts and masked
paths, on the same containerd before the agent starts; it neither decides, remembers
nor looks at anything.
Prints one line of JSON: figure to value.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import queue
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

import attrs

from examples.agent.outside import ContainerdView, Surroundings, compile_agent, surroundings
from nodealloc._proto import runtime_v1_pb2 as wire
from nodealloc._rpc.caller import Caller
from nodealloc._rpc.errors import CallUnavailableError
from nodealloc.cri import _codec as codec
from nodealloc.cri import _requests as requests
from nodealloc.podlife import (
    ContainerRunOptions,
    ImageFacts,
    NodeSettings,
    PodFiles,
    container_config,
    sandbox_config,
)
from nodealloc.podspec import Pod
from nodealloc.runtime import ContainerConfig, SandboxConfig

MANY, MORE, SINGLES = 50, 100, 20
IDLE_S, PATIENCE_S = 30.0, 120.0
_PAUSE_S = 0.5
"""Between two pods that are started one after the other."""
_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")
_PORT = 20_000
_WORKERS = (1, 4, 16)
"""Bare loops side by side; the fastest number of them is the floor."""


def script(name: str) -> str:
    """What a container runs: it says that it does, and ends when it is asked to."""
    return f"touch /marks/{name}; trap 'exit 0' TERM; while :; do sleep 1000 & wait $!; done"


@attrs.frozen
class Bench:
    """An agent on its containerd, and a caller of the same containerd.

    Attributes:
        place: Where the agent runs.
        caller: Makes the bare calls.
    """

    place: Surroundings
    caller: Caller

    @property
    def marks(self) -> Path:
        """Where containers say that they run."""
        return self.place.folder / "marks"

    # What is asked for.

    def manifest(self, name: str, **more: object) -> str:
        """A static pod."""
        mount = {"name": "marks", "mountPath": "/marks"}
        app = {
            "name": "app",
            "image": self.place.image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["sh", "-c", script(name)],
            "volumeMounts": [mount],
            **more,
        }
        spec = {
            **self.place.spec,
            "containers": [app],
            "terminationGracePeriodSeconds": 5,
            "volumes": [{"name": "marks", "hostPath": {"path": str(self.marks)}}],
        }
        return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})

    def ask(self, manifests: dict[str, str]) -> float:
        """Put manifests there at once; the moment before."""
        for name, text in manifests.items():
            (self.place.pods / f".{name}").write_text(text)
        time.sleep(0.3)  # files lie there as those that come from elsewhere do
        began_s = time.time()
        for name in manifests:
            (self.place.pods / f".{name}").rename(self.place.pods / f"{name}.json")
        return began_s

    def made_from(self, name: str) -> tuple[SandboxConfig, ContainerConfig]:
        """What an agent would make a pod from, with the files that its container mounts."""
        pod = attrs.evolve(Pod.from_manifest(json.loads(self.manifest(name))), uid=name)
        below = self.place.folder / "bare"
        node = NodeSettings(
            name="demo",
            memory_capacity_bytes=1 << 33,
            pods_directory=str(below / "pods"),
            logs_directory=str(below / "logs"),
        )
        (app,) = pod.containers
        PodFiles().make(pod, app, 0, node=node, hosts="127.0.0.1 localhost\n")
        box = sandbox_config(pod, attempt=0, node=node)
        Path(box.log_directory, app.name).mkdir(parents=True, exist_ok=True)
        cgroup = f"/{os.environ['NODEALLOC_CRI_CGROUPS']}/{name}"
        options = ContainerRunOptions(volumes={"marks": str(self.marks)})
        image = ImageFacts(id=self.place.image)
        return (
            attrs.evolve(box, cgroup_parent=cgroup),
            container_config(pod, app, attempt=0, image=image, node=node, options=options),
        )

    def bare(self, box: SandboxConfig, app: ContainerConfig) -> str:
        """The three calls; the sandbox."""
        sandbox = codec.decode_id(self.caller.call("RunPodSandbox", requests.encode_run(box), 60.0))
        self.bare_start(sandbox, box, app)
        return sandbox

    def bare_start(self, sandbox: str, box: SandboxConfig, app: ContainerConfig) -> None:
        """The last two of them."""
        made = codec.decode_id(
            self.caller.call("CreateContainer", requests.encode_create(sandbox, app, box), 60.0)
        )
        self.caller.call("StartContainer", requests.encode_about("StartContainer", made), 60.0)

    # What is seen.

    def began(self, names: Sequence[str], after_s: float = 0.0) -> float:
        """When the last of some containers said that it runs."""
        until(lambda: all(self.mark(name) > after_s for name in names))
        return max(self.mark(name) for name in names)

    def mark(self, name: str) -> float:
        """When a container said so last; 0 for never."""
        try:
            return (self.marks / name).stat().st_mtime_ns / 1e9
        except FileNotFoundError:
            return 0.0

    def container(self, name: str) -> str:
        """Id of a pod's container."""
        return next(made for one, made in self.place.running().items() if one.startswith(f"{name}/"))

    def pid(self, name: str) -> int:
        """Its first process."""
        return self.place.looks.pid_of(self.container(name))

    def ready(self) -> dict[str, bool]:
        """What each pod is told to be last."""
        told: dict[str, bool] = {}
        for said in map(json.loads, self.place.status()):
            conditions = said["status"]["conditions"] if said["status"] else ()
            told[said["name"]] = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
        return told

    def cpu_s(self) -> float:
        """CPU time of the agent."""
        agent = self.place.agent
        fields = (
            Path(f"/proc/{agent.process.pid}/stat").read_text().rpartition(")")[2].split() if agent else ()
        )
        return sum(map(int, fields[11:13])) * _TICK_S

    def busy_percent(self) -> float:
        """Of a core, over a while in which nothing happens."""
        before_s = self.cpu_s()
        time.sleep(IDLE_S)
        return (self.cpu_s() - before_s) / IDLE_S * 100

    def clear(self) -> None:
        """No manifest, and nothing of any pod in the runtime."""
        for one in self.place.pods.iterdir():
            one.unlink()
        until(self.place.is_empty, 0.1)

    def clear_bare(self) -> None:
        """The same without an agent."""
        for pod in self.place.looks.listing().pods.values():
            for box in pod.sandboxes:
                for call in ("StopPodSandbox", "RemovePodSandbox"):
                    self.caller.call(call, requests.encode_about(call, box.id), 60.0)


def until(holds: Callable[[], bool], every_s: float = 0.005) -> None:
    """Wait for something."""
    ends_s = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > ends_s:
            raise TimeoutError(f"not within {PATIENCE_S:g} s")
        time.sleep(every_s)


def floors(bench: Bench) -> Iterator[tuple[str, float]]:
    """The bare loop, before the agent is there: it would clear away pods that nobody told it of."""
    taken: list[float] = []
    for number in range(SINGLES):
        name = f"bare-{number}"
        box, app = bench.made_from(name)
        time.sleep(
            _PAUSE_S
        )  # what rests is slower at first, and the agent's pods are asked for after a pause
        began_s = time.time()
        bench.bare(box, app)
        taken.append(bench.began([name]) - began_s)
    yield "one_bare_s", median(taken)
    bench.clear_bare()
    many: list[float] = []
    for workers in _WORKERS:
        made = {name: bench.made_from(name) for name in [f"bare{workers}-{at}" for at in range(MANY)]}
        began_s = time.time()
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            boxes = list(pool.map(bench.bare, *zip(*made.values(), strict=True)))
        many.append(bench.began(list(made)) - began_s)
        if workers == _WORKERS[-1]:
            yield "crash_bare_s", median(again(bench, boxes, made))
        bench.clear_bare()
    yield "many_bare_s", min(many)


def again(
    bench: Bench, boxes: Sequence[str], made: Mapping[str, tuple[SandboxConfig, ContainerConfig]]
) -> Iterator[float]:
    """What no agent can spare after a crash: until the runtime tells of it, and two calls."""
    events = bench.caller.stream("GetContainerEvents")
    ended: queue.SimpleQueue[str] = queue.SimpleQueue()

    def hear() -> None:
        with contextlib.suppress(RuntimeError, CallUnavailableError):
            for event in map(wire.ContainerEventResponse.FromString, events):
                if event.container_event_type == wire.CONTAINER_STOPPED_EVENT:
                    ended.put(event.container_id)

    threading.Thread(target=hear, daemon=True).start()
    for sandbox, (name, (box, app)) in list(zip(boxes, made.items(), strict=True))[: SINGLES // 2]:
        time.sleep(0.3)
        container, pid, began_s = bench.container(name), bench.pid(name), time.time()
        os.kill(pid, signal.SIGKILL)
        while ended.get(timeout=PATIENCE_S) != container:
            pass  # others have ended before
        bench.bare_start(sandbox, box, attrs.evolve(app, attempt=1))
        yield bench.began([name], began_s) - began_s
    events.cancel()


def starts(bench: Bench) -> Iterator[tuple[str, float]]:
    """One after the other, and all at once."""
    taken: list[float] = []
    for number in range(SINGLES):
        began_s = bench.ask({f"one-{number}": bench.manifest(f"one-{number}")})
        taken.append(bench.began([f"one-{number}"]) - began_s)
        time.sleep(_PAUSE_S)
    yield "one_s", median(taken)
    bench.clear()
    names = [f"many-{number}" for number in range(MANY)]
    before_s = bench.cpu_s()
    began_s = bench.ask({name: bench.manifest(name) for name in names})
    yield "many_s", bench.began(names) - began_s
    until(lambda: sum(bench.ready().values()) == MANY, 0.2)
    yield "started_cpu_ms", (bench.cpu_s() - before_s) / MANY * 1000


def lives(bench: Bench) -> Iterator[tuple[str, float]]:
    """With fifty that run: idle, crashes, a kill of the agent; then a hundred."""
    time.sleep(5.0)
    yield "idle_percent", bench.busy_percent()
    agent = bench.place.agent
    pages = int(Path(f"/proc/{agent.process.pid}/statm").read_text().split()[1]) if agent else 0
    yield "memory_mib", pages * resource.getpagesize() / 2**20
    crashes: list[float] = []
    for number in range(SINGLES // 2):
        time.sleep(0.3)  # as the bare loop does
        pid, killed_s = bench.pid(f"many-{number}"), time.time()
        os.kill(pid, signal.SIGKILL)
        crashes.append(bench.began([f"many-{number}"], killed_s) - killed_s)
    yield "crash_s", median(crashes)
    time.sleep(3.0)
    yield from restart(bench, "")
    more = [f"more-{number}" for number in range(MORE - MANY)]
    bench.ask({name: bench.manifest(name) for name in more})
    bench.began(more)
    time.sleep(5.0)
    yield "idle_more_percent", bench.busy_percent()
    bench.clear()


def restart(bench: Bench, suffix: str) -> Iterator[tuple[str, float]]:
    """SIGKILL and start: until it answers, what that cost, and whether anybody was told to be less ready."""
    before, lines = bench.place.running(), len(bench.place.status())
    if bench.place.agent is not None:
        bench.place.agent.end(signal.SIGKILL)
    began_s = time.monotonic()
    bench.place.start()
    until(bench.place.is_up)
    yield f"again{suffix}_s", time.monotonic() - began_s
    yield f"again{suffix}_cpu_s", bench.cpu_s()
    time.sleep(3.0)
    after = bench.place.running()
    flaps = [
        one
        for said in map(json.loads, bench.place.status()[lines:])
        for one in (said["status"]["conditions"] if said["status"] else ())
        if one["type"] == "Ready" and one["status"] != "True"
    ]
    moved = sum(after.get(name) != one for name, one in before.items())
    yield f"again{suffix}_moved", float(moved + len(flaps))


def probes(bench: Bench) -> Iterator[tuple[str, float]]:
    """Fifty that are asked each second, and the agent's restart beside them."""
    names = [f"web-{number}" for number in range(MANY)]
    manifests = {}
    for number, name in enumerate(names):
        port = _PORT + number
        probe = {"httpGet": {"port": port, "host": "127.0.0.1", "path": "/"}, "periodSeconds": 1}
        serve = f"echo ok > /tmp/index.html; touch /marks/{name}; exec httpd -f -p 127.0.0.1:{port} -h /tmp"
        manifests[name] = bench.manifest(name, readinessProbe=probe, command=["sh", "-c", serve])
    bench.ask(manifests)
    until(lambda: sum(bench.ready().get(f"{name}-demo", False) for name in names) == MANY, 0.2)
    time.sleep(3.0)
    yield "probed_percent", bench.busy_percent()
    yield from restart(bench, "_probed")
    bench.clear()


def removals(bench: Bench) -> Iterator[tuple[str, float]]:
    """One after the other, from the manifest that goes to the process that is gone."""
    names = [f"gone-{number}" for number in range(SINGLES)]
    bench.ask({name: bench.manifest(name) for name in names})
    bench.began(names)
    until(lambda: sum(bench.ready().get(f"{name}-demo", False) for name in names) == SINGLES, 0.2)
    largest = 0.0
    for name in names:
        pid = bench.pid(name)
        time.sleep(0.3)
        began_s = time.monotonic()
        (bench.place.pods / f"{name}.json").unlink()
        until(lambda pid=pid: not Path(f"/proc/{pid}").exists(), 0.002)  # type: ignore[misc]
        largest = max(largest, time.monotonic() - began_s)
    yield "removed_s", largest
    bench.clear()


def told(figures: Iterator[tuple[str, float]]) -> dict[str, float]:
    """Figures, each said as it comes."""
    found: dict[str, float] = {}
    for name, value in figures:
        print(f"{name} {value:.4g}", file=sys.stderr, flush=True)
        found[name] = value
    return found


def main() -> int:
    """Every part with an agent of its own; by a kubelet's rules, a file that is away is gone at once."""
    compile_agent()
    found: dict[str, float] = {}
    parts = {"starts": (starts, lives), "probes": (probes,), "removals": (removals,)}
    for part in sys.argv[1:] or parts:
        with surroundings("containerd", more={"maxPods": 500}) as place:
            (place.folder / "marks").mkdir()
            if part == "removals":
                place.options += ["--rules", "kubelet"]
            looks = place.looks
            assert isinstance(looks, ContainerdView)
            socket = place.folder / "containerd" / "c.sock"
            bench = Bench(place, Caller(socket, wire.DESCRIPTOR, "RuntimeService", largest_bytes=1 << 24))
            for what in (floors,) if part == "starts" else ():
                found.update(told(what(bench)))
            place.start()
            until(place.is_up)
            for what in parts[part]:
                found.update(told(what(bench)))
            bench.caller.close()
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
