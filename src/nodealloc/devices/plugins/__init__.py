"""Device plugins in person: registrations on a socket, streams, calls; the shell around an allocator.

```text
 kubelet.sock, registry ──▶ DevicePlugins ──▶ AllocatorKeeper ──▶ DeviceAllocator
 plugins' sockets      ◀──  on dsw_asw        whoever remembers
```

| what runs                | wanted                              | there                           |
|--------------------------|-------------------------------------|---------------------------------|
| inventories              | what each plugin says of a resource | what the keeper has of it       |
| streams                  | plugins that answered               | streams that are followed       |
| plugins without an answer| plugins that did not answer         | whether they listen by now      |
| periodic looks           | when to look, and to wait no more   | when it was done                |

One `Group` of `nodealloc.dsw_asw` drives them: back-off, grace periods and
looks are its own, and a thread is an operation of it, gRPC's server, or the
reader of a stream. This part of `nodealloc.devices` loads gRPC.
"""

from nodealloc.devices.plugins._advisor import DeviceAdvisor
from nodealloc.devices.plugins._launched import launch_of
from nodealloc.devices.plugins._reconciler import DevicePlugins

__all__ = [
    "DeviceAdvisor",
    "DevicePlugins",
    "launch_of",
]
