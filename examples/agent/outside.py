"""The agent seen from outside: its process, what it tells, what runs, what it left."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import attrs

from examples.processes._commands import run as run_in
from examples.processes._fence import Fence, end_all
from examples.processes._kept import SOCKET, Files, Started
from examples.processes._table import Table
from nodealloc.cgroups import CgroupName, detect
from nodealloc.cri import CriRuntime
from nodealloc.errors import NodeallocError
from nodealloc.idset import CPUSet
from nodealloc.runtime import CommandResult, ContainerRecord, Listing, PodListing, PodReport, RunState
from nodealloc.volumes import LinuxMounter, SafeRoot, parse_mountinfo

__all__ = ["AgentProcess", "DemoError", "Surroundings", "compile_agent", "left_behind", "surroundings"]

_ENDS_S = 30.0
_LEAVES_S = 5.0
_NOTHING: Mapping[str, object] = {}


class DemoError(Exception):
    """Something was not as it should be."""


@attrs.define
class AgentProcess:
    """One agent process.

    Attributes:
        process: It.
        log: Where it writes.
    """

    process: subprocess.Popen[bytes]
    log: Path

    def end(self, number: signal.Signals) -> None:
        """Send a signal and wait; one that does not end is ended, and says where it stood."""
        self.process.send_signal(number)
        try:
            self.process.wait(_ENDS_S)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)
            self.process.wait(_ENDS_S)
            raise DemoError(f"the agent did not end at {number.name}; {self.words()}") from None

    def words(self) -> str:
        """The end of what it said."""
        return f"it said last:\n{self.log.read_text(errors='replace')[-4000:]}"


@attrs.define
class Surroundings:
    """A folder in which agents run one after the other, and a view of the runtime beside theirs.

    Attributes:
        folder: Of everything.
        image: Name of an image with a shell.
        cgroup: Of all pods.
        looks: The runtime.
        options: Of the agent.
        spec: What every pod has in its specification: real containers have no network of their own here.
        agent: The one that runs, if one does.
        marks: How many agents had begun when it was started.
    """

    folder: Path
    image: str
    cgroup: str
    looks: View
    options: list[str]
    spec: Mapping[str, object] = attrs.field(factory=dict[str, object])
    agent: AgentProcess | None = None
    marks: int = 0

    @property
    def pods(self) -> Path:
        """Folder of manifests."""
        return self.folder / "manifests"

    def start(self) -> AgentProcess:
        """Start an agent on what earlier ones left."""
        self.marks = self._begun()
        log = self.folder / "agent.log"
        with log.open("ab") as file:
            process = subprocess.Popen(
                [sys.executable, "-X", "faulthandler", "-m", "examples.agent", *self.options],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )
        self.agent = AgentProcess(process, log)
        return self.agent

    def is_up(self) -> bool:
        """Whether the agent that was started answers: it has begun its part of the status file."""
        return self._begun() > self.marks

    def _begun(self) -> int:
        """Agents leave an empty line where they begin."""
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / "status.jsonl").read_text().splitlines().count("")
        return 0

    def agent_lives(self) -> None:
        """Raise when it does not."""
        if self.agent is not None and self.agent.process.poll() is not None:
            raise DemoError(f"the agent ended with {self.agent.process.poll()}; {self.agent.words()}")

    def status(self) -> list[str]:
        """Lines of the status file."""
        with contextlib.suppress(FileNotFoundError):
            text = (self.folder / "status.jsonl").read_text()
            return [line for line in text[: text.rfind("\n") + 1].splitlines() if line]
        return []

    def running(self) -> dict[str, str]:
        """`pod/container` to the id of what runs."""
        return {f"{one.pod.name.removesuffix('-demo')}/{one.name}": one.id for one in self._running()}

    def instances(self) -> dict[str, int]:
        """`pod/container` to how many instances of it run."""
        found: dict[str, int] = {}
        for record in self._running():
            name = f"{record.pod.uid} {record.name}"
            found[name] = found.get(name, 0) + 1
        return found

    def uids(self) -> dict[str, str]:
        """Uid to the name of each pod of which the runtime has anything."""
        return {
            uid: one.pod.name.removesuffix("-demo")
            for uid, pod in self.looks.listing().pods.items()
            for one in pod.sandboxes
        }

    def cpus(self) -> dict[str, tuple[CPUSet, bool]]:
        """`pod/container` to the CPUs that its process may run on, and whether the pod asked for its own."""
        found: dict[str, tuple[CPUSet, bool]] = {}
        for record in self._running():
            name = record.pod.name.removesuffix("-demo")
            with contextlib.suppress(OSError, ValueError):
                wanted = json.loads((self.pods / f"{name}.json").read_text())
                (container,) = [one for one in wanted["spec"]["containers"] if one["name"] == record.name]
                own = "cpu" in container.get("resources", {}).get("limits", {})
                cpus = CPUSet(os.sched_getaffinity(self.looks.pid_of(record.id)))
                found[f"{name}/{record.name}"] = cpus, own
        return found

    def _running(self) -> list[ContainerRecord]:
        listed = [one for pod in self.looks.listing().pods.values() for one in pod.containers]
        return [one for one in listed if one.state is RunState.RUNNING]

    def command(self, container_id: str, script: str) -> None:
        """Run a script in a container."""
        self.looks.run_command(container_id, ("sh", "-c", script), 20.0)

    def is_empty(self) -> bool:
        """Whether the runtime has nothing of any pod."""
        return not self.looks.listing().pods


class View(Protocol):
    """What is asked of a runtime from outside."""

    def listing(self) -> Listing:
        """See `Looks.listing`."""
        ...

    def inspect(self, uid: str, listed: PodListing | None = None, /) -> PodReport:
        """See `Looks.inspect`."""
        ...

    def run_command(self, container_id: str, command: Sequence[str], timeout_s: float, /) -> CommandResult:
        """See `CommandRunner.run_command`."""
        ...

    def pid_of(self, container_id: str, /) -> int:
        """First process of a container that runs."""
        ...


class ContainerdView(CriRuntime):
    """A `View` of containerd."""

    def pid_of(self, container_id: str, /) -> int:
        """First process of a container that runs."""
        return self.confined(container_id).pid


@attrs.frozen
class ProcessView:
    """A `View` of processes by what stands on disk of them."""

    folder: Path

    def listing(self) -> Listing:
        """See `Looks.listing`."""
        return self._table().listing()

    def inspect(self, uid: str, listed: PodListing | None = None, /) -> PodReport:
        """See `Looks.inspect`."""
        del listed  # all is told
        return self._table().inspect(uid)

    def run_command(self, container_id: str, command: Sequence[str], timeout_s: float, /) -> CommandResult:
        """See `CommandRunner.run_command`."""
        made = self._table().run("run_command", container_id).made
        return run_in(Fence(driver=None, why="from outside"), made, command, timeout_s)

    def pid_of(self, container_id: str, /) -> int:
        """First process of a container that runs; 0 for any other."""
        started = self._table().run("pid_of", container_id).started
        return started.pid if started is not None and started.is_alive else 0

    def processes(self) -> list[Started]:
        """Those that run."""
        begun = [one.started for one in self._table().runs.values()]
        return [one for one in begun if one is not None and one.is_alive]

    def _table(self) -> Table:
        table = Table(Files(self.folder))
        table.read()
        return table


def compile_agent() -> None:
    """Have the agent's modules compiled, as those of one that is installed are.

    One that compiles them itself takes longer to start, and keeps the memory that this took. Where
    `PYTHONDONTWRITEBYTECODE` is set, each start would compile them again: here it is not passed on.
    """
    within = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    modules = "import examples.agent.__main__, examples.processes"
    subprocess.run([sys.executable, "-c", modules], check=True, env=within)


def left_behind(place: Surroundings) -> list[str]:
    """Directories, mounts and cgroups of pods."""
    pods = place.folder / "root" / "pods"
    found = [str(one) for one in pods.iterdir()] if pods.is_dir() else []
    table = parse_mountinfo(Path("/proc/self/mountinfo").read_text(errors="surrogateescape"))
    found += [mount.target for mount in table if mount.target.startswith(f"{pods}/")]
    with contextlib.suppress(NodeallocError, OSError):
        driver, root = detect(), CgroupName.parse(place.cgroup).child("kubepods")
        for above in (root, root.child("burstable"), root.child("besteffort")):
            found += [one.path() for one in driver.children(above) if one.parts[-1].startswith("pod")]
    return found


@contextlib.contextmanager
def surroundings(
    runtime: str, *, store: str = "files", machine: str | None = None, more: Mapping[str, object] = _NOTHING
) -> Generator[Surroundings]:
    """A folder to work in; afterwards neither it nor its cgroups nor its processes are left.

    Args:
        runtime: `processes` or `containerd`.
        store: `files` or `sqlite`.
        machine: Another one to give out; None for this one.
        more: Fields of the configuration.
    """
    folder = Path(tempfile.mkdtemp(prefix="nodealloc-"))
    # Not by the process's id: two in namespaces of their own may have the same, over one tree of cgroups.
    cgroup = f"nodealloc-demo-{secrets.token_hex(4)}"
    switches = {path: path.read_text() for path in _switches()}
    try:
        with contextlib.ExitStack() as stack:
            view, image, told = _view(runtime, folder, stack)
            (folder / "manifests").mkdir()
            options = _options(folder, cgroup, store, machine, {**told, **more})
            spec = {"hostNetwork": True} if runtime == "containerd" else {}
            place = Surroundings(folder, image, cgroup, view, options, spec)
            try:
                yield place
            finally:
                if place.agent is not None and place.agent.process.poll() is None:
                    place.agent.end(signal.SIGKILL)
    finally:
        _clean(folder, cgroup)
        for path, before in switches.items():
            for controller in set(path.read_text().split()) - set(before.split()):
                with contextlib.suppress(OSError):
                    path.write_text(f"-{controller}")
        shutil.rmtree(folder, ignore_errors=True)


def _options(
    folder: Path, cgroup: str, store: str, machine: str | None, more: Mapping[str, object]
) -> list[str]:
    """The agent's configuration, written; and its options."""
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "staticPodPath": str(folder / "manifests"),
        "fileCheckFrequency": "1s",
        "cgroupRoot": f"/{cgroup}",
        **more,
    }
    (folder / "kubelet.yaml").write_text(json.dumps(config, indent=1))
    words = [
        "--config",
        folder / "kubelet.yaml",
        "--root",
        folder / "root",
        "--node",
        "demo",
        "--store",
        store,
    ]
    words += ["--status", folder / "status.jsonl"]
    return [*map(str, words), *(["--machine", machine] if machine else [])]


