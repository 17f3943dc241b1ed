"""Classes of seeds: which faults a life may have; `seed % len(CLASSES)` says which a seed belongs to."""

from __future__ import annotations

from nodealloc.testing.simulation.node._classes._values import SeedClass
from nodealloc.testing.simulation.node._classes.calm import CALM
from nodealloc.testing.simulation.node._classes.clocks import CLOCKS
from nodealloc.testing.simulation.node._classes.disks import DISKS
from nodealloc.testing.simulation.node._classes.everything import EVERYTHING
from nodealloc.testing.simulation.node._classes.hangs import HANGS
from nodealloc.testing.simulation.node._classes.kills import KILLS
from nodealloc.testing.simulation.node._classes.outages import OUTAGES
from nodealloc.testing.simulation.node._classes.plugins import PLUGINS
from nodealloc.testing.simulation.node._classes.power import POWER
from nodealloc.testing.simulation.node._classes.runtimes import RUNTIMES
from nodealloc.testing.simulation.node._classes.sinks import SINKS
from nodealloc.testing.simulation.node._classes.sources import SOURCES

__all__ = ["CLASSES", "SeedClass", "class_of"]

CLASSES: tuple[SeedClass, ...] = (
    CALM,
    KILLS,
    RUNTIMES,
    DISKS,
    SOURCES,
    SINKS,
    HANGS,
    CLOCKS,
    POWER,
    PLUGINS,
    EVERYTHING,
    OUTAGES,
)


def class_of(seed: int, /) -> SeedClass:
    """The class that a seed belongs to."""
    return CLASSES[seed % len(CLASSES)]
