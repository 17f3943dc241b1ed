"""The pods' volumes: which pods there are, as the volume manager asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from nodealloc.dsw_asw import ThreadExecutor
from nodealloc.errors import RetryableError
from nodealloc.podfacts import PodLife, PodSighting
from nodealloc.podspec import Pod
from nodealloc.volumes import (
    LinuxMounter,
    LinuxMountTable,
    PodsDirectory,
    SafeRoot,
    VolumeManager,
    WatchedMounter,
)
from nodealloc.volumes.plugins import EmptyDir, HostPath

__all__ = ["Volumes"]


class Volumes:
    """The volume manager in a thread of its own, told of pods once a round. Is its `PodSource`.

    Args:
        folder: Holds `pods/UID/volumes/…`, where everything is mounted.
    """

    def __init__(self, folder: Path) -> None:
        root = SafeRoot(str(folder))
        mounter = WatchedMounter(root, LinuxMounter(root), LinuxMountTable())
        leftovers = PodsDirectory(root, mounter)
        self._sightings: Mapping[str, PodSighting] = {}
        self._manager = VolumeManager(
            [EmptyDir(root, mounter), HostPath()],
            pods=self,
            executor=ThreadExecutor(),
            leftovers=leftovers,
            mounts=mounter,
        )
        leftovers.tidy()
        self._manager.reconstruct()
        self._told = False

    def uids(self) -> Iterable[str]:
        """Every pod that is wanted or still runs."""
        return tuple(self._sightings)

    def get(self, uid: str, /) -> PodSighting | None:
        """One of them."""
        return self._sightings.get(uid)

    def is_ready(self) -> bool:
        """Whether the first round has told which pods there are."""
        return self._told

    def tell(self, wanted: Mapping[str, Pod], running: Iterable[str]) -> None:
        """Which pods are to have their volumes; of others that still run, nothing is taken away."""
        before = self._sightings
        unknown = {uid: PodSighting(Pod(uid=uid), PodLife.UNKNOWN) for uid in running}
        self._sightings = {
            **unknown,
            **{uid: PodSighting(pod, PodLife.WANTED) for uid, pod in wanted.items()},
        }
        if not self._told:
            self._told = True
            self._manager.pods_changed()
            self._manager.start()
        for uid in {**before, **self._sightings}:
            if before.get(uid) != self._sightings.get(uid):
                self._manager.pod_changed(uid)
        self._manager.mounts_changed()

    def paths(self, pod: Pod) -> dict[str, str]:
        """Variable of a process to the path of the volume that it names.

        Raises:
            RetryableError: Not all of them are there yet; says which and why.
        """
        used = sorted({use.name for container in pod.all_containers for use in container.volumes})
        found = {volume.name: volume for volume in self._manager.volumes_of(pod.uid)}
        missing = [name for name in used if name not in found or not found[name].mounted]
        if missing:
            why = [f"{name} ({found[name].error})" if name in found else name for name in missing]
            raise RetryableError(f"not mounted yet: {', '.join(why)}")
        return {f"VOLUME_{name.upper().replace('-', '_')}": found[name].path for name in used}

    def holds(self, uid: str) -> bool:
        """Whether anything is still mounted for a pod."""
        return any(uid in record.value.mounts for record in self._manager.actual.snapshot().values())

    def stop(self) -> None:
        """Start nothing more; mounts stay."""
        self._manager.stop()
