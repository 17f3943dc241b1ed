"""The kubelet's files together: which key is read by what."""

from __future__ import annotations

from nodealloc.checkpoint._cpu_state import CPU_STATE, read_cpu_manager_state
from nodealloc.checkpoint._device_state import DEVICE_STATE, DeviceManagerState
from nodealloc.checkpoint._memory_state import MEMORY_STATE, MemoryManagerState
from nodealloc.checkpoint._ports import Formats

__all__ = ["KUBELET_FORMATS"]

KUBELET_FORMATS: Formats = {
    CPU_STATE: read_cpu_manager_state,
    MEMORY_STATE: MemoryManagerState.unmarshal,
    DEVICE_STATE: DeviceManagerState.unmarshal,
}
"""The kubelet's three state files, of any version.

The kubelet keeps the first two in its root directory (`/var/lib/kubelet`) and
the third in `device-plugins` below it.
"""
