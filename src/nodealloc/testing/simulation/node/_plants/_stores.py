"""Bugs in what an agent remembers."""

from __future__ import annotations

import attrs

from nodealloc.testing.simulation.node._plants._values import Plant
from nodealloc.testing.simulation.node._ports import (
    NodePorts,
)

__all__ = ["PLANTS"]


class Amnesia:
    """A disk that takes everything and keeps nothing over the end of the process."""

    def __call__(self, ports: NodePorts) -> NodePorts:
        from nodealloc.testing._simulated_disk import SimulatedDisk  # noqa: PLC0415

        disk = SimulatedDisk()
        return attrs.evolve(ports, disk=disk.path, files=disk)


PLANTS: tuple[Plant, ...] = (
    Plant(
        name="remembers-nothing",
        about="nothing that was decided outlives the process",
        spoil=Amnesia,
    ),
)
