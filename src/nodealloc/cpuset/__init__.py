"""Which CPUs exactly: pickers, policies, and who holds what.

```text
   Claim ──▶ CpuAllocator.allocate ──▶ CpuAllocator'        who holds which CPUs
                 policy + state            value
```
"""

from nodealloc.cpuset._allocator import CpuAllocator
from nodealloc.cpuset._demand import exclusive_cpus_setting
from nodealloc.cpuset._errors import NotEnoughCpusError
from nodealloc.cpuset._hints import HintTable
from nodealloc.cpuset._layout import CpuLayout
from nodealloc.cpuset._options import StaticOptions
from nodealloc.cpuset._pickers import SortStrategy
from nodealloc.cpuset._policy import CpuPolicy, NonePolicy, StaticPolicy
from nodealloc.cpuset._ports import CpusetWriter, Picker
from nodealloc.cpuset._state import Assignment, CpuState
from nodealloc.cpuset._take import KubeletPicker, PickMode, take_cpus
from nodealloc.idset import CPUSet

__all__ = [
    "Assignment",
    "CPUSet",
    "CpuAllocator",
    "CpuLayout",
    "CpuPolicy",
    "CpuState",
    "CpusetWriter",
    "HintTable",
    "KubeletPicker",
    "NonePolicy",
    "NotEnoughCpusError",
    "PickMode",
    "Picker",
    "SortStrategy",
    "StaticOptions",
    "StaticPolicy",
    "exclusive_cpus_setting",
    "take_cpus",
]
