"""Which memory exactly: blocks per NUMA node and page size.

An *allocator* (`MemoryAllocator`) is a policy and its *state* as one value; it
plugs into `nodealloc.topology.admit`. A grant is a few *blocks*: so many bytes
of one *resource* (`memory`, `hugepages-2Mi`) on a *group* of NUMA nodes. A node
serves allocations of its own or those of one group, never both.

```text
 Machine ─┐                        hints(claims)  ─▶ groups that could serve
          ├─▶ Layout ─▶ State ─▶ Allocator ──────── allocate(claim, affinity) ─▶ Allocator' | Shortfall
 reserved ┘   bytes     free,      release(workload) ─▶ Allocator'
              per node  groups     mems_of(owner) ─▶ 0-1 for cpuset.mems
```
"""

from nodealloc.memblocks._allocator import MemoryAllocator
from nodealloc.memblocks._blocks import Block, NodeMemory, hugepages
from nodealloc.memblocks._errors import ReservationMismatchError
from nodealloc.memblocks._options import MemoryOptions, MemoryPolicy
from nodealloc.memblocks._reserved import check_reserved, parse_reserved
from nodealloc.memblocks._unpinned import UnpinnedMemory

__all__ = [
    "Block",
    "MemoryAllocator",
    "MemoryOptions",
    "MemoryPolicy",
    "NodeMemory",
    "ReservationMismatchError",
    "UnpinnedMemory",
    "check_reserved",
    "hugepages",
    "parse_reserved",
]
