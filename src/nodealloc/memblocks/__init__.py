"""Which memory exactly: blocks per NUMA node and page size.

An *allocator* (`MemoryAllocator`) is a policy and its *state* as one value; it
plugs into `nodealloc.topology.admit`. A grant is a few *blocks*: so many bytes
of one *resource* (`memory`, `hugepages-2Mi`) on a *group* of NUMA nodes. A node
serves allocations of its own or those of one group, never both.

```text
 Machine ─┐                        hints(claims)  ─▶ groups that could serve
          ├─▶ Layout ─▶ State ─▶ Allocator ──────── allocate(claim, affinity) ─▶ Allocator' | Shortfall
 reserved ┘   bytes     free,      release(workload) ─▶ Allocator'
              per node  groups     mems(…) ─▶ "0-1" for cpuset.mems
```
"""

from nodealloc.memblocks._allocator import MemoryAllocator, UnpinnedMemory, memory_allocator, restore
from nodealloc.memblocks._blocks import Block, MemoryTable, NodeMemory, hugepages, mems
from nodealloc.memblocks._codec import from_kubelet, to_kubelet
from nodealloc.memblocks._errors import ReservationMismatchError
from nodealloc.memblocks._layout import Layout, Reserved
from nodealloc.memblocks._options import MemoryOptions, MemoryPolicy
from nodealloc.memblocks._recorded import RecordedState
from nodealloc.memblocks._reserved import check_reserved, parse_reserved
from nodealloc.memblocks._restore import MAX_DRIFT_BYTES, Drift, Eviction, Move, RestorePlan
from nodealloc.memblocks._state import Grants, MemoryState
from nodealloc.memblocks._transitions import replay

__all__ = [
    "MAX_DRIFT_BYTES",
    "Block",
    "Drift",
    "Eviction",
    "Grants",
    "Layout",
    "MemoryAllocator",
    "MemoryOptions",
    "MemoryPolicy",
    "MemoryState",
    "MemoryTable",
    "Move",
    "NodeMemory",
    "RecordedState",
    "ReservationMismatchError",
    "Reserved",
    "RestorePlan",
    "UnpinnedMemory",
    "check_reserved",
    "from_kubelet",
    "hugepages",
    "memory_allocator",
    "mems",
    "parse_reserved",
    "replay",
    "restore",
    "to_kubelet",
]
