"""Bugs that are planted into an agent, at its ports; each file has the bugs of one kind of port."""

from __future__ import annotations

from nodealloc.errors import ConfigurationError
from nodealloc.testing.simulation.node._plants import (
    _cpus,
    _ends,
    _runtimes,
    _sinks,
    _sources,
    _stores,
    _volumes,
)
from nodealloc.testing.simulation.node._plants._values import Plant
from nodealloc.testing.simulation.node._simulation import Wiring

__all__ = ["PLANTS", "Plant", "spoiled"]

PLANTS: tuple[Plant, ...] = (
    *_runtimes.PLANTS,
    *_ends.PLANTS,
    *_sinks.PLANTS,
    *_sources.PLANTS,
    *_cpus.PLANTS,
    *_stores.PLANTS,
    *_volumes.PLANTS,
)
"""All of them."""


def spoiled(wiring: Wiring, name: str, /) -> Wiring:
    """The same agent with a bug; for one node.

    Raises:
        ConfigurationError: No bug is called so.
    """
    plant = next((one for one in PLANTS if one.name == name), None)
    if plant is None:
        raise ConfigurationError(f"no planted bug is called {name!r}; --plants lists them")
    spoil = plant.spoil()
    return lambda ports: wiring(spoil(ports))
