"""Sources of pods are away, slow, reorder, and do not know all their pods yet.

Faults that may strike, with their odds below:

- `source is away`
- `source is slow`
- `source is not synced`
- `source tells nothing`
- `source is behind`
- `source reorders`
- `source hangs`
- `killed`
"""

from __future__ import annotations

from nodealloc.testing.simulation.node._classes._values import SeedClass

__all__ = ["SOURCES"]

SOURCES = SeedClass(
    name="sources",
    about="Sources of pods are away, slow, reorder, and do not know all their pods yet.",
    odds={
        "source is away": 0.1,
        "source is slow": 0.1,
        "source is not synced": 0.1,
        "source tells nothing": 0.2,
        "source is behind": 0.05,
        "source reorders": 0.2,
        "source hangs": 0.01,
        "killed": 0.003,
        "call takes time": 0.8,
    },
)
