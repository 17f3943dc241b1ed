"""Whoever is told of pods is away, slow, hangs, and loses answers.

Faults that may strike, with their odds below:

- `sink is away`
- `sink is slow`
- `sink hangs`
- `sink answer is lost`
- `killed`
"""

from __future__ import annotations

from nodealloc.testing.simulation.node._classes._values import SeedClass

__all__ = ["SINKS"]

SINKS = SeedClass(
    name="sinks",
    about="Whoever is told of pods is away, slow, hangs, and loses answers.",
    odds={
        "sink is away": 0.1,
        "sink is slow": 0.1,
        "sink hangs": 0.005,
        "sink answer is lost": 0.05,
        "killed": 0.0005,
        "call takes time": 0.8,
    },
)
