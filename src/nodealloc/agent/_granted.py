"""Containers made from what allocators granted, beside what preparations gave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc._typed import typed_fields
from nodealloc.devices import Launch
from nodealloc.devices.plugins import DevicePlugins
from nodealloc.dsw_asw import Cancel
from nodealloc.errors import RetryableError
from nodealloc.node import NodeAllocator, confinement_of
from nodealloc.podlife import CanStopConfiguring, Configures, ContainerRunOptions, PodRecord, PodRunOptions
from nodealloc.podspec import Container, Pod
from nodealloc.runtime import ContainerConfig, HostDevice, HostMount, LinuxResources, PodReport, SandboxConfig
from nodealloc.topology import Owner

__all__ = ["GrantedConfiguration"]

_BY: Final = "granted"


@typed_fields
@attrs.frozen(kw_only=True)
class GrantedConfiguration:
    """A `Configures` that tells another one what a container was granted.

    Attributes:
        whole: Makes the configuration, such as a `NodeConfiguration`: it finds the grants among
            what preparations gave.
        node: Knows who was granted what.
        plugins: Know what devices bring with them; None where there are none.
        confines: Whether a container starts on its CPUs; without it, CPUs are left to the runtime.
    """

    whole: Configures
    node: NodeAllocator
    plugins: DevicePlugins | None = None
    confines: bool = True
    _cancel: Cancel | None = attrs.field(default=None, repr=False)

    def sandbox(self, pod: Pod, attempt: int, provided: Mapping[str, object], /) -> SandboxConfig:
        """See `Configures.sandbox`."""
        return self.whole.sandbox(pod, attempt, provided)

    def container(
        self, record: PodRecord, container: Container, attempt: int, image_id: str, report: PodReport, /
    ) -> ContainerConfig:
        """See `Configures.container`.

        Raises:
            RetryableError: A plugin has not said yet what goes with its devices.
        """
        options = self._confinement(record, container)
        if self.plugins is not None:
            owner = Owner(record.pod.uid, container.name)
            options = _with_devices(options, self.plugins, owner, self._cancel)
        return self.whole.container(_given(record, container, options), container, attempt, image_id, report)

    def unless_stopped(self, cancel: Cancel, /) -> Configures:
        """See `CanStopConfiguring`: a plugin that hangs is waited for no longer."""
        whole: object = self.whole
        within = whole.unless_stopped(cancel) if isinstance(whole, CanStopConfiguring) else self.whole
        return attrs.evolve(self, whole=within, cancel=cancel)

    def resources(self, record: PodRecord, container: Container, /) -> LinuxResources:
        """See `Configures.resources`; no plugin hears of it, since nothing starts."""
        return self.whole.resources(
            _given(record, container, self._confinement(record, container)), container
        )

    def _confinement(self, record: PodRecord, container: Container) -> ContainerRunOptions:
        held = confinement_of(self.node.snapshot, Owner(record.pod.uid, container.name))
        return ContainerRunOptions(cpus=held.cpus if self.confines else None, mems=held.mems)


def _given(record: PodRecord, container: Container, options: ContainerRunOptions) -> PodRecord:
    """With these options as those of one more preparation."""
    granted = PodRunOptions(containers={container.name: options})
    return attrs.evolve(record, provided={**record.provided, _BY: granted})


def _with_devices(
    options: ContainerRunOptions, plugins: DevicePlugins, owner: Owner, cancel: Cancel | None
) -> ContainerRunOptions:
    plugins.pre_start(owner, cancel=cancel)
    launch = plugins.launch(owner)
    if not isinstance(launch, Launch):
        raise RetryableError(launch.message, after_s=launch.after_s)
    return attrs.evolve(
        options,
        env=launch.env,
        annotations=launch.annotations,
        cdi_devices=launch.cdi_devices,
        devices=tuple(
            HostDevice(
                host_path=one.host_path,
                container_path=_from_root(one.container_path),
                permissions=one.permissions,
            )
            for one in launch.device_nodes
        ),
        mounts=tuple(
            HostMount(
                host_path=one.host_path,
                container_path=_from_root(one.container_path),
                read_only=one.read_only,
            )
            for one in launch.mounts
        ),
    )


def _from_root(path: str) -> str:
    """An absolute path in the container, as runtimes read a relative one; "" stays, and is refused."""
    return f"/{path}" if path and not path.startswith("/") else path
