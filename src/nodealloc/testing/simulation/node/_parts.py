"""What the shipped agent is built on: the simulated executor and clock, and parts that need nothing else."""

from __future__ import annotations

from nodealloc.cpuset import CpuAllocator, CpusetReconciler, StaticPolicy
from nodealloc.dsw_asw import Clock, Executor
from nodealloc.node import NodeAllocator
from nodealloc.podfacts import PodSource
from nodealloc.podlife import Preparation
from nodealloc.podlife.preparers import VolumePreparer
from nodealloc.testing.simulation.node._ports import NodePorts
from nodealloc.volumes import VolumeManager

__all__ = ["Ground"]


class Ground:
    """Ports of one life, and what is made of them alone.

    Args:
        ports: They.
        is_aligned: Whether the agent says that it aligns.

    Attributes:
        executor: Runs slow work in virtual time.
        clock: Virtual time.
    """

    def __init__(self, ports: NodePorts, *, is_aligned: bool) -> None:
        self._ports = ports
        if is_aligned:
            ports.say_aligned()
        self.executor: Executor = ports.life.executor
        self.clock: Clock = ports.life.clock

    def unix_s(self) -> float:
        """The wall clock."""
        return self._ports.now().unix_s

    def cpusets(self, node: NodeAllocator, /) -> CpusetReconciler | None:
        """Confines containers; None where nobody is granted CPUs for itself."""
        found = [one for one in node.snapshot.allocators if isinstance(one, CpuAllocator)]
        if not found or not isinstance(found[0].policy, StaticPolicy):
            return None
        return CpusetReconciler(
            self._ports.cpusets, executor=self.executor, allocator=found[0], clock=self.clock
        )

    def volumes(self, pods: PodSource, /) -> VolumeManager:
        """Mounts volumes, and knows what an earlier life left mounted."""
        plugin = self._ports.volumes
        made = VolumeManager([plugin], pods=pods, executor=self.executor, leftovers=plugin, clock=self.clock)
        made.reconstruct()
        return made

    def mounting(self, volumes: VolumeManager, /) -> Preparation:
        """A pod's volumes as one of its preparations."""
        by = VolumePreparer(volumes)
        wakes = by.mounted
        why = "containers are made with their mounts"
        return Preparation(name="volumes", why=why, by=by, wakes=wakes)
