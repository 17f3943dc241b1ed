"""What runs first inside the virtual machine: an initial file system with one script."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from tests.vm.packages import Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["HUGEPAGES", "initramfs"]

HUGEPAGES = (16, 16, 8, 0)
"""2 MiB pages of each node; unequal, so that a test can tell the nodes apart."""

_MODULES = (
    "drivers/virtio/virtio_ring",
    "drivers/virtio/virtio",
    "drivers/virtio/virtio_pci_legacy_dev",
    "drivers/virtio/virtio_pci_modern_dev",
    "drivers/virtio/virtio_pci",
    "fs/fuse/fuse",
    "fs/fuse/virtiofs",
    "fs/overlayfs/overlay",
    "drivers/block/loop",
)
"""In the order in which they need each other."""

_START = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin:/usr/bin:/sbin:/usr/sbin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for module in /modules/*.ko; do insmod $module || echo "vm: $module does not load"; done
# The host's files, read-only below, with a layer in memory above that takes every change.
mount -t virtiofs -o ro host /lower || { echo "vm: no shared files"; poweroff -f; }
mount -t tmpfs -o size=70% upper /upper
mkdir -p /upper/data /upper/work
mount -t overlay -o lowerdir=/lower,upperdir=/upper/data,workdir=/upper/work overlay /new
mount -t proc proc /new/proc
mount -t sysfs sysfs /new/sys
mount -t devtmpfs dev /new/dev
mkdir -p /new/dev/pts /new/dev/shm /new/run
mount -t devpts devpts /new/dev/pts
mount -t tmpfs shm /new/dev/shm
mount -t tmpfs run /new/run
mount -t cgroup2 cgroup2 /new/sys/fs/cgroup
ifconfig lo 127.0.0.1 up
@HUGEPAGES@
mkdir -p /new/run/result
cp /commands.sh /new/run/commands.sh
chroot /new /bin/sh /run/commands.sh
echo "vm: bringing the result back"
tar -cf /dev/nvme0n1 -C /new/run/result .
sync
poweroff -f
"""


def initramfs(
    packages: Path,
    commands: Sequence[Sequence[str]],
    /,
    *,
    folder: Path,
    environment: Mapping[str, str],
    seconds: int,
) -> bytes:
    """Bytes of an initial file system that runs commands on the host's files and keeps what they say.

    Args:
        packages: Unpacked packages.
        commands: Programs with arguments; each writes to `N.out`, its status to `N.status`.
        folder: Working directory.
        environment: Variables that are added.
        seconds: All commands together; who runs longer is killed.
    """
    busybox = next((path for path in packages.glob("**/bin/busybox") if path.is_file()), None)
    modules = next(packages.glob("lib/modules/*/kernel"), None) or next(
        packages.glob("usr/lib/modules/*/kernel"), None
    )
    if busybox is None or modules is None:
        raise Unavailable("the packages hold no busybox or no kernel modules; remove the cache and try again")
    pages = "\n".join(
        f"echo {count} > /sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages"
        for node, count in enumerate(HUGEPAGES)
    )
    start = _START.replace("@HUGEPAGES@", pages)
    folders = ("bin", "proc", "sys", "dev", "modules", "lower", "upper", "new")
    files = {
        f"modules/{at}-{name.rpartition('/')[2]}.ko": (modules / f"{name}.ko").read_bytes()
        for at, name in enumerate(_MODULES)
    }
    files |= {
        "bin/busybox": busybox.read_bytes(),
        "init": start.encode(),
        "commands.sh": _script(commands, folder, environment, seconds).encode(),
    }
    parts = [_entry(name, 0o040755, b"") for name in folders]
    parts += [_entry(name, 0o100755, content) for name, content in files.items()]
    return b"".join((*parts, _entry("TRAILER!!!", 0, b"")))


def _script(
    commands: Sequence[Sequence[str]], folder: Path, environment: Mapping[str, str], seconds: int
) -> str:
    lines = [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    lines += [f"cd {shlex.quote(str(folder))} || exit 1", f"end=$(($(date +%s) + {seconds}))"]
    for number, command in enumerate(commands):
        lines += [
            f"echo {shlex.quote(f'vm: {shlex.join(command)}'[:200])}",
            f"timeout -s KILL $((end - $(date +%s))) {shlex.join(command)} > /run/result/{number}.out 2>&1",
            f"echo $? > /run/result/{number}.status",
        ]
    return "\n".join(lines) + "\n"


def _entry(name: str, mode: int, content: bytes) -> bytes:
    """One file of a cpio archive in the format `newc`."""
    path = name.encode() + b"\0"
    numbers = (1, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(path), 0)
    head = b"070701" + b"".join(b"%08X" % number for number in numbers) + path
    return _padded(head) + _padded(content)


def _padded(content: bytes) -> bytes:
    return content + b"\0" * (-len(content) % 4)
