"""The disk of the store fails, fills and tears what is written."""

from __future__ import annotations

from nodealloc.testing.simulation.node._classes._values import SeedClass

__all__ = ["DISKS"]

DISKS = SeedClass(
    name="disks",
    about="The disk of the store fails, fills and tears what is written.",
    odds={
        "disk fails": 0.005,
        "disk is full": 0.005,
        "write is short": 0.01,
        "killed before a call": 0.003,
        "call takes time": 0.1,
    },
)
