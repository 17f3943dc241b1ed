"""`python -m examples.agent`: run the pods of a folder on this machine until told to stop."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import time
from functools import partial
from pathlib import Path

from examples.agent.agent import Agent
from examples.agent.inputs import MACHINES, read_machine, read_pods
from examples.agent.node import Node, empty_node
from examples.agent.place import find_place
from examples.agent.rebuild import adopt_running
from examples.agent.runtime import ProcessRuntime
from examples.agent.volumes import Volumes
from nodealloc.cgroups import QosTree, TreeOptions
from nodealloc.checkpoint import FileStore, this_machine
from nodealloc.cpuset import CpusetReconciler
from nodealloc.dsw_asw import InlineExecutor
from nodealloc.errors import NodeallocError, RetryableError
from nodealloc.idset import CPUSet
from nodealloc.node import FORMATS
from nodealloc.podspec import Pod

HERE = Path(__file__).parent
WAITS = "waits"


def options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="python -m examples.agent", description=__doc__)
    parser.add_argument("--pods", type=Path, default=HERE / "pods", help="folder of Pod manifests; watched")
    parser.add_argument(
        "--state", type=Path, default=Path("build/agent"), help="folder for all that is remembered"
    )
    parser.add_argument(
        "--machine", metavar="NAME|DIR", help=f"{', '.join(MACHINES)}, a line of text, or a captured /sys"
    )
    parser.add_argument("--policy", default="restricted", help="topology policy (default: restricted)")
    parser.add_argument("--reserved", default="0", help="CPUs of the system, a Linux list (default: 0)")
    parser.add_argument("--cgroup", default="nodealloc-agent", help="cgroup of all pods")
    return parser.parse_args()


def main() -> int:
    """Run until SIGTERM or SIGINT; containers stay behind for the next agent. 2 for bad input."""
    stop: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda caught, _frame: stop.append(caught))
    chosen = options()
    try:
        return run(chosen, stop)
    except (NodeallocError, OSError, ValueError) as error:
        print(f"agent: {error}", file=sys.stderr)
        return 2


def run(chosen: argparse.Namespace, stop: list[int]) -> int:
    """Read everything before anything is written, then go round and round."""
    pods = read_pods(chosen.pods)
    machine, notes = read_machine(chosen.machine)
    reserved = CPUSet.parse(chosen.reserved)
    for note in notes:
        say(f"not known: {note}")
    empty = empty_node(machine, policy=chosen.policy, reserved=reserved)
    chosen.state.mkdir(parents=True, exist_ok=True)
    with FileStore(chosen.state / "checkpoint", FORMATS, identity=this_machine()) as store:
        place = find_place(chosen.cgroup, chosen.state / "cgroup", real_machine=chosen.machine is None)
        say(f"containers are confined by {place.words}")
        runtime = ProcessRuntime(chosen.state / "containers", place.driver)
        rebuild = partial(adopt_running, pods=pods, runtime=runtime, place=place, say=say)
        node = Node.start(empty, store, runtime, chosen.state, say=say, rebuild=rebuild)
        cpusets = CpusetReconciler(place.writer, executor=InlineExecutor(), allocator=node.cpus, recheck_s=10)
        tree = QosTree(place.driver, TreeOptions(root=place.root))
        volumes = Volumes(chosen.state)
        agent = Agent(machine, node, place, runtime, cpusets, tree, volumes, say)
        try:
            watch(agent, pods, chosen.pods, reserved, stop)
        finally:
            volumes.stop()
            node.stop()
    return 0


def watch(agent: Agent, pods: dict[str, Pod], folder: Path, reserved: CPUSet, stop: list[int]) -> None:
    """Go round until told to stop, and show the node whenever it has settled anew."""
    shown = ("", frozenset[str]())
    before: dict[str, tuple[int, int]] | None = None  # what changed since the first reading is read again
    while not stop:
        try:
            settled = agent.round(pods)
        except RetryableError as error:
            if shown[0] != WAITS:  # once, until a round goes through
                shown = WAITS, frozenset[str]()
                say(f"the agent waits: {error}")
            settled = False
        picture = agent.picture(reserved) + f"\nsettled with {len(agent.node.allocator.records)} pods"
        if settled and shown != (picture, frozenset(pods)):
            shown = picture, frozenset(pods)
            say(picture)
        time.sleep(0.05)
        if (now := look(folder)) != before:
            before, pods = now, reread(folder, pods)


def reread(folder: Path, before: dict[str, Pod]) -> dict[str, Pod]:
    """The pods there are now; those of before while a manifest is at fault."""
    try:
        return read_pods(folder)
    except NodeallocError as error:
        say(f"{error}\n  the pods stay as they were")
        return before


def look(folder: Path) -> dict[str, tuple[int, int]]:
    """What changes when a manifest does: its inode and its time."""
    found: dict[str, tuple[int, int]] = {}
    for path in folder.glob("*.yaml"):
        with contextlib.suppress(OSError):
            found[path.name] = (path.stat().st_ino, path.stat().st_mtime_ns)
    return found


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
