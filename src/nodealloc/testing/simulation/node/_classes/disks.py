"""The disk of the store fails, fills and tears what is written; mounts fail and are slow.

Faults that may strike, with their odds below:

- `disk fails`
- `disk is full`
- `write is short`
- `mount fails`
- `mount is slow`
- `killed before a call`
"""

from __future__ import annotations

from nodealloc.testing.simulation.node._classes._values import SeedClass

__all__ = ["DISKS"]

DISKS = SeedClass(
    name="disks",
    about="The disk of the store fails, fills and tears what is written; mounts fail and are slow.",
    odds={
        "disk fails": 0.005,
        "disk is full": 0.005,
        "write is short": 0.01,
        "mount fails": 0.1,
        "mount is slow": 0.05,
        "killed before a call": 0.003,
        "call takes time": 0.8,
    },
)
