"""What the shipped agent is built on: the simulated executor and clock, and parts that need nothing else."""

from __future__ import annotations

from functools import partial

from nodealloc.agent import DevicePreparer, Remembered
from nodealloc.cgroups import QosTree, TreeOptions
from nodealloc.cpuset import CpuAllocator, CpusetReconciler, StaticPolicy
from nodealloc.devices import DeviceAllocator
from nodealloc.devices.plugins import DeviceAdvisor, DevicePlugins
from nodealloc.dsw_asw import Cancel, Clock, Driven, Executor, Periodic
from nodealloc.node import NodeAllocator
from nodealloc.pluginreg import PluginRegistrar
from nodealloc.podfacts import PodSource
from nodealloc.podlife import HookCall, HookRunner, Preparation
from nodealloc.podlife.preparers import CgroupPreparer, VolumePreparer
from nodealloc.podsources import PodSources
from nodealloc.runtime import CommandTimedOutError, RuntimeWatch
from nodealloc.testing.simulation.node._ports import NodePorts, SimulatedRuntime
from nodealloc.volumes import VolumeManager

__all__ = ["AgentParts"]

_LOOK_S = 30.0
"""Seconds between two looks for plugins of which nobody was told."""
_CALLED_OFF = "it was called off before it had ended"


class AgentParts:
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

    def hurries(self, sources: PodSources, /) -> None:
        """Has sources read as soon as one tells of a change."""
        for name, one in self._ports.sources.items():
            one.on_change(partial(sources.hurry, name))

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

    def plugins(self, node: NodeAllocator, /) -> tuple[DevicePlugins | None, tuple[Driven, ...]]:
        """Talks to plugins of devices, and what drives it; nothing where no devices are given out."""
        if not any(isinstance(one, DeviceAllocator) for one in node.snapshot.allocators):
            return None, ()
        return self.device_plugins(node)

    def device_plugins(self, node: NodeAllocator, /) -> tuple[DevicePlugins, tuple[Driven, ...]]:
        """The same on a node that gives out devices."""
        ports, lasting = self._ports, self._ports.life.lasting
        plugins = DevicePlugins(
            node.allocator(DeviceAllocator),
            connect=ports.plugins.connect,
            executor=lasting,
            clock=self.clock,
            look_s=_LOOK_S,
        )
        node.advise_with(DeviceAdvisor(plugins))
        registrar = PluginRegistrar(
            "/plugins",
            {"DevicePlugin": plugins},
            registration=ports.plugins,
            executor=lasting,
            clock=self.clock,
            look=ports.plugins.look,
        )
        plugins.begin()
        ports.plugins.on_change(registrar.observe)
        ports.plugins.reports(plugins.capacity)
        looking = Periodic(
            lambda _turn: registrar.observe(),
            every_s=_LOOK_S,
            executor=self.executor,
            clock=self.clock,
            name="looks for plugins",
        )
        return plugins, (looking, registrar.reconciler, plugins.engine)

    def cgroups(self, was: Remembered, watch: RuntimeWatch, /) -> CgroupPreparer:
        """Limits pods; what nobody knows stays as it is until it is known what runs."""
        return was.cgroups(QosTree(self._ports.cgroups, TreeOptions(), clock=self.clock), watch)

    def rounds(self, cgroups: CgroupPreparer, /) -> Driven:
        """Tries again what failed of them."""
        return cgroups.rounds(executor=self.executor, clock=self.clock)

    def limiting(self, cgroups: CgroupPreparer, /) -> Preparation:
        """A pod's cgroup as one of its preparations."""
        return Preparation(name=cgroups.NAME, why="whatever is started for a pod is limited", by=cgroups)

    def preparing(self, plugins: DevicePlugins, /) -> Preparation:
        """What plugins do for a pod as one of its preparations."""
        why = "plugins have to allocate before a container is made"
        return Preparation(name=DevicePreparer.NAME, why=why, by=DevicePreparer(plugins))

    def hooks(self) -> HookRunner:
        """Runs commands of hooks in virtual time."""
        return _Hooks(self._ports.runtime)

    def mounting(self, volumes: VolumeManager, /) -> Preparation:
        """A pod's volumes as one of its preparations."""
        by = VolumePreparer(volumes)
        wakes = by.mounted
        why = "containers are made with their mounts"
        return Preparation(name=by.NAME, why=why, by=by, wakes=wakes)


class _Hooks:
    """A `HookRunner` of commands, on the thread of its caller."""

    def __init__(self, commands: SimulatedRuntime) -> None:
        self._commands = commands

    def run_hook(self, call: HookCall, cancel: Cancel, /) -> str:
        """See `HookRunner.run_hook`."""
        command = () if call.handler.exec is None else call.handler.exec.command
        if not command or call.timeout_s <= 0:
            return "no time is left for it"
        try:
            done = self._commands.run_command(call.container_id, command, call.timeout_s, cancel)
        except CommandTimedOutError as error:
            return _CALLED_OFF if cancel.is_set() else str(error)
        if cancel.is_set():
            return _CALLED_OFF
        return f"it ended with {done.code}" if done.code else ""
