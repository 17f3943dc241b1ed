"""Bugs in what an agent believes of its sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import attrs

from nodealloc.podsources import Reading
from nodealloc.testing.simulation.node._planted_faults._values import PlantedFault
from nodealloc.testing.simulation.node._ports import NodePorts
from nodealloc.testing.simulation.node._sources import SimulatedSource

__all__ = ["PLANTED_FAULTS"]


class Source:
    """A source that is believed at once, whether it knows its pods or not."""

    def __init__(self, inner: SimulatedSource) -> None:
        self.inner = inner

    def on_change(self, call: Callable[[], object], /) -> None:
        self.inner.on_change(call)

    def read(self, cancel: object, /) -> Reading:
        try:
            return attrs.evolve(self.inner.read(cancel), is_synced=True)  # type: ignore[arg-type]
        except OSError:
            return Reading()


def believes(ports: NodePorts) -> NodePorts:
    sources = {name: Source(one) for name, one in ports.sources.items()}
    return attrs.evolve(ports, sources=cast("Mapping[str, SimulatedSource]", sources))


PLANTED_FAULTS: tuple[PlantedFault, ...] = (
    PlantedFault(
        name="believes-at-once",
        about="a source that does not answer counts as one without pods",
        spoil=lambda: believes,
    ),
)
