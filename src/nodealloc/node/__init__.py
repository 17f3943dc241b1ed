"""What does this node hold now: load, verify, admit, commit, release.

```text
   pods, claims ─▶ admit() ─▶ decision ─▶ commit ─▶ current snapshot ─▶ before_start() ─▶ Confinement
                    pure       value      one write                       container bound
```

- A *record* is what is remembered of one workload: its claims, where it went, what
  it was granted, which containers use it.
- A *keeper* says how the grants of one kind of allocator are remembered.
- An *advisor* is asked before a decision is final, such as device plugins.
- A *confinement* is where a container may run; apply it before its first instruction.
"""

from typing import TYPE_CHECKING

from nodealloc.node._confinement import Confinement, confinement_of
from nodealloc.node._cpu_keeper import CpuKeeper
from nodealloc.node._errors import AdoptionError, NotAdmittedError
from nodealloc.node._loading import StartReport
from nodealloc.node._memory_keeper import MemoryKeeper
from nodealloc.node._node import FORMATS, NodeAllocator
from nodealloc.node._ports import Advisor, Keeper, Restored, Running, Runtime
from nodealloc.node._record import WorkloadRecord
from nodealloc.node._views import Holding, ResourceUse, describe, holdings, resource_use

if TYPE_CHECKING:
    from nodealloc.node._device_keeper import DeviceAdvisor, DeviceKeeper, NodeDevices

__all__ = [
    "FORMATS",
    "AdoptionError",
    "Advisor",
    "Confinement",
    "CpuKeeper",
    "DeviceAdvisor",
    "DeviceKeeper",
    "Holding",
    "Keeper",
    "MemoryKeeper",
    "NodeAllocator",
    "NodeDevices",
    "NotAdmittedError",
    "ResourceUse",
    "Restored",
    "Running",
    "Runtime",
    "StartReport",
    "WorkloadRecord",
    "confinement_of",
    "describe",
    "holdings",
    "resource_use",
]


def __getattr__(name: str) -> object:
    """What is about devices comes late: a node without devices loads no gRPC."""
    if name in {"DeviceAdvisor", "DeviceKeeper", "NodeDevices"}:
        from nodealloc.node import _device_keeper  # noqa: PLC0415

        return getattr(_device_keeper, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
