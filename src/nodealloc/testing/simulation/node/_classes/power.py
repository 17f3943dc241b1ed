"""The power goes, and the machine boots again.

Faults that may strike, with their odds below:

- `power lost`
- `killed`
"""

from __future__ import annotations

from nodealloc.testing.simulation.node._classes._values import SeedClass

__all__ = ["POWER"]

POWER = SeedClass(
    name="power",
    about="The power goes, and the machine boots again.",
    odds={
        "power lost": 0.001,
        "killed": 0.001,
        "call takes time": 0.8,
    },
)
