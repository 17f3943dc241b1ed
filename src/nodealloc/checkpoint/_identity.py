"""Which boot of which machine this is, read from the running system."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from nodealloc._not_now import NOT_NOW
from nodealloc._typed import typed
from nodealloc.checkpoint._contents import Identity
from nodealloc.checkpoint._errors import StoreFailedError

__all__ = ["this_machine"]

_FACTS = (
    "etc/machine-id",
    "sys/class/dmi/id/product_uuid",
    "sys/class/dmi/id/board_serial",
    "sys/devices/system/cpu/present",
    "sys/devices/system/node/possible",
)


@typed
def this_machine(root: str | Path = "/") -> Identity:
    """The identity of this boot of this machine.

    The fingerprint covers the machine id, the serial numbers that may be read,
    and which CPUs and NUMA nodes are present; not the amount of memory, which
    drifts from boot to boot on the same hardware. What may not be read counts
    as absent.

    Args:
        root: Where `/proc`, `/sys` and `/etc` stand.

    Raises:
        StoreFailedError: The system does not give a file now (EIO, too many open files): without it
            this would be another machine, or another boot.

    Source: ours.
    """
    base = Path(root)
    facts = [f"{name}={_text(base / name)}" for name in _FACTS]
    models = {
        line
        for line in _text(base / "proc/cpuinfo").splitlines()
        if line.startswith(("model name", "CPU part"))
    }
    digest = hashlib.sha256("\n".join([*facts, *sorted(models)]).encode()).hexdigest()
    return Identity(boot_id=_text(base / "proc/sys/kernel/random/boot_id"), machine=digest[:32])


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError as error:
        if error.errno in NOT_NOW:
            raise StoreFailedError(str(path), "read", error.errno, os.strerror(error.errno)) from error
        return ""
