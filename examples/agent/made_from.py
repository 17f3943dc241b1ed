"""What containers are made from beside what preparations gave: CPUs, memory nodes and devices."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from nodealloc.devices import Launch
from nodealloc.devices.plugins import DevicePlugins
from nodealloc.errors import RetryableError
from nodealloc.node import NodeAllocator, confinement_of
from nodealloc.podlife import ContainerGift, NodeConfiguration, PodGift, PodRecord
from nodealloc.podspec import Container, Pod
from nodealloc.runtime import ContainerConfig, HostDevice, HostMount, PodReport, SandboxConfig
from nodealloc.topology import Owner

__all__ = ["Configuring"]


@attrs.frozen(kw_only=True)
class Configuring:
    """A `Configures`: a `NodeConfiguration` that is told what allocators granted.

    Attributes:
        whole: Joins what preparations gave to what the pod says.
        node: Knows who was granted what.
        plugins: Know what devices bring with them.
        confines: Whether CPUs are given out.
    """

    whole: NodeConfiguration
    node: NodeAllocator
    plugins: DevicePlugins
    confines: bool

    def sandbox(self, pod: Pod, attempt: int, provided: Mapping[str, object], /) -> SandboxConfig:
        """See `Configures.sandbox`."""
        return self.whole.sandbox(pod, attempt, provided)

    def container(
        self, record: PodRecord, container: Container, attempt: int, image_id: str, report: PodReport, /
    ) -> ContainerConfig:
        """See `Configures.container`."""
        granted = PodGift(containers={container.name: self._granted(record.pod, container)})
        given = attrs.evolve(record, provided={**record.provided, "allocators": granted})
        return self.whole.container(given, container, attempt, image_id, report)

    def _granted(self, pod: Pod, container: Container) -> ContainerGift:
        owner = Owner(pod.uid, container.name)
        held = confinement_of(self.node.snapshot, owner)
        self.plugins.pre_start(owner)
        launch = self.plugins.launch(owner)
        if not isinstance(launch, Launch):
            raise RetryableError(launch.message, after_s=launch.after_s)
        return ContainerGift(
            cpus=held.cpus if self.confines else None,
            mems=held.mems,
            env=launch.env,
            annotations=launch.annotations,
            cdi_devices=launch.cdi_devices,
            devices=tuple(
                HostDevice(
                    host_path=one.host_path, container_path=one.container_path, permissions=one.permissions
                )
                for one in launch.device_nodes
            ),
            mounts=tuple(
                HostMount(host_path=one.host_path, container_path=one.container_path, read_only=one.read_only)
                for one in launch.mounts
            ),
        )
