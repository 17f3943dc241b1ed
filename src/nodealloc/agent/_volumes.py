"""The volume manager of this machine, with every kind of volume that the node has something for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nodealloc._typed import typed
from nodealloc.dsw_asw import ThreadExecutor
from nodealloc.errors import ConfigurationError
from nodealloc.podfacts import PodSource
from nodealloc.podspec import Quantity
from nodealloc.volumes import (
    LinuxMounter,
    LinuxMountTable,
    Mounter,
    MountTable,
    PodsDirectory,
    SafeRoot,
    SubPaths,
    VolumeManager,
    WatchedMounter,
)
from nodealloc.volumes.plugins import PodObjects, node_plugins

__all__ = ["node_volumes"]

_NO_OBJECTS = PodObjects()


@typed
def node_volumes(
    root: Path,
    pods: PodSource,
    objects: PodObjects = _NO_OBJECTS,
    /,
    *,
    allocatable: Mapping[str, Quantity],
    standalone: bool = False,
    mounter: Mounter | None = None,
    table: MountTable | None = None,
) -> VolumeManager:
    """Volumes below a folder, those that an earlier life mounted included.

    Args:
        root: Holds `pods` and `plugins`; it exists, and no other manager has it.
        pods: Whose volumes; `BegunPods` mounts nothing for a pod that was refused.
        objects: Where config maps, secrets and tokens come from.
        allocatable: What the node has for pods: a limit that a container lacks is told as this.
        standalone: As a kubelet without an API server; see `node_plugins`.
        mounter: Who mounts, such as one that asks a helper with more rights; None for this process.
        table: What is mounted, of the same machine as `mounter`; None for the kernel's.

    Raises:
        ConfigurationError: One of `mounter` and `table` without the other.
    """
    if (mounter is None) is not (table is None):
        raise ConfigurationError("node_volumes: give mounter and table, of one machine, or neither")
    safe = SafeRoot(str(root))
    watched = WatchedMounter(safe, mounter or LinuxMounter(safe), table or LinuxMountTable())

    def changed(uid: str) -> None:
        manager.refresh(uid)

    plugins = node_plugins(
        safe, watched, objects, allocatable=allocatable, on_changed=changed, standalone=standalone
    )
    manager = VolumeManager(
        plugins,
        pods=pods,
        executor=ThreadExecutor("volumes"),
        leftovers=PodsDirectory(safe, watched),
        mounts=watched,
        sub_paths=SubPaths(safe, watched),
    )
    manager.reconstruct()
    return manager
