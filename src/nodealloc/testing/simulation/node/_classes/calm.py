"""Pods come, go, crash and are edited; nothing else goes wrong.

No fault strikes.
"""

from __future__ import annotations

from nodealloc.testing.simulation.node._classes._values import SeedClass

__all__ = ["CALM"]

CALM = SeedClass(
    name="calm",
    about="Pods come, go, crash and are edited; nothing else goes wrong.",
    odds={
        "call takes time": 1.0,
    },
    rests_s=650.0,
)
