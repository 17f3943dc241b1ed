"""What does this node hold now: load, verify, admit, commit, release.

```text
   pods, claims ─▶ admit() ─▶ decision ─▶ commit ─▶ current snapshot ─▶ before_start() ─▶ Confinement
                    pure       value      one write                       container bound
```

- A *record* is what is remembered of one workload: its claims, where it went, what
  it was granted, which containers use it.
- A *keeper* says how the grants of one kind of allocator are remembered.
- A *confinement* is where a container may run; apply it before its first instruction.
"""

from nodealloc.node._confinement import Confinement, confinement_of
from nodealloc.node._cpu_keeper import CpuKeeper
from nodealloc.node._errors import NotAdmittedError
from nodealloc.node._loading import StartReport
from nodealloc.node._memory_keeper import MemoryKeeper
from nodealloc.node._node import FORMATS, NodeAllocator
from nodealloc.node._ports import Keeper, Restored, Running, Runtime
from nodealloc.node._record import WorkloadRecord

__all__ = [
    "FORMATS",
    "Confinement",
    "CpuKeeper",
    "Keeper",
    "MemoryKeeper",
    "NodeAllocator",
    "NotAdmittedError",
    "Restored",
    "Running",
    "Runtime",
    "StartReport",
    "WorkloadRecord",
    "confinement_of",
]
