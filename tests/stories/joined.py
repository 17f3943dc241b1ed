"""`python -m tests.stories.joined FILE …`: the example agent, with an API server's pods from a file."""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Final

import attrs

from examples.agent.__main__ import options, run
from examples.agent.wiring import Place, wire
from nodealloc.agent import Agent, Rulebook
from nodealloc.dirwatch import InotifyWatcher
from nodealloc.dsw_asw import Cancel
from nodealloc.kubeconfig import KubeletConfig, NodePlan
from nodealloc.podfacts import LifeState
from nodealloc.podsources import Reading
from nodealloc.podspec import Pod, pod_from_manifest

__all__ = ["SERVICES", "ApiFile"]

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
            found[text] = self._known.get(text) or pod_from_manifest(one)
        self._known = found
        return Reading(pods=tuple(found.values()))


def wired(file: Path, config: KubeletConfig, plan: NodePlan, place: Place, rules: Rulebook) -> Agent:
    """As the example, with a server's pods; that nothing is left of a deleted one is told like a status."""
    joined = attrs.evolve(
        place,
        others={"api": ApiFile(file)},
        wakers={"api": InotifyWatcher(str(file.parent), below=False)},
        settings=attrs.evolve(place.settings, services=SERVICES),
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
