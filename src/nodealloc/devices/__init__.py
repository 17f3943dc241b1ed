"""Which devices exactly: inventory, health, device plugins, allocation, and what is remembered.

```text
 plugin's socket ──▶ DevicePlugins ──▶ Inventory ──▶ DeviceAllocator ──▶ admission
 kubelet.sock   ──▶  a thread each     a value       a value, pure          │
                          ▲                                                 ▼
                          └── ask · prepare · pre_start ◀── grants: ids, NUMA nodes, answers
                                                                            │
                                                   kubelet_internal_checkpoint, launch_of
```

| noun              | what it is                                                             |
|-------------------|------------------------------------------------------------------------|
| `Inventory`       | one resource: its devices, and where its plugin's life stands (`LIFE`) |
| `DeviceAllocator` | policy and state as one value; an `Allocator` for `topology.admit`     |
| `Grant`           | devices in one member's hands, with the plugin's answer to `Allocate`  |
| `DevicePlugins`   | the shell: serves registrations, follows streams, asks plugins         |
| `DeviceAdvisor`   | asks plugins before a node's decision is final                         |
| `AllocatorKeeper` | who holds the current allocator; `DeviceLedger` where there is no node |
| `Launch`          | what a container gets: variables, mounts, device files, CDI names      |
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

from nodealloc.devices._allocator import DeviceAllocator
from nodealloc.devices._directory import plugin_socket, prepare_directory
from nodealloc.devices._errors import PluginRefusedError, PluginUnavailableError, RegistrationRefusedError
from nodealloc.devices._events import DeviceEvent, DeviceEvents, Touched, touched_by
from nodealloc.devices._grants import NO_NODE, Grant
from nodealloc.devices._hints import device_hints, held_hints
from nodealloc.devices._inventory import Capacity, Device, DeviceList, Inventory, PluginOptions
from nodealloc.devices._launch import Conflict, DeviceMount, DeviceNode, Launch, Response, merge
from nodealloc.devices._ledger import DeviceLedger
from nodealloc.devices._life import LIFE, Happening, Phase
from nodealloc.devices._limits import Deadlines, PluginLimits
from nodealloc.devices._pick import pick
from nodealloc.devices._ports import AllocatorKeeper, Connect, PluginCalls, PluginConnection, PluginWatch
from nodealloc.devices._preferences import Answers, PreferenceQuestion
from nodealloc.devices._state import from_rows, read_alike, remembered, restored, to_row
from nodealloc.devices._status import DevicePluginStatus

if TYPE_CHECKING:
    from nodealloc.devices._advisor import DeviceAdvisor
    from nodealloc.devices._codec import (
        RegisterRequest,
        decode_list,
        decode_response,
        encode_list,
        encode_response,
    )
    from nodealloc.devices._grpc import GrpcConnection
    from nodealloc.devices._launched import launch_of
    from nodealloc.devices._reconciler import DevicePlugins
    from nodealloc.devices._registration import RegistrationService, introduce

__all__ = [
    "LIFE",
    "NO_NODE",
    "AllocatorKeeper",
    "Answers",
    "Capacity",
    "Conflict",
    "Connect",
    "Deadlines",
    "Device",
    "DeviceAdvisor",
    "DeviceAllocator",
    "DeviceEvent",
    "DeviceEvents",
    "DeviceLedger",
    "DeviceList",
    "DeviceMount",
    "DeviceNode",
    "DevicePluginStatus",
    "DevicePlugins",
    "Grant",
    "GrpcConnection",
    "Happening",
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
    "RegisterRequest",
    "RegistrationRefusedError",
    "RegistrationService",
    "Response",
    "Touched",
    "decode_list",
    "decode_response",
    "device_hints",
    "encode_list",
    "encode_response",
    "from_rows",
    "held_hints",
    "introduce",
    "launch_of",
    "merge",
    "pick",
    "plugin_socket",
    "prepare_directory",
    "read_alike",
    "remembered",
    "restored",
    "to_row",
    "touched_by",
]

_LATE: Final = {
    "DeviceAdvisor": "_advisor",
    "RegisterRequest": "_codec",
    "decode_list": "_codec",
    "decode_response": "_codec",
    "encode_list": "_codec",
    "encode_response": "_codec",
    "GrpcConnection": "_grpc",
    "launch_of": "_launched",
    "DevicePlugins": "_reconciler",
    "RegistrationService": "_registration",
    "introduce": "_registration",
}
"""Names that come with gRPC or protobuf, and where they are: a scheduler that only decides loads neither."""


def __getattr__(name: str) -> object:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LATE[name]}"), name)
