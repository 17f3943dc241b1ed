"""Bugs in what is mounted for whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import attrs

from nodealloc.testing.simulation.node._planted_faults._runtimes import Runtime, with_runtime
from nodealloc.testing.simulation.node._planted_faults._values import PlantedFault
from nodealloc.testing.simulation.node._ports import NodePorts
from nodealloc.testing.simulation.node._volumes import SimulatedVolumes
from nodealloc.volumes import Use, VolumeSpec

__all__ = ["PLANTED_FAULTS"]


class Volumes:
    """A plugin of volumes, one call of which a bug changes."""

    def __init__(self, ports: NodePorts) -> None:
        self.inner = ports.volumes
        for name in dir(self.inner):
            if not name.startswith("_") and name not in type(self).__dict__:
                # Abilities are looked for on the object itself.
                setattr(self, name, getattr(self.inner, name))


def with_volumes(kind: Callable[[NodePorts], Volumes]) -> Callable[[], Callable[[NodePorts], NodePorts]]:
    return lambda: lambda ports: attrs.evolve(ports, volumes=cast("SimulatedVolumes", kind(ports)))


class NeverUnmounts(Volumes):
    def unmount(self, spec: VolumeSpec, use: Use, /) -> None:
        """It is believed to have been done."""


class BelievesInMounts(Volumes):
    """A mount that failed is believed to be there."""

    def mount(self, spec: VolumeSpec, use: Use, device_path: str, /) -> None:
        try:
            self.inner.mount(spec, use, device_path)
        except OSError:
            return


class ForgetsMounts(Volumes):
    """What an earlier life mounted is not looked for."""

    def found(self) -> tuple[()]:
        return ()


class UnmountsEarly(Runtime):
    """Volumes are taken from a pod as soon as one of its containers is asked to end."""

    def __init__(self, ports: NodePorts) -> None:
        super().__init__(ports)
        self.volumes = ports.volumes

    def stop_container(self, container_id: str, grace_s: float, /) -> None:
        for uid, pod in self.inner.listing().pods.items():
            if any(one.id == container_id for one in pod.containers):
                for key, use in list(self.volumes.mounts.items()):
                    if use.pod_uid == uid:
                        name = key[0].rpartition("/")[2]
                        self.volumes.unmount(VolumeSpec(plugin=self.volumes.name, name=name), use)
        self.inner.stop_container(container_id, grace_s)


PLANTED_FAULTS: tuple[PlantedFault, ...] = (
    PlantedFault(
        name="never-unmounts",
        about="volumes of a pod that ended stay mounted",
        spoil=with_volumes(NeverUnmounts),
    ),
    PlantedFault(
        name="believes-in-mounts",
        about="a mount that failed counts as one that was made",
        spoil=with_volumes(BelievesInMounts),
    ),
    PlantedFault(
        name="forgets-mounts",
        about="a restarted agent does not know what is mounted",
        spoil=with_volumes(ForgetsMounts),
    ),
    PlantedFault(
        name="unmounts-early",
        about="volumes are taken from a pod while it still runs",
        spoil=with_runtime(UnmountsEarly),
    ),
)
