"""The example agent on a simulated node.

`python -m nodealloc.testing.simulation --wiring examples.agent.simulated:agent`
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from examples.agent.place import Place, Stage
from examples.agent.wiring import wire
from nodealloc.agent import AGENT_FORMATS, Rulebook
from nodealloc.checkpoint import FileStore, StoreFailedError
from nodealloc.dsw_asw import Driven
from nodealloc.kubeconfig import NodePlan, kubelet_config
from nodealloc.podlife import NodeSettings
from nodealloc.podspec import resources
from nodealloc.testing.simulation import Killed
from nodealloc.testing.simulation.node import AgentParts, NodePorts

__all__ = ["agent"]

_CONFIGURATION = {
    "cpuManagerPolicy": "static",
    "memoryManagerPolicy": "Static",
    "topologyManagerPolicy": "restricted",
    "reservedSystemCPUs": "0",
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "100Mi"}}],
    "evictionHard": {"memory.available": "100Mi"},
}


def agent(ports: NodePorts, say: Callable[[str], object] | None = None) -> Driven:
    """The agent of `wire`, built from a simulated node's ports; `say` is told what it says by itself."""
    config, name = kubelet_config(_CONFIGURATION, source="the simulation"), "simulated"
    memory_bytes = sum(one.memory_bytes for one in ports.machine.numa_nodes)
    capacity = resources(
        {"cpu": len(ports.machine.cpus), "memory": memory_bytes, "ephemeral-storage": 1 << 40, "pid": 1 << 15}
    )
    plan = NodePlan.of(config, ports.machine, name=name, capacity=capacity, kernel="6.1.0")
    on = AgentParts(ports, is_aligned=True)
    root = Path(tempfile.mkdtemp(prefix="simulated-"))
    ports.life.on_end(partial(shutil.rmtree, root, ignore_errors=True))
    try:
        store = FileStore(ports.disk, AGENT_FORMATS, files=ports.files)
        place = Place(
            runtime=ports.runtime,
            cpusets=ports.cpusets,
            driver=ports.cgroups,
            store=store,
            root=root,
            settings=NodeSettings(name=name, memory_capacity_bytes=capacity["memory"].value),
            node_ip="127.0.0.1",
            status=root / "status.jsonl",
            others=dict(ports.sources),
        )
        stage = Stage(
            executor=on.executor,
            clock=on.clock,
            now=ports.now,
            unix_s=on.unix_s,
            hooks=on.hooks(),
            volumes=on.volumes,
            plugins=on.device_plugins,
            sink=ports.sink,
            say=say,
        )
        return wire(config, plan, place, Rulebook(), stage)
    except StoreFailedError as error:
        ports.life.end()
        raise Killed from error
