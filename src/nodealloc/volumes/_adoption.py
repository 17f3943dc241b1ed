"""What was found at start: held until it is known whether somebody wants it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable

import attrs

from nodealloc.dsw_asw import World
from nodealloc.podfacts import PodLife, PodSource
from nodealloc.volumes._model import ActualVolume, DesiredVolume, VolumeId, VolumeSpec
from nodealloc.volumes._populator import Populated
from nodealloc.volumes._settle import found

__all__ = ["Adoption"]

_ME = "reconstruct"


class Adoption:
    """Holds mounts and volumes found at start, and lets go of them; thread-safe.

    A pod's mounts are let go when its wishes are known: it has ended, or all
    its volumes were resolved. One that is none of these, since an edit took it
    out, is held until the pod has ended: what was made before the edit may run on
    it. A volume itself is let go when that is so of every pod, because any of them
    may want it.
    """

    def __init__(
        self,
        pods: PodSource,
        populated: World[str, Populated],
        desired: World[VolumeId, DesiredVolume],
        actual: World[VolumeId, ActualVolume],
    ) -> None:
        self._source = pods
        self._populated = populated
        self._desired = desired
        self._actual = actual
        self._lock = threading.RLock()
        self._volumes: dict[VolumeId, None] = {}
        self._by_pod: dict[str, dict[VolumeId, None]] = {}
        self._taken_out: dict[str, dict[VolumeId, None]] = {}
        self._awaited: dict[str, None] | None = None

    def hold(self, spec: VolumeSpec, pod_uid: str, /) -> None:
        """Record something that was found, as uncertain."""
        with self._lock:
            self._actual.alter(spec.id, lambda before: found(before, spec, pod_uid), by=_ME)
            self._volumes[spec.id] = None
            if pod_uid:
                self._by_pod.setdefault(pod_uid, {})[spec.id] = None

    def pods(self) -> tuple[str, ...]:
        """Pods whose mounts are held."""
        with self._lock:
            return tuple({**self._by_pod, **self._taken_out})

    def await_pods(self, uids: Iterable[str], /) -> None:
        """These are all pods there are: volumes are held until the last of them is known."""
        if not self._volumes or not self._source.is_ready():
            return
        # The source is asked outside the lock, because it may hold one of its own while it tells of a pod.
        unknown = [uid for uid in uids if not self._is_known(uid)]
        with self._lock:
            self._awaited = dict.fromkeys(unknown)
        for uid in unknown:
            # It may have become known while the others were asked.
            self.release(uid)
        with self._lock:
            self._release_volumes()

    def release(self, uid: str, /) -> None:
        """Something about a pod changed: let go of its mounts if its wishes are known now."""
        if not (self._volumes or self._taken_out) or not self._is_known(uid):
            return
        wanted = self._wanted(uid)
        with self._lock:
            for key in {**self._taken_out.pop(uid, {}), **self._by_pod.pop(uid, {})}:
                is_adopted = self._is_adopted(key, uid)
                if wanted is not None and key not in wanted and not is_adopted:
                    self._taken_out.setdefault(uid, {})[key] = None
                else:
                    self._actual.alter(key, _let_go(uid, is_adopted=is_adopted), by=_ME)
            if self._awaited is not None:
                self._awaited.pop(uid, None)
                self._release_volumes()

    def _release_volumes(self) -> None:
        if self._awaited or self._by_pod:
            return
        for key in self._volumes:
            self._actual.alter(key, _let_volume_go, by=_ME)
        self._volumes.clear()

    def _is_known(self, uid: str) -> bool:
        """Whether it is certain which volumes a pod wants: none, or those that were resolved."""
        sighting = self._source.get(uid)
        if sighting is None or sighting.life is PodLife.ENDED:
            return self._source.is_ready()
        populated = self._populated.get(uid)
        return sighting.life is PodLife.WANTED and populated is not None and not populated.errors

    def _wanted(self, uid: str) -> Collection[VolumeId] | None:
        """What a pod that has not ended wants; None for any other."""
        sighting, populated = self._source.get(uid), self._populated.get(uid)
        if sighting is None or sighting.life is not PodLife.WANTED or populated is None:
            return None
        return populated.volumes.values()

    def _is_adopted(self, key: VolumeId, uid: str) -> bool:
        """Whether a wanted volume of another key stands in the directory that was found."""
        have, populated = self._actual.get(key), self._populated.get(uid)
        if have is None or populated is None or key in populated.volumes.values():
            return False
        wanted = [self._desired.get(other) for other in populated.volumes.values()]
        names = {(one.spec.plugin, one.spec.name) for one in wanted if one is not None}
        return (have.spec.plugin, have.spec.name) in names


def _let_go(uid: str, *, is_adopted: bool) -> Callable[[ActualVolume | None], ActualVolume | None]:
    def change(before: ActualVolume | None) -> ActualVolume | None:
        mount = None if before is None else before.mounts.get(uid)
        if before is None or mount is None or not mount.held:
            return before
        mounts = {other: one for other, one in before.mounts.items() if other != uid}
        if is_adopted:
            # The wanted volume's own record takes the directory over; nothing is unmounted.
            return attrs.evolve(before, mounts=mounts) if mounts else None
        return attrs.evolve(before, mounts={**mounts, uid: attrs.evolve(mount, held=False)})

    return change


def _let_volume_go(before: ActualVolume | None) -> ActualVolume | None:
    return None if before is None else attrs.evolve(before, held=False)
