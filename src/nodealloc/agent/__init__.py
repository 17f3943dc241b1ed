"""The packages of a pod's life joined: what one of them decides, the others follow.

```text
  sources ─▶ PodLives ── preparers: AdmissionPreparer, …, DevicePreparer ─▶ GrantedConfiguration ─▶ runtime
                │ facts
                └─▶ Agent ─▶ probes, cpusets, node, volumes, statuses
```

Nothing here decides: it is what every agent on a node would write itself to make
the packages work together. Take what suits, and leave out what the node has not.

| part                   | joins                                                                     |
| ---------------------- | ------------------------------------------------------------------------- |
| `AdmissionPreparer`    | `node`, `cpuset`: what a pod holds is its own before anything of it runs  |
| `ConfinedRuntime`      | `cpuset`, `runtime`: a container starts on the CPUs that it may run on then |
| `node_volumes`         | `volumes`: every kind that this machine has something for                 |
| `object_variables`     | `podlife`, `volumes`: config maps and secrets as variables and as files   |
| `DevicePreparer`       | `devices.plugins`: plugins are asked before a container is made           |
| `preparations_of`      | `podlife`: the parts of a pod in the order in which one needs the other   |
| `GrantedConfiguration` | `node`, `devices.plugins`: a container is made with what it was granted       |
| `Agent`                | all of them, as one that is driven                                        |
| `Remembered`           | `checkpoint`: what each package left in the one store                     |
| `Rulebook`, `KUBELET`  | whose rules hold, of all packages at once                                 |
| `StaticPodSink`        | `podstatus`: tells of static pods as a kubelet without an API server does |
| `ContainerGc`          | `runtime`: removes dead containers when a kubelet does                    |
"""

from nodealloc.agent._admission import AdmissionPreparer
from nodealloc.agent._agent import Agent
from nodealloc.agent._confined import ConfinedRuntime
from nodealloc.agent._container_gc import ContainerGc
from nodealloc.agent._devices import DevicePreparer
from nodealloc.agent._granted import GrantedConfiguration
from nodealloc.agent._ports import Beside
from nodealloc.agent._preparations import preparations_of
from nodealloc.agent._remembered import AGENT_FORMATS, Remembered, remembering_editions
from nodealloc.agent._rulebook import KUBELET, Rulebook
from nodealloc.agent._static_pods import StaticPodSink
from nodealloc.agent._variables import object_variables
from nodealloc.agent._volumes import node_volumes

__all__ = [
    "AGENT_FORMATS",
    "KUBELET",
    "AdmissionPreparer",
    "Agent",
    "Beside",
    "ConfinedRuntime",
    "ContainerGc",
    "DevicePreparer",
    "GrantedConfiguration",
    "Remembered",
    "Rulebook",
    "StaticPodSink",
    "node_volumes",
    "object_variables",
    "preparations_of",
    "remembering_editions",
]
