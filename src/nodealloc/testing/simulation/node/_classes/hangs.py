"""Calls hang, for one pod and for all.

Faults that may strike, with their odds below:

- `runtime hangs`
- `mount hangs`
- `sink hangs`
- `source hangs`
"""

from __future__ import annotations

from nodealloc.testing.simulation.node._classes._values import SeedClass

__all__ = ["HANGS"]

HANGS = SeedClass(
    name="hangs",
    about="Calls hang, for one pod and for all.",
    odds={
        "runtime hangs": 0.008,
        "mount hangs": 0.02,
        "sink hangs": 0.02,
        "source hangs": 0.02,
        "call takes time": 1.0,
    },
)
