"""The disk of the store fails, fills and tears; mounts and cgroups fail; at times the power goes.

Faults that may strike, with their odds below:

- `disk fails`
- `disk is full`
- `write is short`
- `mount fails`
- `cgroup cannot be made`
- `cgroup write fails`
- `cgroup cannot be removed`
- `class cgroup cannot be made`
- `class cgroup write fails`
- `mount is slow`
- `killed before a call`
- `power lost`
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
        "class cgroup cannot be made": 0.4,
        "class cgroup write fails": 0.05,
        "mount fails": 0.1,
        "mount is slow": 0.05,
        "killed before a call": 0.003,
        "power lost": 0.0004,
        "call takes time": 0.8,
    },
)
