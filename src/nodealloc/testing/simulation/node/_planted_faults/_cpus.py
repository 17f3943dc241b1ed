"""Bugs in who is given which CPUs."""

from __future__ import annotations

import attrs

from nodealloc.idset import CPUSet
from nodealloc.runtime import ContainerConfig, LinuxResources, Listing, RunState, SandboxConfig
from nodealloc.testing.simulation.node._planted_faults._runtimes import Runtime, with_runtime
from nodealloc.testing.simulation.node._planted_faults._values import PlantedFault

__all__ = ["PLANTED_FAULTS"]


class SameCpu(Runtime):
    """Whoever has one CPU of its own gets the first one."""

    def create_container(self, sandbox_id: str, config: ContainerConfig, sandbox: SandboxConfig, /) -> str:
        resources = self.changed(config.resources)
        return self.inner.create_container(sandbox_id, attrs.evolve(config, resources=resources), sandbox)

    def update_container(self, container_id: str, resources: LinuxResources, /) -> None:
        self.inner.update_container(container_id, self.changed(resources))

    def changed(self, resources: LinuxResources) -> LinuxResources:
        one = resources.cpus is not None and len(resources.cpus) == 1
        return attrs.evolve(resources, cpus=CPUSet.of(1)) if one else resources


class OtherCpus(Runtime):
    """After a restart of the agent everybody moves on by one CPU."""

    is_new = True

    def listing(self) -> Listing:
        listing = self.inner.listing()
        if self.is_new and self.life.number > 1:
            self.is_new = False
            for pod in listing.pods.values():
                for one in pod.containers:
                    cpus = self.inner.cpus(one.id)
                    if one.state is RunState.RUNNING and len(cpus) == 1:
                        moved = CPUSet.of(min(cpus) % 5 + 1)
                        self.inner.update_container(one.id, LinuxResources(cpus=moved))
        return listing


class PoolStays(Runtime):
    """Containers that share CPUs are not moved off those that become somebody's own."""

    def update_container(self, container_id: str, resources: LinuxResources, /) -> None:
        if resources.cpus is None or len(resources.cpus) == 1:
            self.inner.update_container(container_id, resources)


PLANTED_FAULTS: tuple[PlantedFault, ...] = (
    PlantedFault(
        name="same-cpu",
        about="two containers get one CPU for themselves",
        spoil=with_runtime(SameCpu),
    ),
    PlantedFault(
        name="other-cpus",
        about="a restart of the agent moves running containers to other CPUs",
        spoil=with_runtime(OtherCpus),
    ),
    PlantedFault(
        name="pool-stays",
        about="who shares CPUs stays on one that has become another's own",
        spoil=with_runtime(PoolStays),
    ),
)
