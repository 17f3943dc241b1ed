"""Bugs that are planted into an agent, at its ports; each file has the bugs of one kind of port."""

from __future__ import annotations

from nodealloc.errors import ConfigurationError
from nodealloc.testing.simulation.node._planted_faults import (
    _cpus,
    _ends,
    _runtimes,
    _sinks,
    _sources,
    _stores,
    _volumes,
)
from nodealloc.testing.simulation.node._planted_faults._values import PlantedFault
from nodealloc.testing.simulation.node._simulation import Wiring

__all__ = ["PLANTED_FAULTS", "PlantedFault", "spoiled"]

PLANTED_FAULTS: tuple[PlantedFault, ...] = (
    *_runtimes.PLANTED_FAULTS,
    *_ends.PLANTED_FAULTS,
    *_sinks.PLANTED_FAULTS,
    *_sources.PLANTED_FAULTS,
    *_cpus.PLANTED_FAULTS,
    *_stores.PLANTED_FAULTS,
    *_volumes.PLANTED_FAULTS,
)
"""All of them."""


def spoiled(wiring: Wiring, name: str, /) -> Wiring:
    """The same agent with a bug; for one node.

    Raises:
        ConfigurationError: No bug is called so.
    """
    plant = next((one for one in PLANTED_FAULTS if one.name == name), None)
    if plant is None:
        raise ConfigurationError(f"no planted bug is called {name!r}; --plants lists them")
    spoil = plant.spoil()
    return lambda ports: wiring(spoil(ports))
