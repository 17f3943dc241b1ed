"""The node: every allocator, and the device plugins that take part in decisions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs

from nodealloc.checkpoint import Store
from nodealloc.cpuset import CpuAllocator, CPUSet, StaticPolicy
from nodealloc.devices import DeviceAllocator
from nodealloc.devices.plugins import DeviceAdvisor, DevicePlugins
from nodealloc.machine import Machine
from nodealloc.memblocks import memory_allocator
from nodealloc.node import NodeAllocator, Runtime, confinement_of
from nodealloc.pluginreg import PluginRegistrar
from nodealloc.topology import Owner, Policy, Snapshot

__all__ = ["Node", "empty_node"]


@attrs.frozen
class Node:
    """What is held, and who was asked about it.

    Attributes:
        allocator: Admits, remembers, releases.
        plugins: Serves device plugins on `device-plugins/kubelet.sock`.
        registrar: Finds plugins that put their socket into `plugins_registry/`.
    """

    allocator: NodeAllocator
    plugins: DevicePlugins
    registrar: PluginRegistrar

    @classmethod
    def start(
        cls,
        empty: Snapshot,
        store: Store,
        runtime: Runtime,
        folder: Path,
        *,
        say: Callable[[str], None],
        rebuild: Callable[[NodeAllocator], None],
    ) -> Node:
        """Load what was remembered, rebuild what was damaged, and take plugins on."""
        allocator = NodeAllocator(empty, store, runtime=runtime, kubelet_files=["cpu"])
        report = allocator.start()
        say(str(report))
        if report.damaged:
            rebuild(allocator)
        if not report.is_clean:
            allocator.accept()
        plugins = DevicePlugins(allocator.allocator(DeviceAllocator), directory=folder / "device-plugins")
        allocator.advise_with(DeviceAdvisor(plugins))
        registrar = PluginRegistrar(folder / "plugins_registry", {"DevicePlugin": plugins})
        plugins.start()
        registrar.start()
        return cls(allocator, plugins, registrar)

    def stop(self) -> None:
        """Let go of plugins; what is held stays held."""
        self.registrar.stop()
        self.plugins.stop()

    @property
    def cpus(self) -> CpuAllocator:
        """Who holds which CPU."""
        return self.allocator.snapshot[CpuAllocator]

    def devices_of(self, owner: Owner) -> list[str]:
        """What an owner holds: `example.com/gpu gpu-0, gpu-1`, a line a resource."""
        held = confinement_of(self.allocator.snapshot, owner).devices
        return [f"{resource} {', '.join(ids)}" for resource, ids in held.items()]


def empty_node(machine: Machine, *, policy: str, reserved: CPUSet) -> Snapshot:
    """The machine with nothing held."""
    system = {node.id: {"memory": min(node.memory_bytes // 10, 512 << 20)} for node in machine.numa_nodes[:1]}
    return Snapshot.of(
        machine,
        policy=Policy.parse(policy),
        allocators=(
            DeviceAllocator(nodes=tuple(machine.nodes) or (0,)),
            CpuAllocator(policy=StaticPolicy.of(machine, reserved=reserved)),
            memory_allocator(machine, reserved=system),
        ),
    )
