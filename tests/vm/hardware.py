"""The machine that is emulated: four NUMA nodes at unequal distances, eight CPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["CPUS_PER_NODE", "DISTANCES", "MEMORY_MIB", "arguments", "file_server"]

DISTANCES = (
    (10, 12, 20, 30),
    (12, 10, 25, 20),
    (20, 25, 10, 14),
    (30, 20, 14, 10),
)
"""`DISTANCES[a][b]` from node a to node b."""

CPUS_PER_NODE = 2
MEMORY_MIB = (512, 384, 384, 256)
"""Memory of each node."""

_SHARE_SOCKET = "share.sock"


def arguments(packages: Path, work: Path, /) -> list[str]:
    """Command line of the emulator.

    Args:
        packages: Unpacked packages with emulator and kernel.
        work: Folder with `initramfs`, `result.img` and the socket of the file server.
    """
    kernel = next(packages.glob("boot/vmlinuz-*"))
    return [
        str(packages / "usr/bin/qemu-system-x86_64"),
        *("-L", str(packages / "usr/share/qemu"), "-L", str(packages / "usr/share/seabios")),
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-monitor", "none"),
        # Emulation everywhere: where virtualisation is nested, /dev/kvm may be there and hang.
        *("-M", "q35", "-cpu", "max", "-accel", "tcg,thread=multi"),
        *("-m", f"{sum(MEMORY_MIB)}M"),
        *("-smp", f"{CPUS_PER_NODE * len(MEMORY_MIB)},sockets={len(MEMORY_MIB)},cores={CPUS_PER_NODE}"),
        *_numa(),
        *("-chardev", f"socket,id=share,path={work / _SHARE_SOCKET}"),
        *("-device", "vhost-user-fs-pci,chardev=share,tag=host"),
        # A PCI bridge of node 1, so that the device behind it has a NUMA node of its own.
        *("-device", "pxb-pcie,id=bridge1,bus_nr=32,numa_node=1,bus=pcie.0"),
        *("-device", "pcie-root-port,id=port1,bus=bridge1,chassis=1"),
        *("-drive", f"file={work / 'result.img'},format=raw,if=none,id=result"),
        *("-device", "nvme,drive=result,serial=result,bus=port1"),
        *("-kernel", str(kernel), "-initrd", str(work / "initramfs")),
        *("-append", "console=ttyS0 quiet panic=-1 rdinit=/init cgroup_no_v1=all"),
        *("-serial", f"file:{work / 'console.log'}"),
    ]


def file_server(packages: Path, work: Path, /) -> list[str]:
    """Command line of the server that shows the host's files to the machine."""
    program = packages / "usr/lib/qemu/virtiofsd"
    return [
        str(program),
        f"--socket-path={work / _SHARE_SOCKET}",
        *("-o", "source=/", "-o", "cache=auto", "-o", "sandbox=chroot"),
        "--thread-pool-size=2",
    ]


def _numa() -> Iterator[str]:
    for node, mib in enumerate(MEMORY_MIB):
        first = node * CPUS_PER_NODE
        yield "-object"
        # Shared, because the file server writes into the machine's memory.
        yield f"memory-backend-memfd,id=memory{node},size={mib}M,share=on"
        yield "-numa"
        yield f"node,nodeid={node},cpus={first}-{first + CPUS_PER_NODE - 1},memdev=memory{node}"
    for near, row in enumerate(DISTANCES):
        for far, distance in enumerate(row):
            if near != far:
                yield "-numa"
                yield f"dist,src={near},dst={far},val={distance}"
