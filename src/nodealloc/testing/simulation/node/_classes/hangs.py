"""Calls hang, for one pod and for all.

Faults that may strike, with their odds below:

- `runtime hangs`
- `whole runtime hangs`
- `stop hangs`
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
        "runtime hangs": 0.015,
        "whole runtime hangs": 0.0005,
        "stop hangs": 0.1,
        "mount hangs": 0.03,
        "sink hangs": 0.02,
        "source hangs": 0.02,
        "call takes time": 1.0,
    },
)
