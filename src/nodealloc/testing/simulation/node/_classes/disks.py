"""The disk of the store fails, fills and tears what is written; mounts and cgroups fail.

Faults that may strike, with their odds below:

- `disk fails`
- `disk is full`
- `write is short`
- `mount fails`
- `cgroup cannot be made`
- `cgroup write fails`
- `cgroup cannot be removed`
- `mount is slow`
- `killed before a call`
"""

from __future__ import annotations

from nodealloc.testing.simulation.node._classes._values import SeedClass

__all__ = ["DISKS"]

DISKS = SeedClass(
    name="disks",
    about="The disk of the store fails, fills and tears what is written; mounts and cgroups fail.",
    odds={
        "disk fails": 0.005,
        "disk is full": 0.005,
        "write is short": 0.01,
        "cgroup cannot be made": 0.1,
        "cgroup write fails": 0.15,
        "cgroup cannot be removed": 0.2,
        "mount fails": 0.1,
        "mount is slow": 0.05,
        "killed before a call": 0.003,
        "call takes time": 0.8,
    },
)
