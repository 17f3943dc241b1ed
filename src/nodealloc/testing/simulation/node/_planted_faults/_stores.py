"""Bugs in what an agent remembers."""

from __future__ import annotations

import attrs

from nodealloc.checkpoint import FileStore, StoreFailedError
from nodealloc.node import FORMATS
from nodealloc.testing._simulated_disk import SimulatedDisk
from nodealloc.testing.simulation._executor import Killed
from nodealloc.testing.simulation.node._planted_faults._values import PlantedFault
from nodealloc.testing.simulation.node._ports import NodePorts

__all__ = ["PLANTED_FAULTS"]


class Amnesia:
    """A disk that takes everything and keeps nothing over the end of the process."""

    def __call__(self, ports: NodePorts) -> NodePorts:
        disk = SimulatedDisk()
        return attrs.evolve(ports, disk=disk.path, files=disk)


class GrantsForgotten:
    """What was granted is not remembered: each life begins without it."""

    def __call__(self, ports: NodePorts) -> NodePorts:
        if ports.life.number > 1:
            try:
                store = FileStore(ports.disk, FORMATS, files=ports.files)
                store.commit({key: None for key in store.read().values if key.startswith("workload.")})
                store.close()
            except StoreFailedError as error:
                ports.life.end()
                raise Killed from error
        return ports


PLANTED_FAULTS: tuple[PlantedFault, ...] = (
    PlantedFault(
        name="remembers-nothing",
        about="nothing that was decided outlives the process",
        spoil=Amnesia,
    ),
    PlantedFault(
        name="grants-forgotten",
        about="what was granted does not outlive the process",
        spoil=GrantsForgotten,
    ),
)
