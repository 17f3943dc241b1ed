"""What reading a pod costs: 15 containers with environment, amounts and mounts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bench.figure import Figure, best_ns
from nodealloc.podspec import Pod

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["figures"]

_CONTAINERS = 15


def _container(number: int) -> dict[str, object]:
    return {
        "name": f"app-{number}",
        "image": "registry.example/app:1.2",
        "command": ["run"],
        "args": ["--port", "80"],
        "env": [{"name": f"E{n}", "value": "v"} for n in range(4)],
        "resources": {
            "requests": {"cpu": "250m", "memory": "64Mi"},
            "limits": {"cpu": "500m", "memory": "128Mi"},
        },
        "volumeMounts": [
            {"name": "data", "mountPath": "/data"},
            {"name": "conf", "mountPath": "/conf", "readOnly": True},
        ],
    }


def figures() -> Iterator[Figure]:
    """Reading, and writing again."""
    manifest = {
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {
            "containers": [_container(number) for number in range(_CONTAINERS)],
            "volumes": [{"name": "data", "emptyDir": {}}, {"name": "conf", "configMap": {"name": "c"}}],
        },
    }
    text = json.dumps(manifest)
    pod = Pod.from_manifest(manifest)
    plain = best_ns(lambda: json.loads(text))
    for name, took in (
        ("a pod of 15 containers is read", best_ns(lambda: Pod.from_manifest(manifest))),
        ("the same is written", best_ns(pod.to_manifest)),
    ):
        yield Figure(package="podspec", name=name, value=took / 1e3, unit="µs")
        yield Figure(package="podspec", name=f"{name}, over parsing its JSON", value=took / plain, unit="×")
