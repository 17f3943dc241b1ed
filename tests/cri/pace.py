"""`python -m tests.cri --pace`: twenty pods, from admission until they are seen to run.

A node admits them and remembers that, their lives are remembered as well, and
each is inspected running. Beside the same calls in a bare loop, which decides,
remembers and looks at nothing. Prints one line of JSON: seconds of both, and
their ratio.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import attrs

from nodealloc._proto import runtime_v1_pb2 as wire
from nodealloc._rpc.caller import Caller
from nodealloc.checkpoint import FileStore, Store, row_formats
from nodealloc.cpuset import CpuAllocator
from nodealloc.cri import CriRuntime
from nodealloc.cri import _codec as codec
from nodealloc.cri import _requests as requests
from nodealloc.dsw_asw import Group
from nodealloc.machine import discover
from nodealloc.memblocks import MemoryAllocator
from nodealloc.node import FORMATS, NodeAllocator
from nodealloc.podfacts import PodIdentity
from nodealloc.podlife import POD_ROWS, PodFacts, PodLives
from nodealloc.podspec import Container, Pod, PullPolicy, resources
from nodealloc.runtime import RUNTIME_ROWS, ContainerConfig, RunState, RuntimeWatch, SandboxConfig
from nodealloc.testing.podlife import FakeHooks, PlainConfiguration
from nodealloc.topology import Placed, Snapshot
from tests.cri.containerd import running

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PODS, ROUNDS = 20, 5
PATIENCE_S = 60.0


def boxes(name: str) -> Sequence[SandboxConfig]:
    """Twenty sandboxes of a round."""
    cgroups = os.environ["NODEALLOC_CRI_CGROUPS"]
    return [
        SandboxConfig(
            pod=PodIdentity(uid=f"{name}-{number}", namespace="default", name=f"{name}-{number}"),
            host_network=True,
            cgroup_parent=f"/{cgroups}/{name}-{number}",
        )
        for number in range(PODS)
    ]


APP = ContainerConfig(name="app", image="localhost/busybox:1", command=("sleep", "1000"))


def bare(caller: Caller, asked: Sequence[SandboxConfig]) -> float:
    """The calls alone, over a connection that is up."""
    began_s = time.monotonic()
    for box in asked:
        sandbox = codec.decode_id(caller.call("RunPodSandbox", requests.encode_run(box), 60.0))
        made = codec.decode_id(
            caller.call("CreateContainer", requests.encode_create(sandbox, APP, box), 60.0)
        )
        caller.call("StartContainer", requests.encode_about("StartContainer", made), 60.0)
    return time.monotonic() - began_s


class _Configuration(PlainConfiguration):
    """In the cgroups of these tests."""

    def sandbox(self, pod: Pod, attempt: int, provided: Mapping[str, object], /) -> SandboxConfig:
        made = super().sandbox(pod, attempt, provided)
        return attrs.evolve(made, cgroup_parent=f"/{os.environ['NODEALLOC_CRI_CGROUPS']}/{pod.uid}")


def pods(name: str) -> Sequence[Pod]:
    """Twenty pods of a round."""
    box = Container(
        name="app",
        image=APP.image,
        entrypoint=APP.command,
        requests=resources({"cpu": "10m", "memory": "16Mi"}),
        image_pull_policy=PullPolicy.IF_NOT_PRESENT,
    )
    return [
        Pod(uid=f"{name}-{number}", name=f"{name}-{number}", containers=(box,), host_network=True)
        for number in range(PODS)
    ]


def node(store: Store) -> NodeAllocator:
    """A node that holds nothing, and remembers."""
    machine = discover("/sys").machine
    cpus = CpuAllocator.of(machine, reserved=0)
    made = NodeAllocator(Snapshot.of(machine, allocators=[cpus, MemoryAllocator.of(machine)]), store)
    made.start()
    return made


def ours(door: NodeAllocator, lives: PodLives, asked: Sequence[Pod]) -> float:
    """From the node's door until whoever looks has inspected each of them running."""
    began_s = time.monotonic()
    for pod in asked:
        verdict = door.admit(pod)
        assert isinstance(verdict, Placed), verdict
        lives.put(pod)
    wanted = {pod.uid for pod in asked}
    while wanted:
        wanted -= {uid for uid in wanted if _runs(lives.facts.get(uid))}
        if time.monotonic() - began_s > PATIENCE_S:
            uid = min(wanted)
            raise TimeoutError(
                f"{len(wanted)} do not run; {uid}: {lives.facts.get(uid)} {lives.failures(uid)}"
            )
        time.sleep(0.001)
    return time.monotonic() - began_s


def _runs(facts: PodFacts | None) -> bool:
    report = facts.known.report if facts is not None and facts.known is not None else None
    return report is not None and any(one.record.state is RunState.RUNNING for one in report.containers)


def round_of(runtime: CriRuntime, store: Store, name: str, *, events: bool) -> float:
    """An agent of its own for each round; it is stopped before its pods are cleared away."""
    watch = RuntimeWatch(runtime, events=runtime if events else None, journal=store)
    lives = PodLives(runtime, watch=watch, configuring=_Configuration(), hooks=FakeHooks(), journal=store)
    door = node(store)
    with Group(watch, lives):
        while watch.heard().listing == 0:
            time.sleep(0.01)
        lives.heard()
        return ours(door, lives, pods(name))


def clear(runtime: CriRuntime) -> None:
    """Nothing is left of a round."""
    for pod in runtime.listing().pods.values():
        for sandbox in pod.sandboxes:
            runtime.stop_sandbox(sandbox.id)
            runtime.remove_sandbox(sandbox.id)


def main() -> int:
    """Both in turn, so that whatever else the machine does is done to both."""
    root, version = Path(os.environ["NODEALLOC_CRI_ROOT"]), os.environ["NODEALLOC_CRI_VERSION"]
    folder = Path(os.environ["NODEALLOC_CRI_FOLDER"])
    found: dict[str, list[float]] = {"bare": [], "ours": []}
    with running(root, folder / "containerd", version) as containerd:
        runtime = CriRuntime(containerd.socket)
        caller = Caller(containerd.socket, wire.DESCRIPTOR, "RuntimeService", largest_bytes=1 << 24)
        for number in range(ROUNDS):
            found["bare"].append(bare(caller, boxes(f"bare{number}")))
            clear(runtime)
            with FileStore(
                folder / f"state-{number}", {**FORMATS, **row_formats(POD_ROWS, RUNTIME_ROWS)}
            ) as store:
                found["ours"].append(round_of(runtime, store, f"ours{number}", events=version != "1.6"))
            clear(runtime)
        caller.close()
        runtime.close()
    bare_s, ours_s = median(found["bare"]), median(found["ours"])
    print(json.dumps({"bare_s": bare_s, "ours_s": ours_s, "ratio": ours_s / bare_s, **found}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
