"""A KubeletConfiguration as the options of the packages.

```text
  kubelet.yaml ─▶ read_kubelet_config ─▶ KubeletConfig ─▶ NodePlan.of ─▶ node, chain, cgroup tree
                  every fault, named     a value          what it comes to on a machine
```

- Every field of the document means what it says, or is refused by its name: one that nothing
  here acts upon yet, one of which only some values are supported, one that is no field.
  Whoever takes over a kubelet's own file is told of such fields instead (`unread`).
- A *plan* of a node is what a configuration comes to on a machine: the snapshot with nothing
  held, the view that pods are judged by, the chain, the cgroup tree.

    >>> config = kubelet_config({"maxPods": 20, "cpuManagerPolicy": "static", "reservedSystemCPUs": "0"})
    >>> config.max_pods, config.file_check_frequency_s
    (20, 20.0)
"""

from nodealloc.kubeconfig._capacity import has_app_armor, machine_capacity, swap_bytes
from nodealloc.kubeconfig._codec import kubelet_config, read_kubelet_config
from nodealloc.kubeconfig._configuration import CrashLoopBackOff, KubeletConfig
from nodealloc.kubeconfig._life_policy import life_policy
from nodealloc.kubeconfig._plan import NodePlan
from nodealloc.kubeconfig._settings import node_settings
from nodealloc.kubeconfig._sources import pod_sources

__all__ = [
    "CrashLoopBackOff",
    "KubeletConfig",
    "NodePlan",
    "has_app_armor",
    "kubelet_config",
    "life_policy",
    "machine_capacity",
    "node_settings",
    "pod_sources",
    "read_kubelet_config",
    "swap_bytes",
]
