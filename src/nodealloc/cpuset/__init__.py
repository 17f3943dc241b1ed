"""Which CPUs exactly: pickers, policies, who holds what, and keeping cgroups in line with it.

```text
   DECIDE   Claim ──▶ CpuAllocator ──▶ CpuAllocator'            pure: a value in, a value out
                       policy + state
   REMEMBER            to_kubelet, to_record ◀──▶ plan_restore  keep / move / evict
   APPLY               CpusetReconciler ──▶ CpusetWriter       cgroup v1, v2, process affinity, yours
```

| noun               | what it is                                                                |
|--------------------|---------------------------------------------------------------------------|
| `CpuLayout`        | a machine as masks: sockets, NUMA nodes, caches, cores                     |
| `Picker`           | which of the free CPUs to take; `KubeletPicker` by default                 |
| `StaticPolicy`     | who gets CPUs for itself, with the kubelet's options; else `NonePolicy`    |
| `CpuAllocator`     | policy and state as one immutable value: an `Allocator` of `topology`      |
| `CpusetReconciler` | writes what was granted, where it is not written already                   |

    >>> from nodealloc.machine import machine_from_text
    >>> from nodealloc.podspec import Quantity
    >>> from nodealloc.topology import Claim, Owner, TopologyHint
    >>> machine = machine_from_text("2 sockets × 4 cores × 2 threads")
    >>> node = CpuAllocator.of(machine, reserved=CPUSet.of(0))
    >>> job = Claim(owner=Owner("job-1", "rank-0"), amounts={"cpu": Quantity.of(2)})
    >>> node = node.allocate(job, TopologyHint(None, True))
    >>> node.cpus_of(job.owner), node.shared
    (CPUSet('1,9'), CPUSet('0,2-8,10-15'))
"""

from nodealloc.cpuset._affinity_writer import AffinityWriter, process_target
from nodealloc.cpuset._allocator import CpuAllocator
from nodealloc.cpuset._cgroup_writers import CgroupV1Writer, CgroupV2Writer
from nodealloc.cpuset._demand import exclusive_cpus_setting
from nodealloc.cpuset._errors import (
    CpusetBusyError,
    CpusetWriteError,
    NotEnoughCpusError,
    PickerError,
    TargetGoneError,
)
from nodealloc.cpuset._layout import CpuLayout
from nodealloc.cpuset._options import StaticOptions
from nodealloc.cpuset._policy import NonePolicy, StaticPolicy
from nodealloc.cpuset._ports import CpusetWriter, Picker
from nodealloc.cpuset._reconciler import CpusetReconciler
from nodealloc.cpuset._take import KubeletPicker, PickMode, take_cpus
from nodealloc.idset import CPUSet

__all__ = [
    "AffinityWriter",
    "CPUSet",
    "CgroupV1Writer",
    "CgroupV2Writer",
    "CpuAllocator",
    "CpuLayout",
    "CpusetBusyError",
    "CpusetReconciler",
    "CpusetWriteError",
    "CpusetWriter",
    "KubeletPicker",
    "NonePolicy",
    "NotEnoughCpusError",
    "PickMode",
    "Picker",
    "PickerError",
    "StaticOptions",
    "StaticPolicy",
    "TargetGoneError",
    "exclusive_cpus_setting",
    "process_target",
    "take_cpus",
]
