"""What is made ready for a pod before its containers, in the order in which one needs the other."""

from __future__ import annotations

from nodealloc._typed import typed
from nodealloc.agent._admission import AdmissionPreparer
from nodealloc.agent._devices import DevicePreparer
from nodealloc.devices.plugins import DevicePlugins
from nodealloc.podlife import Preparation
from nodealloc.podlife.preparers import CgroupPreparer, FolderPreparer, VolumePreparer
from nodealloc.volumes import VolumeManager

__all__ = ["preparations_of"]


@typed
def preparations_of(
    *,
    admission: AdmissionPreparer | None = None,
    folders: FolderPreparer | None = None,
    cgroups: CgroupPreparer | None = None,
    volumes: VolumeManager | None = None,
    plugins: DevicePlugins | None = None,
    mounting_s: float = 0.0,
) -> list[Preparation]:
    """What `PodLives(preparations=...)` takes, of the parts that a node has.

    Args:
        admission: Lets pods in.
        folders: Each pod's own directory.
        cgroups: Of each pod.
        volumes: Mounts what pods name.
        plugins: Are asked before a container is made.
        mounting_s: Real seconds that a pod's step waits for its mounts (`VolumePreparer.patience_s`).

    Returns:
        In their order; parts of one's own go behind `admission`, or at the end.

    Source: kubelet ``kubelet.go`` (`SyncPod`).
    """
    found: list[Preparation] = []
    if admission is not None:
        why = "nothing is made for a pod that may not come in"
        found.append(
            Preparation(name=admission.NAME, why=why, by=admission, wakes=admission.room, in_order=True)
        )
    if folders is not None:
        found.append(Preparation(name=folders.NAME, why="volumes lie in the pod's own directory", by=folders))
    if cgroups is not None:
        why = "whatever is started for a pod is limited"
        found.append(Preparation(name=cgroups.NAME, why=why, by=cgroups))
    if volumes is not None:
        mounted, why = VolumePreparer(volumes, patience_s=mounting_s), "containers are made with their mounts"
        found.append(Preparation(name=mounted.NAME, why=why, by=mounted, wakes=mounted.mounted))
    if plugins is not None:
        why = "plugins have to allocate before a container is made"
        found.append(Preparation(name=DevicePreparer.NAME, why=why, by=DevicePreparer(plugins)))
    return found
