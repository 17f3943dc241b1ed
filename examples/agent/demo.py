"""`python -m examples.agent.demo`: the agent's whole life, watched from outside.

Starts the agent without pods, gives it some, brings a device plugin, kills the agent
with SIGKILL, starts it again, takes the pods away, and compares what stands on disk
with the beginning.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from examples.agent.inputs import MACHINES
from examples.agent.outside import (
    AgentProcess,
    DemoError,
    clean,
    held,
    may_mount,
    mounts,
    remembered,
    start_plugin,
)

PODS = Path(__file__).parent / "pods"


def check(holds: bool, words: str) -> None:
    """Say what holds, or end."""
    print(f"  {'ok  ' if holds else 'FAIL'} {words}", flush=True)
    if not holds:
        raise DemoError(words)


def show(folder: Path, machine: list[str], cgroup: str, plugins: list[subprocess.Popen[bytes]]) -> None:
    """All acts."""
    pods, state = folder / "pods", folder / "state"
    pods.mkdir()
    arguments = ["--pods", str(pods), "--state", str(state), "--cgroup", cgroup, *machine]
    print("\n1. The agent starts on an empty node", flush=True)
    first = AgentProcess(arguments)
    first.wait_for("settled with 0 pods")
    beginning = remembered(state / "checkpoint")

    print("\n2. Pods come; each decision is remembered before it is acted upon", flush=True)
    manifests = sorted(PODS.glob("*.yaml"))
    if not may_mount():
        print("  (this process may not mount: the pod with a volume in memory is left out)")
        manifests = [path for path in manifests if "Memory" not in path.read_text()]
    for manifest in manifests:
        shutil.copy(manifest, pods)
    most = len(manifests) - 1  # one is too large
    said = first.wait_for(f"settled with {most - 1} pods")
    check(any("too-large does not come in" in line for line in said), "the pod that is too large was refused")
    check(any("trainer has to wait" in line for line in said), "the pod that wants a device has to wait")

    print("\n3. A device plugin comes, and the pod that waited for it with it", flush=True)
    plugins.append(start_plugin(state))
    said = first.wait_for(f"settled with {most} pods")
    check(any("train starts" in line and "gpu" in line for line in said), "it got its devices")
    before, mounted = held(state), mounts(state)
    check(len(before) == most + 1, f"{len(before)} containers run as processes")

    print("\n4. The agent is killed with SIGKILL", flush=True)
    first.end(signal.SIGKILL)
    check(held(state) == before, "its containers run on, on the same CPUs")

    print("\n5. The agent starts again", flush=True)
    second = AgentProcess(arguments)
    said = second.wait_for(f"settled with {most} pods")
    check(not any("starts on" in line for line in said), "no container was started a second time")
    check(not any("is admitted and remembered" in line for line in said), "no pod was admitted a second time")
    check(held(state) == before, "every container has the pid and the CPUs that it had")
    check(mounts(state) == mounted, f"what was mounted ({len(mounted)}) is mounted still, once")

    print("\n6. All pods go", flush=True)
    for manifest in pods.glob("*.yaml"):
        manifest.unlink()
    second.wait_for("settled with 0 pods")
    second.end(signal.SIGTERM)
    same = remembered(state / "checkpoint") == beginning
    check(same, "what is remembered is byte for byte what it was at the start")
    check(not held(state), "no process is left")
    check(not mounts(state), "no mount is left")


def main() -> int:
    """Show it; 1 when something was not as it should be."""
    parser = argparse.ArgumentParser(prog="python -m examples.agent.demo", description=__doc__)
    parser.add_argument("--machine", metavar="NAME|DIR", help=f"{', '.join(MACHINES)}, or a captured /sys")
    chosen = parser.parse_args()
    machine = ["--machine", chosen.machine] if chosen.machine else []
    started = time.monotonic()
    cgroup = f"nodealloc-demo-{os.getpid()}"
    plugins: list[subprocess.Popen[bytes]] = []
    try:
        with clean(cgroup) as folder:
            try:
                show(folder, machine, cgroup, plugins)
            finally:
                for plugin in plugins:
                    plugin.kill()
                    plugin.wait()
    except DemoError as error:
        print(f"\nThe demo failed: {error}", file=sys.stderr)
        return 1
    print(f"\nThe demo went as it should, in {time.monotonic() - started:.1f} s.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
