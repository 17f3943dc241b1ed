"""A node changes hands while its containers run, on a real containerd. `nox -s cri` runs these."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from typing import Final

import pytest

from examples.agent.outside import ContainerdView, Surroundings, surroundings
from nodealloc.podfacts import PodIdentity
from nodealloc.podspec import Container, kubelet_hash
from nodealloc.runtime import ContainerConfig, SandboxConfig

pytestmark = [pytest.mark.cri, pytest.mark.slow]

if os.environ.get("NODEALLOC_CRI_VERSION") != "1.7":
    pytest.skip("needs containerd 1.7 of its own: nox -s cri", allow_module_level=True)

UID: Final = "0b7e5f0a-53ad-4a8e-9e0e-6a3c2d7b1f55"
SCRIPT: Final = ("sh", "-c", "trap 'exit 0' TERM; sleep 86400 & wait $!")


def manifest(place: Surroundings, name: str, uid: str = "") -> str:
    """One container that sleeps."""
    app = {"name": "app", "image": place.image, "imagePullPolicy": "IfNotPresent", "command": SCRIPT}
    metadata = {"name": name, **({"uid": uid} if uid else {})}
    spec = {**place.spec, "containers": [app], "terminationGracePeriodSeconds": 5}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def started_by_a_kubelet(place: Surroundings) -> str:
    """A container that was restarted four times, with a kubelet's words about it and none of ours."""
    runtime = place.looks
    assert isinstance(runtime, ContainerdView)
    box = SandboxConfig(
        pod=PodIdentity(uid=UID, namespace="default", name="web-demo"),
        hostname="web-demo",
        host_network=True,
        cgroup_parent=f"/{place.cgroup}/kubepods/besteffort/pod{UID}",
    )
    app = ContainerConfig(
        name="app",
        image=place.image,
        command=SCRIPT,
        attempt=4,
        grace_s=5,
        definition=kubelet_hash(Container(name="app", image=place.image)),
    )
    made = runtime.create_container(runtime.run_sandbox(box), app, box)
    runtime.start_container(made)
    return made


def eventually(holds: Callable[[], bool]) -> None:
    """Wait for something to come true."""
    ends_s = time.monotonic() + 60.0
    while not holds():
        assert time.monotonic() < ends_s, "it did not come true"
        time.sleep(0.05)


def ready_since(place: Surroundings, line: int) -> dict[str, int]:
    """Pods that were told to be ready since a line of the status file, with their restarts."""
    found: dict[str, int] = {}
    for said in map(json.loads, place.status()[line:]):
        conditions = said["status"]["conditions"] if said["status"] else ()
        if any(one["type"] == "Ready" and one["status"] == "True" for one in conditions):
            found[said["name"]] = said["status"]["containerStatuses"][0]["restartCount"]
    return found


@pytest.mark.parametrize("rules", ["right", "kubelet"])
def test_a_node_changes_hands_and_not_one_container_is_restarted(rules: str) -> None:
    """What a kubelet started goes on under the agent, and all of it under one that remembers nothing."""
    with surroundings("containerd") as place:
        place.options += ["--rules", rules]
        theirs = started_by_a_kubelet(place)
        (place.pods / "web.json").write_text(manifest(place, "web", UID))
        (place.pods / "own.json").write_text(manifest(place, "own"))
        agent = place.start()
        eventually(lambda: ready_since(place, 0) == {"web-demo": 4, "own-demo": 0})
        before = place.running()
        assert (before["web/app"], sorted(before)) == (theirs, ["own/app", "web/app"])
        agent.end(signal.SIGTERM)
        assert place.running() == before
        # Another agent has the runtime's word alone, as a kubelet would.
        shutil.rmtree(place.folder / "root" / "checkpoint")
        line = len(place.status())
        place.start()
        eventually(lambda: ready_since(place, line) == {"web-demo": 4, "own-demo": 0})
        time.sleep(3.0)
        place.agent_lives()
        assert place.running() == before
