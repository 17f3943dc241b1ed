"""`configMap` and `secret`: objects as files, changed all at once."""

from __future__ import annotations

from collections.abc import Callable

from nodealloc._typed import typed
from nodealloc.podspec import Pod, Volume
from nodealloc.volumes._errors import InvalidVolumeError
from nodealloc.volumes._model import Use, VolumeSpec
from nodealloc.volumes._paths import SafeRoot
from nodealloc.volumes._ports import Found, Mounter
from nodealloc.volumes.plugins._config_store import ConfigStore
from nodealloc.volumes.plugins._files import (
    DEFAULT_MODE,
    FileVolumes,
    inner_mounts,
    key_items,
    mode_of,
    revision_of,
)
from nodealloc.volumes.plugins._objects import ObjectFiles

__all__ = ["ConfigMap", "Secret"]


class _ConfigObject:
    """What config maps and secrets share; thread-safe.

    Args:
        root: Directory of the node's pods.
        mounter: Mounts below `root`.
        store: Reads objects.
        on_changed: Called with a pod's uid when an object that it uses
            changed; `VolumeManager.refresh` fits.
        keeps_folders: As of `EmptyDir`.
    """

    name: str
    kinds: tuple[str, ...]
    _name_field: str
    _in_memory: bool

    @typed
    def __init__(
        self,
        root: SafeRoot,
        mounter: Mounter,
        store: ConfigStore,
        /,
        on_changed: Callable[[str], None] = lambda _uid: None,
        *,
        keeps_folders: bool = False,
    ) -> None:
        self.on_changed = on_changed
        self._volumes = FileVolumes(
            root, mounter, self.name, in_memory=self._in_memory, keeps_folders=keeps_folders
        )
        self._objects = ObjectFiles(store, self.kinds[0], plugin=self.name, on_changed=self._changed)
        self._store = store

    def spec(self, pod: Pod, volume: Volume, /) -> VolumeSpec:
        """Read the object's name, `items`, `defaultMode` and `optional`."""
        name = volume.spec.get(self._name_field)
        if not isinstance(name, str) or not name:
            raise InvalidVolumeError(volume.name, f"{self._name_field} is {name!r}; name a {self.kinds[0]}")
        return VolumeSpec(
            plugin=self.name,
            name=volume.name,
            pod_uid=pod.uid,
            config={
                "namespace": pod.namespace,
                "object": name,
                "optional": bool(volume.spec.get("optional", False)),
                "defaultMode": mode_of(volume.name, volume.spec.get("defaultMode")),
                "items": key_items(volume.name, volume.spec.get("items")),
                **inner_mounts(pod, volume.name),
            },
        )

    def revision(self, spec: VolumeSpec, /) -> str:
        """The version of the object, "" where it is absent, and where others are mounted inside."""
        namespace, name = _key(spec)
        self._objects.look(namespace, name, spec.pod_uid, spec.name)
        found = self._objects.read(namespace, name, optional=bool(spec.config.get("optional")))
        return revision_of("" if found is None else found.version, spec)

    def fresh_s(self, spec: VolumeSpec, /) -> float | None:
        """As the store finds changes."""
        del spec
        return self._store.fresh_s

    def mount(self, spec: VolumeSpec, use: Use, device_path: str, /) -> None:
        """Write the files, in memory for a secret; the same content again writes nothing."""
        del device_path
        namespace, name = _key(spec)
        self._objects.use(namespace, name, use.pod_uid, spec.name)
        mode = spec.config.get("defaultMode")
        files = self._objects.files(
            spec.name, namespace, spec.config, mode if isinstance(mode, int) else DEFAULT_MODE
        )
        self._volumes.write(spec, use, files)

    def unmount(self, spec: VolumeSpec, use: Use, /) -> None:
        """Take the memory off and delete the files."""
        self._volumes.remove(spec.name, use)
        self._objects.leave(use.pod_uid, spec.name)

    def path(self, spec: VolumeSpec, use: Use, /) -> str:
        """`pods/UID/volumes/PLUGIN/NAME`."""
        return self._volumes.path(spec.name, use)

    def reconstruct(self, found: Found, /) -> VolumeSpec | None:
        """Path and pod tell everything that taking it down needs."""
        return self._volumes.found(found)

    def _changed(self, uid: str) -> None:
        self.on_changed(uid)


class ConfigMap(_ConfigObject):
    """Plugin for `configMap`, on disk. Source: kubelet ``volume/configmap``."""

    name: str = "kubernetes.io/configmap"
    kinds: tuple[str, ...] = ("configMap",)
    _name_field: str = "name"
    _in_memory: bool = False


class Secret(_ConfigObject):
    """Plugin for `secret`, on a tmpfs, so that it never reaches a disk. Source: kubelet ``volume/secret``."""

    name: str = "kubernetes.io/secret"
    kinds: tuple[str, ...] = ("secret",)
    _name_field: str = "secretName"
    _in_memory: bool = True


def _key(spec: VolumeSpec) -> tuple[str, str]:
    return str(spec.config.get("namespace", "")), str(spec.config.get("object", ""))
