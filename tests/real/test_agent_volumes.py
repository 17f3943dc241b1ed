"""The example agent on this machine, with pods that read what their volumes say of them."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from examples.agent.outside import Surroundings, left_behind, surroundings
from tests.real.volumes_namespace import in_namespace

pytestmark = [
    pytest.mark.real,
    pytest.mark.root,
    pytest.mark.forks,
    pytest.mark.usefixtures("as_root"),
]

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0


def manifest(tier: str) -> dict[str, object]:
    """A pod that writes what it reads of itself into a part of a volume, and lives on."""
    field = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
    amount = {"path": "cpu", "resourceFieldRef": {"containerName": "app", "resource": "limits.cpu"}}
    name = {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}
    script = (
        "cat $MOUNT_TOLD/labels $MOUNT_TOLD/cpu $MOUNT_BOTH/deep/name >$MOUNT_OUT/seen; "
        "trap 'exit 0' TERM; sleep 86400 & wait $!"
    )
    mounts = [
        {"name": "told", "mountPath": "/told"},
        {"name": "both", "mountPath": "/both"},
        {"name": "scratch", "mountPath": "/out", "subPathExpr": "$(POD)/logs"},
    ]
    app = {
        "name": "app",
        "image": "this-machine",
        "command": ["sh", "-c", script],
        "env": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "resources": {"limits": {"cpu": "250m"}},
        "volumeMounts": mounts,
    }
    volumes = [
        {"name": "told", "downwardAPI": {"items": [field, amount]}},
        {
            "name": "both",
            "projected": {"sources": [{"downwardAPI": {"items": [{**name, "path": "deep/name"}]}}]},
        },
        {"name": "scratch", "emptyDir": {}},
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "uid": "7d1f", "labels": {"tier": tier}},
        "spec": {"containers": [app], "volumes": volumes, "terminationGracePeriodSeconds": 2},
    }


def wait(place: Surroundings, words: str, holds: Callable[[], object]) -> None:
    """Until it holds."""
    until = time.monotonic() + PATIENCE_S
    while not holds():
        place.agent_lives()
        assert time.monotonic() < until, f"{words}: {place.agent and place.agent.words()}"
        time.sleep(0.05)


def write(place: Surroundings, tier: str) -> None:
    """Put the manifest into the folder, whole."""
    aside = place.pods / ".web.new"
    aside.write_text(json.dumps(manifest(tier)))
    aside.rename(place.pods / "web.json")


@pytest.mark.slow
def test_pods_read_what_is_said_of_them(tmp_path: Path) -> None:
    """On processes: files, a part of a volume, labels that change in place, SIGKILL, and nothing left."""
    del tmp_path

    def child() -> None:
        os.chdir(ROOT)
        with surroundings("processes") as place:
            place.start()
            write(place, "front")
            found = place.folder / "root/pods"
            wait(place, "it runs", place.running)
            (uid,) = (one.name for one in found.iterdir())
            pod = found / uid
            seen = pod / "volumes/kubernetes.io~empty-dir/scratch/web-demo/logs/seen"
            wait(place, "it read", lambda: seen.exists() and "web" in seen.read_text())
            assert seen.read_text() == 'tier="front"1web-demo'
            runs = place.running()
            label = pod / "volumes/kubernetes.io~downward-api/told/labels"
            write(place, "back")
            wait(place, "the label changed", lambda: label.read_text() == 'tier="back"')
            assert place.running() == runs, "nothing was started anew"
            assert place.agent is not None
            place.agent.end(signal.SIGKILL)
            place.start()
            wait(place, "the agent is back", place.is_up)
            write(place, "side")
            wait(place, "the label changed again", lambda: label.read_text() == 'tier="side"')
            assert place.running() == runs, "the same container runs"
            (place.pods / "web.json").unlink()
            wait(place, "it is gone", lambda: place.is_empty() and not left_behind(place))

    in_namespace(child)
