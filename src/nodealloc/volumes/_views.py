"""What people ask about a pod's volumes, answered from the worlds as they are now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from nodealloc import _attrs as attrs
from nodealloc.dsw_asw import Failure, World
from nodealloc.volumes._abilities import Abilities
from nodealloc.volumes._model import ActualVolume, DesiredVolume, Use, VolumeId, VolumeSpec
from nodealloc.volumes._plan import is_right
from nodealloc.volumes._populator import Populated

__all__ = ["PodVolume", "Views"]


@attrs.frozen(kw_only=True)
class PodVolume:
    """A pod's volume, as people ask for it.

    Attributes:
        name: The pod's name of it.
        id: The volume, or "" while it is not resolved.
        path: What containers are given, or "" while it is not there.
        mounted: Whether the pod has it, certainly and up to date.
        read_only: Whether the pod may only read it, as far as is known.
        device_path: Of its device, or "".
        size_bytes: Its size, where it is known.
        error: Why it is not there, or "".
    """

    name: str
    id: VolumeId = ""
    path: str = ""
    mounted: bool = False
    read_only: bool = False
    device_path: str = ""
    size_bytes: int | None = None
    error: str = ""


class Views:
    """Reads both worlds and changes nothing; any thread.

    Args:
        plugins: By name.
        populated: What came of each pod's wishes.
        desired: Volumes that are wanted.
        actual: Volumes that are there.
        failures: Of a volume, what failed and was not made good.
    """

    def __init__(
        self,
        plugins: Mapping[str, Abilities],
        populated: World[str, Populated],
        desired: World[VolumeId, DesiredVolume],
        actual: World[VolumeId, ActualVolume],
        failures: Callable[[VolumeId], Iterable[Failure]],
    ) -> None:
        self._plugins = plugins
        self._populated = populated
        self._desired = desired
        self._actual = actual
        self._failures = failures

    def ids(self, uid: str, /) -> tuple[VolumeId, ...]:
        """Volumes that a pod's wishes came to."""
        populated = self._populated.get(uid)
        return () if populated is None else tuple(populated.volumes.values())

    def volumes_of(self, uid: str, /) -> tuple[PodVolume, ...]:
        """A pod's volumes, with the last error of each that is not there.

        Of one that is no more those that are left, with the last error of taking them down.
        """
        populated = self._populated.get(uid)
        if populated is None:
            records = {key: one.value for key, one in self._actual.snapshot().items()}
            left = {key: one.spec.name for key, one in records.items() if uid in one.mounts}
            return tuple(self._pod_volume(uid, name, key) for key, name in left.items())
        found = {name: self._pod_volume(uid, name, key) for name, key in populated.volumes.items()}
        for name, error in populated.errors.items():
            found[name] = attrs.evolve(found.get(name) or PodVolume(name=name), error=str(error))
        return tuple(found.values())

    def in_use(self) -> frozenset[VolumeId]:
        """Attachable volumes that somebody wants or that are there."""
        desired, actual = self._desired.snapshot(), self._actual.snapshot()
        specs = [record.value.spec for world in (desired, actual) for record in world.values()]
        return frozenset(spec.id for spec in specs if spec.needs_attach)

    def supplemental_groups(self, uid: str, /) -> tuple[int, ...]:
        """Groups of a pod's volumes, sorted."""
        wanted = [self._desired.get(key) for key in self.ids(uid)]
        return tuple(sorted({one.spec.gid for one in wanted if one is not None and one.spec.gid is not None}))

    def _pod_volume(self, uid: str, name: str, key: VolumeId) -> PodVolume:
        have, want = self._actual.get(key), self._desired.get(key)
        use = None if want is None else want.uses.get(uid)
        errors = [str(one) for one in self._failures(key) if len(one.scope) < 2 or one.scope[1] == uid]
        path, mounted = "", False
        if have is not None and use is not None and is_right(have.mounts.get(uid), use):
            try:
                path, mounted = self._path(have.spec, use), True
            except Exception as error:  # noqa: BLE001 - a plugin may raise what it likes; its pod is told
                errors.append(f"path: the plugin raised {error!r}")
        return PodVolume(
            name=name,
            id=key,
            path=path,
            mounted=mounted,
            read_only=use is not None and use.read_only,
            device_path="" if have is None else have.device_path,
            size_bytes=None if have is None else have.size_bytes,
            error="; ".join(errors),
        )

    def _path(self, spec: VolumeSpec, use: Use) -> str:
        plugin = self._plugins.get(spec.plugin)
        return plugin.mount.path(spec, use) if plugin is not None and plugin.mount is not None else ""
