"""Clocks jump, the machine sleeps, and somebody sets the wall clock.

Faults that may strike, with their odds below:

- `machine sleeps`
- `clock jumps`
- `clock is set`
- `killed`
"""

from __future__ import annotations

from nodealloc.testing.simulation.node._classes._values import SeedClass

__all__ = ["CLOCKS"]

CLOCKS = SeedClass(
    name="clocks",
    about="Clocks jump, the machine sleeps, and somebody sets the wall clock.",
    odds={
        "machine sleeps": 0.003,
        "clock jumps": 0.003,
        "clock is set": 0.003,
        "killed": 0.002,
        "call takes time": 0.8,
    },
)