def _view(runtime: str, folder: Path, stack: contextlib.ExitStack) -> tuple[View, str, Mapping[str, object]]:
    """How the runtime is looked at, an image that it has, and what the agent is told of it."""
    if runtime == "processes":
        return ProcessView(folder / "root" / "containers"), "this-machine", {}
    from tests.cri.containerd import running  # noqa: PLC0415 - of the clone's tests; only where it is asked for

    daemon = stack.enter_context(
        running(Path(os.environ["NODEALLOC_CRI_ROOT"]), folder / "containerd", "1.7")
    )
    looks = ContainerdView(daemon.socket)
    stack.callback(looks.close)
    return looks, "localhost/busybox:1", {"containerRuntimeEndpoint": f"unix://{daemon.socket}"}


def _if_alive(one: Started) -> frozenset[int]:
    return frozenset({one.pid} if one.is_alive else ())


def _clean(folder: Path, cgroup: str) -> None:
    table = parse_mountinfo(Path("/proc/self/mountinfo").read_text(errors="surrogateescape"))
    containers = folder / "root" / "containers"
    if containers.is_dir():
        for one in ProcessView(containers).processes():
            end_all(partial(_if_alive, one))
        # Its keeper writes down how each has ended, and leaves.
        ends_s = time.monotonic() + _LEAVES_S
        while (containers / SOCKET).exists() and time.monotonic() < ends_s:
            time.sleep(0.02)
    with contextlib.suppress(NodeallocError, OSError):
        driver, name = detect(), CgroupName.of(cgroup)
        driver.kill(name)
        driver.remove(name)
    for target in sorted(
        (mount.target for mount in table if mount.target.startswith(f"{folder}/")), reverse=True
    ):
        with contextlib.suppress(NodeallocError):
            LinuxMounter(SafeRoot(str(folder))).unmount(target, lazy=True)


def _switches() -> list[Path]:
    """Which controllers the roots of cgroup v2 hand down: the agent switches on what it needs."""
    with contextlib.suppress(NodeallocError):
        roots = [Path(mount.path, "cgroup.subtree_control") for mount in detect().layout.mounts]
        return [path for path in roots if path.is_file()]
    return []
