"""All of it at once.

Faults that may strike, with their odds below:

- `killed before a call`
- `killed after a call`
- `power lost`
- `machine sleeps`
- `clock jumps`
- `pass without reason`
- `runtime is away`
- `runtime is slow`
- `runtime hangs`
- `whole runtime hangs`
- `stop hangs`
- `runtime refuses`
- `registry refuses`
- `answer is lost`
- `disk fails`
- `disk is full`
- `write is short`
- `source is away`
- `source is slow`
- `source is not synced`
- `source tells nothing`
- `source is behind`
- `source reorders`
- `sink is away`
- `sink is slow`
- `sink answer is lost`
- `runtime restarts`
- `container vanishes`
- `runtime forgets an end`
- `mount fails`
- `cgroup cannot be made`
- `cgroup write fails`
- `cgroup cannot be removed`
- `class cgroup cannot be made`
- `class cgroup write fails`
- `mount is slow`
- `mount hangs`
- `executor refuses`
- `executor doubles`
- `executor cancels`
- `plugin is away`
- `plugin is slow`
- `plugin hangs`
- `plugin refuses`
- `plugin talks nonsense`
- `directory tells nothing`
"""

from __future__ import annotations

from nodealloc.testing.simulation.node._classes._values import SeedClass

__all__ = ["EVERYTHING"]

EVERYTHING = SeedClass(
    name="everything",
    about="All of it at once.",
    odds={
        "killed before a call": 0.003,
        "killed after a call": 0.003,
        "power lost": 0.0005,
        "machine sleeps": 0.001,
        "clock jumps": 0.001,
        "pass without reason": 0.01,
        "runtime is away": 0.02,
        "runtime is slow": 0.01,
        "runtime hangs": 0.001,
        "whole runtime hangs": 0.001,
        "stop hangs": 0.002,
        "runtime refuses": 0.02,
        "registry refuses": 0.4,
        "answer is lost": 0.02,
        "disk fails": 0.001,
        "disk is full": 0.001,
        "write is short": 0.003,
        "source is away": 0.03,
        "source is slow": 0.03,
        "source is not synced": 0.02,
        "source tells nothing": 0.1,
        "source is behind": 0.02,
        "source reorders": 0.05,
        "sink is away": 0.03,
        "sink is slow": 0.03,
        "sink answer is lost": 0.02,
        "runtime restarts": 0.002,
        "container vanishes": 0.03,
        "runtime forgets an end": 0.002,
        "cgroup cannot be made": 0.02,
        "cgroup write fails": 0.03,
        "cgroup cannot be removed": 0.04,
        "class cgroup cannot be made": 0.3,
        "class cgroup write fails": 0.02,
        "mount fails": 0.02,
        "mount is slow": 0.02,
        "mount hangs": 0.002,
        "executor refuses": 0.005,
        "executor doubles": 0.005,
        "executor cancels": 0.003,
        "plugin is away": 0.03,
        "plugin is slow": 0.03,
        "plugin hangs": 0.01,
        "plugin refuses": 0.01,
        "plugin talks nonsense": 0.03,
        "directory tells nothing": 0.1,
        "call takes time": 0.8,
    },
    resyncs=True,
)
