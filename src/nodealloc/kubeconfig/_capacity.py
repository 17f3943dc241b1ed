"""What a machine has in all, beside what its NUMA nodes tell."""

from __future__ import annotations

import os
from pathlib import Path

from nodealloc._typed import typed
from nodealloc.machine import Machine
from nodealloc.podspec import Resources, resources

__all__ = ["machine_capacity"]

_LIMITS = ("pid_max", "threads-max")


@typed
def machine_capacity(
    machine: Machine, /, *, folder: Path, memory_bytes: int = 0, kernel: Path = Path("/proc/sys/kernel")
) -> Resources:
    """CPUs, memory, ephemeral storage and process ids of a machine.

    Args:
        machine: Its CPUs and memory.
        folder: Pods' files lie on its file system.
        memory_bytes: Of the machine, where its NUMA nodes do not tell all of it; 0 for their sum.
        kernel: Where the kernel tells how many processes there may be.

    Raises:
        OSError: The folder or the kernel's files cannot be read.

    Source: kubelet ``cadvisor/util.go``, ``stats/pidlimit/pidlimit_linux.go``.
    """
    disk = os.statvfs(folder)
    return resources(
        {
            "cpu": len(machine.cpus),
            "memory": memory_bytes or sum(node.memory_bytes for node in machine.numa_nodes),
            "ephemeral-storage": disk.f_blocks * disk.f_frsize,
            "pid": min(int((kernel / name).read_text()) for name in _LIMITS),
        }
    )
