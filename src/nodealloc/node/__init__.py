"""What does this node hold now: load, verify, admit, commit, release.

```text
   pods, claims ─▶ admit() ─▶ decision ─▶ commit ─▶ current snapshot ─▶ before_start() ─▶ Confinement
                    pure       value      one write                       container bound
```

- A *record* is what is remembered of one workload: its claims, where it went, what
  it was granted, which containers use it.
- What an allocator can do besides hints and grants it says by its methods: see
  `nodealloc.topology.Remembers`, `Accounts`, `Confines`, `Adopts`, and `KubeletFile` here.
  No allocator is known by its class.
- `NODE_LIFE` says what a start has to see before anything new is admitted.
- An *advisor* is asked before a decision is final, such as device plugins.
- A *confinement* is where a container may run; apply it before its first instruction.
"""

from nodealloc.node._confinement import confinement_of
from nodealloc.node._errors import AdoptionError, NoKubeletFileError, NotAdmittedError, NotRememberedError
from nodealloc.node._life import NODE_LIFE
from nodealloc.node._loading import StartReport
from nodealloc.node._node import FORMATS, NodeAllocator
from nodealloc.node._ports import Advisor, KubeletFile, RunningContainer, Runtime, TellsRegranted
from nodealloc.node._views import describe, holdings, resource_use
from nodealloc.node._watched import WatchedRuntime
from nodealloc.topology import Confinement, Holding, ResourceUse

__all__ = [
    "FORMATS",
    "NODE_LIFE",
    "AdoptionError",
    "Advisor",
    "Confinement",
    "Holding",
    "KubeletFile",
    "NoKubeletFileError",
    "NodeAllocator",
    "NotAdmittedError",
    "NotRememberedError",
    "ResourceUse",
    "RunningContainer",
    "Runtime",
    "StartReport",
    "TellsRegranted",
    "WatchedRuntime",
    "confinement_of",
    "describe",
    "holdings",
    "resource_use",
]
