"""The agent is killed at any call of a port.

Faults that may strike, with their odds below:

- `killed before a call`
- `killed after a call`
- `killed`
"""

from __future__ import annotations

from nodealloc.testing.simulation.node._classes._values import SeedClass

__all__ = ["KILLS"]

KILLS = SeedClass(
    name="kills",
    about="The agent is killed at any call of a port.",
    odds={
        "killed before a call": 0.0025,
        "killed after a call": 0.01,
        "killed": 0.001,
        "call takes time": 0.8,
    },
    hooks=0.7,
)
