"""May a pod come in: one chain of handlers over a view of the node.

- A *handler* is a pure function `(Pod, NodeView) -> Verdict`: admitted, refused
  (reason, message, figures), or not yet (who is waited for).
- A *chain* asks its handlers one after the other. The first who does not admit
  has the last word.
- A *critical* pod (static, a mirror, or of a priority of the system) has room
  made: a plan names who has to end, and the pod waits for that.

```text
 Pod, NodeView ─▶ shutdown ▶ pressure ▶ operating_system ▶ node_fit ▶ node_affinity ▶ node_name
                  ▶ host_ports ▶ taints ▶ yours ▶ allocation (topology.admit)
                       │                        │
                    Refused, NotYet        MakingRoom(victims) for a critical pod
```

    >>> from nodealloc.podfacts import NodeView
    >>> from nodealloc.podspec import Container, Pod, resources as amounts
    >>> chain = chain_of()
    >>> view = NodeView(name="n1", allocatable=amounts({"cpu": 32, "memory": "64Gi", "pods": 110}))
    >>> large = Pod(uid="u", name="web", containers=(Container(name="app", requests={"cpu": 1000}),))
    >>> print(chain(large, view))
    OutOfcpu: Node didn't have enough resource: cpu, requested: 1000000, used: 0, capacity: 32000

What a pod holds that is ending is *not yet* free. After a restart of the agent,
pods that run are taken into the view as they are; no handler is asked about them.
"""

from nodealloc.admission._apparmor import AppArmor
from nodealloc.admission._chain import Chain, Handler, allocation, chain_of
from nodealloc.admission._fit import node_fit
from nodealloc.admission._host_ports import host_ports
from nodealloc.admission._node_state import pressure, shutdown
from nodealloc.admission._placement import node_affinity, node_name, operating_system, taints
from nodealloc.admission._preemption import victims
from nodealloc.admission._resize import Resizes, resized
from nodealloc.admission._rules import KUBELET, Rules
from nodealloc.admission._sysctls import SysctlAllowList, safe_sysctls
from nodealloc.admission._verdicts import MakingRoom

__all__ = [
    "KUBELET",
    "AppArmor",
    "Chain",
    "Handler",
    "MakingRoom",
    "Resizes",
    "Rules",
    "SysctlAllowList",
    "allocation",
    "chain_of",
    "host_ports",
    "node_affinity",
    "node_fit",
    "node_name",
    "operating_system",
    "pressure",
    "resized",
    "safe_sysctls",
    "shutdown",
    "taints",
    "victims",
]
