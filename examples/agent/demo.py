"""`python -m examples.agent.demo`: the agent's whole life, watched from outside.

Starts the agent without pods, gives it some, kills it with SIGKILL, starts it
again, takes the pods away, and compares what stands on disk with the beginning.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from pathlib import Path
from queue import Empty, Queue

from examples.agent.inputs import MACHINES
from nodealloc.cgroups import CgroupName, detect
from nodealloc.errors import NodeallocError
from nodealloc.idset import CPUSet

PODS = Path(__file__).parent / "pods"
PATIENCE_S = 30.0
PLUGINS: list[subprocess.Popen[bytes]] = []


class DemoError(Exception):
    """Something was not as it should be."""


class Agent:
    """One agent process and what it says."""

    def __init__(self, arguments: list[str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "examples.agent", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: Queue[str] = Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in self.process.stdout or ():
            print(f"  | {line}", end="", flush=True)
            self.lines.put(line)

    def wait_for(self, words: str) -> list[str]:
        """All lines up to one that begins with `words`."""
        said: list[str] = []
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            with contextlib.suppress(Empty):
                said.append(self.lines.get(timeout=0.2))
                if said[-1].startswith(words):
                    return said
            if self.process.poll() is not None and self.lines.empty():
                break
        raise DemoError(f"the agent did not say {words!r}; its exit status is {self.process.poll()}")

    def end(self, number: signal.Signals) -> None:
        """Send a signal and wait."""
        self.process.send_signal(number)
        self.process.wait(PATIENCE_S)


def remembered(folder: Path) -> dict[str, bytes]:
    """What a checkpoint directory holds, byte for byte; not who wrote it."""
    return {
        path.name: path.read_bytes() for path in sorted(folder.iterdir()) if not path.name.startswith(".")
    }


def held(folder: Path) -> dict[str, tuple[int, str]]:
    """Container to its pid and the CPUs on which the kernel lets it run, seen from outside the agent."""
    found: dict[str, tuple[int, str]] = {}
    for path in sorted((folder / "containers").glob("*.json")):
        pid = int(path.read_text().partition('"pid": ')[2].partition(",")[0])
        with contextlib.suppress(ProcessLookupError):
            found[path.stem] = (pid, str(CPUSet(os.sched_getaffinity(pid))))
    return found


def start_plugin(state: Path) -> None:
    """A device plugin in a process of its own; `clean` ends it."""
    plugin = ["--resource", "example.com/gpu", "--devices", "4", "--directory", str(state / "device-plugins")]
    with (state / "plugin.log").open("w") as log:
        command = [sys.executable, "-m", "nodealloc.testing.device_plugin", *plugin]
        PLUGINS.append(subprocess.Popen(command, stdout=log, stderr=log))


def check(holds: bool, words: str) -> None:
    """Say what holds, or end."""
    print(f"  {'ok  ' if holds else 'FAIL'} {words}", flush=True)
    if not holds:
        raise DemoError(words)


def show(folder: Path, machine: list[str], cgroup: str) -> None:
    """All acts."""
    pods, state = folder / "pods", folder / "state"
    pods.mkdir()
    arguments = ["--pods", str(pods), "--state", str(state), "--cgroup", cgroup, *machine]
    print("\n1. The agent starts on an empty node", flush=True)
    first = Agent(arguments)
    first.wait_for("settled with 0 pods")
    beginning = remembered(state / "checkpoint")

    print("\n2. Pods come; each decision is remembered before it is acted upon", flush=True)
    for manifest in sorted(PODS.glob("*.yaml")):
        shutil.copy(manifest, pods)
    said = first.wait_for("settled with 4 pods")
    check(any("too-large does not come in" in line for line in said), "the pod that is too large was refused")
    check(any("trainer has to wait" in line for line in said), "the pod that wants a device has to wait")

    print("\n3. A device plugin comes, and the pod that waited for it with it", flush=True)
    start_plugin(state)
    said = first.wait_for("settled with 5 pods")
    check(any("train starts" in line and "gpu" in line for line in said), "it got its devices")
    before = held(state)
    check(len(before) == 6, f"{len(before)} containers run as processes")

    print("\n4. The agent is killed with SIGKILL", flush=True)
    first.end(signal.SIGKILL)
    check(held(state) == before, "its containers run on, on the same CPUs")

    print("\n5. The agent starts again", flush=True)
    second = Agent(arguments)
    said = second.wait_for("settled with 5 pods")
    check(not any("starts on" in line for line in said), "no container was started a second time")
    check(not any("is admitted and remembered" in line for line in said), "no pod was admitted a second time")
    check(held(state) == before, "every container has the pid and the CPUs that it had")

    print("\n6. All pods go", flush=True)
    for manifest in pods.glob("*.yaml"):
        manifest.unlink()
    second.wait_for("settled with 0 pods")
    second.end(signal.SIGTERM)
    check(
        remembered(state / "checkpoint") == beginning,
        "what is remembered is byte for byte what it was at the start",
    )
    check(not held(state), "no process is left")


@contextlib.contextmanager
def clean(cgroup: str) -> Generator[Path]:
    """A folder for the demo; afterwards neither it nor its cgroups nor its processes are left."""
    folder = Path(tempfile.mkdtemp(prefix="nodealloc-demo-"))
    try:
        yield folder
    finally:
        for plugin in PLUGINS:
            plugin.kill()
            plugin.wait()
        for pid, _ in held(folder / "state").values():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        with contextlib.suppress(NodeallocError, OSError):
            driver, name = detect(), CgroupName.of(cgroup)
            driver.kill(name)
            driver.remove(name)
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    """Show it; 1 when something was not as it should be."""
    parser = argparse.ArgumentParser(prog="python -m examples.agent.demo", description=__doc__)
    parser.add_argument("--machine", metavar="NAME|DIR", help=f"{', '.join(MACHINES)}, or a captured /sys")
    chosen = parser.parse_args()
    machine = ["--machine", chosen.machine] if chosen.machine else []
    started = time.monotonic()
    cgroup = f"nodealloc-demo-{os.getpid()}"
    try:
        with clean(cgroup) as folder:
            show(folder, machine, cgroup)
    except DemoError as error:
        print(f"\nThe demo failed: {error}", file=sys.stderr)
        return 1
    print(f"\nThe demo went as it should, in {time.monotonic() - started:.1f} s.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
