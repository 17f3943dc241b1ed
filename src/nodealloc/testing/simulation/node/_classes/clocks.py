"""Clocks jump, and the machine sleeps."""

from __future__ import annotations

from nodealloc.testing.simulation.node._classes._values import SeedClass

__all__ = ["CLOCKS"]

CLOCKS = SeedClass(
    name="clocks",
    about="Clocks jump, and the machine sleeps.",
    odds={
        "machine sleeps": 0.003,
        "clock jumps": 0.003,
        "killed": 0.002,
        "call takes time": 0.2,
    },
)
