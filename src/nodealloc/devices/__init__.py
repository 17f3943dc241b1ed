"""Which devices exactly: inventory, health, allocation, and what is remembered; values and decisions.

```text
 nodealloc.devices.plugins ──▶ Inventory ──▶ DeviceAllocator ──▶ admission
 registrations, streams,       a value       a value, pure          │
 calls: gRPC, on dsw_asw                                            ▼
           ▲                                      grants: ids, NUMA nodes, answers
           └── ask · prepare · pre_start ◀────────────────┤
                                                          ▼
                                            kubelet_internal_checkpoint, launch_of
```

| noun              | what it is                                                             |
|-------------------|------------------------------------------------------------------------|
| `Inventory`       | one resource: its devices, and where its plugin's life stands (`DEVICE_LIFE`) |
| `DeviceAllocator` | policy and state as one value; an `Allocator` for `topology.admit`     |
| `Grant`           | devices in one member's hands, with the plugin's answer to `Allocate`  |
| `AllocatorKeeper` | who holds the current allocator; `DeviceLedger` where there is no node |
| `Launch`          | what a container gets: variables, mounts, device files, CDI names      |

Nothing here loads gRPC. Whoever talks to plugins takes `DevicePlugins` from
`nodealloc.devices.plugins`.
"""

from nodealloc.devices._allocator import DeviceAllocator
from nodealloc.devices._errors import PluginRefusedError, PluginUnavailableError, RegistrationRefusedError
from nodealloc.devices._grants import Grant
from nodealloc.devices._hints import device_hints
from nodealloc.devices._inventory import Capacity, Device, DeviceList, Inventory, PluginOptions
from nodealloc.devices._launch import DeviceMount, DeviceNode, Launch, Response
from nodealloc.devices._ledger import DeviceLedger
from nodealloc.devices._life import DEVICE_LIFE, Phase
from nodealloc.devices._limits import Deadlines, PluginLimits
from nodealloc.devices._pick import pick
from nodealloc.devices._ports import AllocatorKeeper, PluginCalls, PluginConnection, PluginWatch
from nodealloc.devices._preferences import PreferenceQuestion

__all__ = [
    "DEVICE_LIFE",
    "AllocatorKeeper",
    "Capacity",
    "Deadlines",
    "Device",
    "DeviceAllocator",
    "DeviceLedger",
    "DeviceList",
    "DeviceMount",
    "DeviceNode",
    "Grant",
    "Inventory",
    "Launch",
    "Phase",
    "PluginCalls",
    "PluginConnection",
    "PluginLimits",
    "PluginOptions",
    "PluginRefusedError",
    "PluginUnavailableError",
    "PluginWatch",
    "PreferenceQuestion",
    "RegistrationRefusedError",
    "Response",
    "device_hints",
    "pick",
]
