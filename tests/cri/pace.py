"""`python -m tests.cri --pace`: twenty pods, from asking for them until they are seen to run.

Beside the same calls in a bare loop, which looks at nothing. Prints one line of
JSON: seconds of both, and their ratio.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from nodealloc._proto import runtime_v1_pb2 as wire
from nodealloc._rpc.caller import Caller
from nodealloc.cri import CriRuntime
from nodealloc.cri import _codec as codec
from nodealloc.cri import _requests as requests
from nodealloc.podfacts import PodIdentity
from nodealloc.runtime import ContainerConfig, Pace, RunState, RuntimeWatch, SandboxConfig
from tests.cri.containerd import running

if TYPE_CHECKING:
    from collections.abc import Sequence

PODS, ROUNDS = 20, 5


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


def ours(runtime: CriRuntime, watch: RuntimeWatch, asked: Sequence[SandboxConfig]) -> float:
    """Through the ports, until whoever looks has inspected each of them running."""
    began_s = time.monotonic()
    wanted: dict[str, str] = {}
    for box in asked:
        made = runtime.create_container(runtime.run_sandbox(box), APP, box)
        runtime.start_container(made)
        wanted[box.pod.uid] = made
    while wanted:
        for uid, made in tuple(wanted.items()):
            known = watch.pods.get(uid)
            if known is not None and known.marks.get(made) is RunState.RUNNING and known.report is not None:
                del wanted[uid]
        time.sleep(0.001)
    return time.monotonic() - began_s


def clear(runtime: CriRuntime) -> None:
    """Nothing is left of a round."""
    for pod in runtime.listing().pods.values():
        for sandbox in pod.sandboxes:
            runtime.stop_sandbox(sandbox.id)
            runtime.remove_sandbox(sandbox.id)


def main() -> int:
    """Both in turn, so that whatever else the machine does is done to both."""
    root, version = Path(os.environ["NODEALLOC_CRI_ROOT"]), os.environ["NODEALLOC_CRI_VERSION"]
    found: dict[str, list[float]] = {"bare": [], "ours": []}
    with running(root, Path(os.environ["NODEALLOC_CRI_FOLDER"]) / "containerd", version) as containerd:
        runtime = CriRuntime(containerd.socket)
        caller = Caller(containerd.socket, wire.DESCRIPTOR, "RuntimeService", largest_bytes=1 << 24)
        for number in range(ROUNDS):
            found["bare"].append(bare(caller, boxes(f"bare{number}")))
            clear(runtime)
            events = None if version == "1.6" else runtime
            with RuntimeWatch(runtime, events=events, pace=Pace()) as watch:
                while watch.heard().listing == 0:
                    time.sleep(0.01)
                found["ours"].append(ours(runtime, watch, boxes(f"ours{number}")))
            clear(runtime)
        caller.close()
        runtime.close()
    bare_s, ours_s = median(found["bare"]), median(found["ours"])
    print(json.dumps({"bare_s": bare_s, "ours_s": ours_s, "ratio": ours_s / bare_s, **found}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
