"""`python -m tests.stories.joined FILE …`: the example agent, with an API server's objects from files."""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Final

import attrs

from examples.agent.__main__ import options, run
from examples.agent.place import Place
from examples.agent.wiring import wire
from nodealloc.agent import Agent, Rulebook
from nodealloc.dirwatch import InotifyWatcher
from nodealloc.dsw_asw import Cancel
from nodealloc.errors import RetryableError
from nodealloc.kubeconfig import KubeletConfig, NodePlan
from nodealloc.podfacts import LifeState
from nodealloc.podsources import Reading
from nodealloc.podspec import Pod
from nodealloc.volumes.plugins import ConfigObject, PodObjects

__all__ = ["SERVICES", "ApiFile", "ObjectsFile"]

SERVICES: Final = {
    "KUBERNETES_PORT": "tcp://10.96.0.1:443",
    "KUBERNETES_PORT_443_TCP": "tcp://10.96.0.1:443",
    "KUBERNETES_PORT_443_TCP_ADDR": "10.96.0.1",
    "KUBERNETES_PORT_443_TCP_PORT": "443",
    "KUBERNETES_PORT_443_TCP_PROTO": "tcp",
    "KUBERNETES_SERVICE_HOST": "10.96.0.1",
    "KUBERNETES_SERVICE_PORT": "443",
    "KUBERNETES_SERVICE_PORT_HTTPS": "443",
}
"""What pods know of the one service of a cluster."""


class ApiFile:
    """A `Source`: a JSON list of pods, as an API server has them; it is replaced as a whole.

    Args:
        path: The file; while it is away nothing is known.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Pod] = {}

    def read(self, _cancel: Cancel, /) -> Reading:
        """See `Source`; raises `OSError` while the server is away."""
        found: dict[str, Pod] = {}
        for one in json.loads(self._path.read_text()):
            text = json.dumps(one, sort_keys=True)
            found[text] = self._known.get(text) or Pod.from_manifest(one)
        self._known = found
        return Reading(pods=tuple(found.values()))


@attrs.frozen
class ObjectsFile:
    """A `ConfigSource`: a JSON list of config maps and secrets; it is replaced as a whole.

    Attributes:
        path: The file; while it is away nothing is known.
        kind: `ConfigMap` or `Secret`.
    """

    path: Path
    kind: str

    def read(self, namespace: str, name: str, /) -> ConfigObject | None:
        """See `ConfigSource`."""
        try:
            objects = json.loads(self.path.read_text())
        except FileNotFoundError:
            raise RetryableError("the API server is away") from None
        for one in objects:
            meta = one["metadata"]
            if (one.get("kind"), meta["namespace"], meta["name"]) == (self.kind, namespace, name):
                texts, codes = ("stringData", "data") if self.kind == "Secret" else ("data", "binaryData")
                data = {key: base64.b64decode(text) for key, text in (one.get(codes) or {}).items()}
                data |= {key: text.encode() for key, text in (one.get(texts) or {}).items()}
                version = hashlib.sha256(json.dumps(one, sort_keys=True).encode()).hexdigest()
                binary = frozenset(one.get("binaryData") or {})
                immutable = one.get("immutable") is True
                return ConfigObject(data=data, version=version, immutable=immutable, binary=binary)
        return None


def wired(file: Path, config: KubeletConfig, plan: NodePlan, place: Place, rules: Rulebook) -> Agent:
    """As the example, with a server's pods; that nothing is left of a deleted one is told like a status."""
    joined = attrs.evolve(
        place,
        others={"api": ApiFile(file)},
        wakers={"api": InotifyWatcher(str(file.parent), below=False)},
        settings=attrs.evolve(place.settings, services=SERVICES),
        objects=PodObjects(
            config_maps=ObjectsFile(file.with_name("objects.json"), "ConfigMap"),
            secrets=ObjectsFile(file.with_name("objects.json"), "Secret"),
        ),
    )
    agent = wire(config, plan, joined, rules)
    told = place.status.open("a", buffering=1)

    def follow() -> None:
        for uid in changed.take():
            facts = agent.lives.facts.get(uid)
            if facts is None or facts.life is not LifeState.FINISHED or not facts.pod.deletion_timestamp:
                continue
            pod = facts.pod
            line = {"unix_s": time.time(), "uid": uid, "namespace": pod.namespace, "name": pod.name}
            told.write(json.dumps({**line, "finished": True}) + "\n")

    changed = agent.lives.facts.watch(follow)
    return agent


if __name__ == "__main__":
    file_of_pods = Path(sys.argv.pop(1))
    sys.exit(run(options(), partial(wired, file_of_pods)))
