"""What a machine has in all, beside what its NUMA nodes tell."""

from __future__ import annotations

import os
import re
from pathlib import Path

from nodealloc._procfs import PROC
from nodealloc._typed import typed
from nodealloc.machine import Machine
from nodealloc.memblocks import hugepages
from nodealloc.podspec import Resources, resources

__all__ = ["has_app_armor", "machine_capacity", "swap_bytes"]

_LIMITS = ("pid_max", "threads-max")
_TOTAL = re.compile(r"MemTotal:\s+(\d+) kB")
_SWAP = re.compile(r"SwapTotal:\s+(\d+) kB")


@typed
def machine_capacity(machine: Machine, /, *, folder: Path, is_this: bool = False) -> Resources:
    """CPUs, memory, huge pages, ephemeral storage and process ids of a machine.

    Args:
        machine: Its CPUs and memory.
        folder: Pods' files lie on its file system.
        is_this: Whether it is the one that this runs on: its kernel knows of more memory than its NUMA
            nodes may tell. Of another, the nodes' memory is added up.

    Raises:
        OSError: The folder or procfs cannot be read.

    Source: kubelet ``cadvisor/util.go``, ``stats/pidlimit/pidlimit_linux.go``.
    """
    disk = os.statvfs(folder)
    found = _TOTAL.search((PROC / "meminfo").read_text()) if is_this else None
    nodes_bytes = sum(node.memory_bytes for node in machine.numa_nodes)
    pages: dict[str, int] = {}
    for node in machine.numa_nodes:
        for size, count in node.hugepages.items():
            pages[hugepages(size)] = pages.get(hugepages(size), 0) + size * count
    return resources(
        {
            "cpu": len(machine.cpus),
            "memory": nodes_bytes if found is None else int(found[1]) * 1024,
            "ephemeral-storage": disk.f_blocks * disk.f_frsize,
            **pages,
            "pid": min(int((PROC / "sys" / "kernel" / name).read_text()) for name in _LIMITS),
        }
    )


@typed
def swap_bytes() -> int:
    """Swap of the machine that this runs on; 0 where its kernel has none.

    Raises:
        OSError: procfs cannot be read.
    """
    found = _SWAP.search((PROC / "meminfo").read_text())
    return 0 if found is None else int(found[1]) * 1024


@typed
def has_app_armor(*, folder: Path = Path("/sys")) -> bool:
    """Whether the machine that this runs on enforces AppArmor; not where its profiles are out of reach.

    Args:
        folder: Where sysfs is mounted.

    Source: runc ``libcontainer/apparmor``, which a kubelet asks.
    """
    try:
        (folder / "kernel" / "security" / "apparmor").stat()
        return (folder / "module" / "apparmor" / "parameters" / "enabled").read_text().startswith("Y")
    except OSError:
        return False
