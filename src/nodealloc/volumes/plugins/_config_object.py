"""`configMap` and `secret`: objects as files, changed all at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from nodealloc.errors import ConfigurationError, RetryableError
from nodealloc.podspec import Json, Pod, Volume
from nodealloc.volumes._errors import InvalidVolumeError
from nodealloc.volumes._model import Use, VolumeSpec
from nodealloc.volumes._paths import SafeRoot, naming
from nodealloc.volumes._pods_directory import leave_pod, pod_path
from nodealloc.volumes._ports import Found, Mounter
from nodealloc.volumes.plugins._atomic_files import FileContent, write_files
from nodealloc.volumes.plugins._config_store import ConfigObject, ConfigStore

__all__ = ["ConfigMap", "Secret"]

_DEFAULT_MODE: Final = 0o644


class _ConfigObject:
    """What config maps and secrets share; thread-safe.

    Args:
        root: Directory of the node's pods.
        mounter: Mounts below `root`.
        store: Reads objects.
        on_changed: Called with a pod's uid when an object that it uses
            changed; `VolumeManager.refresh` fits.
    """

    name: str
    kinds: tuple[str, ...]
    _name_field: str
    _in_memory: bool

    def __init__(
        self,
        root: SafeRoot,
        mounter: Mounter,
        store: ConfigStore,
        /,
        on_changed: Callable[[str], None] = lambda _uid: None,
    ) -> None:
        if store.on_change is not None:
            raise ConfigurationError(
                f"this ConfigStore serves another plugin; give {self.name} one of its own"
            )
        self._root = root
        self._mounter = mounter
        self._store = store
        self._lock = threading.Lock()
        self._users: dict[tuple[str, str], dict[tuple[str, str], None]] = {}
        self.on_changed = on_changed
        store.on_change = self._changed

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
                "defaultMode": _mode(volume.name, volume.spec.get("defaultMode", _DEFAULT_MODE)),
                "items": _items(volume.name, volume.spec.get("items")),
            },
        )

    def revision(self, spec: VolumeSpec, /) -> str:
        """The object's version; "" for one that is absent and optional."""
        found = self._read(spec)
        return "" if found is None else found.version

    def mount(self, spec: VolumeSpec, use: Use, device_path: str, /) -> None:
        """Write the files, in memory for a secret; the same content again writes nothing."""
        del device_path
        with self._lock:
            self._users.setdefault(_key(spec), {})[use.pod_uid, spec.name] = None
        files = _files(spec, self._read(spec))
        path = self.path(spec, use)
        self._root.make_directory(path, mode=0o777)
        if self._in_memory and not self._mounter.is_mounted(path):
            self._mounter.mount("tmpfs", path, fstype="tmpfs", options=["mode=777", "nosuid", "nodev"])
        with self._root.open_directory(path) as fd, naming(path):
            write_files(fd, files)

    def unmount(self, spec: VolumeSpec, use: Use, /) -> None:
        """Take the memory off and delete the files."""
        path = self.path(spec, use)
        while self._mounter.is_mounted(path):
            self._mounter.unmount(path)
        self._root.remove_tree(path)
        leave_pod(self._root, path)
        key = _key(spec)
        with self._lock:
            users = self._users.get(key, {})
            users.pop((use.pod_uid, spec.name), None)
            is_last = not users and self._users.pop(key, None) is not None
        if is_last:
            self._store.forget(*key)

    def path(self, spec: VolumeSpec, use: Use, /) -> str:
        """`pods/UID/volumes/PLUGIN/NAME`."""
        return pod_path(self._root, self.name, use.pod_uid, spec.name)

    def reconstruct(self, found: Found, /) -> VolumeSpec | None:
        """Path and pod tell everything that taking it down needs."""
        if not found.pod_uid or found.block:
            return None
        return VolumeSpec(plugin=self.name, name=found.name, pod_uid=found.pod_uid)

    def _read(self, spec: VolumeSpec) -> ConfigObject | None:
        namespace, name = _key(spec)
        found = self._store.read(namespace, name)
        if found is None and not spec.config.get("optional"):
            raise RetryableError(
                f"{self.kinds[0]} {namespace}/{name} does not exist; create it, or mark the volume optional"
            )
        return found

    def _changed(self, namespace: str, name: str) -> None:
        with self._lock:
            uids = dict.fromkeys(uid for uid, _ in self._users.get((namespace, name), ()))
        for uid in uids:
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


def _mode(volume: str, mode: Json) -> int:
    if not isinstance(mode, int) or isinstance(mode, bool) or not 0 <= mode <= 0o777:
        raise InvalidVolumeError(volume, f"mode is {mode!r}; use 0 to 511, which is 0777 in octal")
    return mode


def _items(volume: str, items: Json) -> Json:
    if items is None:
        return None
    if not isinstance(items, Sequence) or isinstance(items, str):
        raise InvalidVolumeError(volume, f"items is {items!r}; write a list of key and path")
    read: list[Json] = []
    for item in items:
        key = item.get("key") if isinstance(item, Mapping) else None
        path = item.get("path") if isinstance(item, Mapping) else None
        if not isinstance(item, Mapping) or not isinstance(key, str) or not isinstance(path, str):
            raise InvalidVolumeError(volume, f"item {item!r} lacks key or path")
        mode = item.get("mode")
        read.append(
            {
                "key": key,
                "path": _checked(volume, path),
                "mode": None if mode is None else _mode(volume, mode),
            }
        )
    return read


def _checked(volume: str, path: str) -> str:
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts) or parts[0].startswith("..") or "\0" in path:
        raise InvalidVolumeError(
            volume, f"path {path!r} leads out of the volume; write a relative path without `..`"
        )
    return path


def _files(spec: VolumeSpec, found: ConfigObject | None) -> dict[str, FileContent]:
    """Which files the object gives; names that lead out of the volume are refused."""
    default, items = spec.config.get("defaultMode"), spec.config.get("items")
    default_mode = default if isinstance(default, int) else _DEFAULT_MODE
    data: Mapping[str, bytes] = {} if found is None else found.data
    if not isinstance(items, Sequence) or isinstance(items, str):
        return {_checked(spec.name, key): FileContent(value, default_mode) for key, value in data.items()}
    files: dict[str, FileContent] = {}
    for item in items:
        if isinstance(item, Mapping):
            key, path, mode = str(item["key"]), str(item["path"]), item["mode"]
            if key in data:
                files[path] = FileContent(data[key], mode if isinstance(mode, int) else default_mode)
            elif not spec.config.get("optional"):
                raise RetryableError(
                    f"volume {spec.name!r}: key {key!r} is not in {spec.config.get('object')}; "
                    "add it, or mark the volume optional"
                )
    return files
