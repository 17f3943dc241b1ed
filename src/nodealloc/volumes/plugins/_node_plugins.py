"""The plugins of all kinds of pods' volumes that ship, for one node."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nodealloc import _attrs as attrs
from nodealloc._typed import typed
from nodealloc.podspec import Quantity
from nodealloc.volumes._paths import SafeRoot
from nodealloc.volumes._ports import Mounter, Plugin
from nodealloc.volumes.plugins._config_object import ConfigMap, Secret
from nodealloc.volumes.plugins._config_store import (
    ChangeStrategy,
    ConfigSource,
    ConfigStore,
    WatchableConfigSource,
)
from nodealloc.volumes.plugins._downward_api import DownwardApi
from nodealloc.volumes.plugins._empty_dir import EmptyDir
from nodealloc.volumes.plugins._host_path import HostPath
from nodealloc.volumes.plugins._projected import Projected
from nodealloc.volumes.plugins._tokens import TokenSource

__all__ = ["PodObjects", "node_plugins"]

_NO_AMOUNTS: Mapping[str, Quantity] = {}


@attrs.frozen(kw_only=True)
class PodObjects:
    """Where what an API server has for pods is read.

    Attributes:
        config_maps: Reads config maps; None where there are none to ask for.
        secrets: The same of secrets.
        tokens: Gives out tokens of service accounts; None where nobody does.
    """

    config_maps: ConfigSource | None = None
    secrets: ConfigSource | None = None
    tokens: TokenSource | None = None


_NO_OBJECTS = PodObjects()


@typed
def node_plugins(
    root: SafeRoot,
    mounter: Mounter,
    objects: PodObjects = _NO_OBJECTS,
    /,
    *,
    allocatable: Mapping[str, Quantity] = _NO_AMOUNTS,
    on_changed: Callable[[str], None] = lambda _uid: None,
    standalone: bool = False,
) -> list[Plugin]:
    """What a `VolumeManager` takes, of what a node has.

    A source that can tell of changes is watched, another one is read again each minute.

    Args:
        root: Directory of the node's pods.
        mounter: Mounts below `root`.
        objects: A kind of volume for which it has no source is not served.
        allocatable: What the node has for pods: a limit that a container lacks is told as this, and no
            volume in memory is larger.
        on_changed: Called with a pod's uid when an object that it uses changed;
            `VolumeManager.refresh` fits.
        standalone: As a kubelet without an API server: it projects nothing unless it has config maps,
            and the directories above a volume that is gone stay for whoever removes its pod's.
    """
    config_maps, secrets = objects.config_maps, objects.secrets
    found: list[Plugin] = [
        EmptyDir(
            root,
            mounter,
            memory_limit_bytes=allocatable["memory"].value if "memory" in allocatable else None,
            keeps_folders=standalone,
        ),
        HostPath(),
        DownwardApi(root, mounter, allocatable=allocatable, keeps_folders=standalone),
    ]
    if config_maps is not None:
        found.append(ConfigMap(root, mounter, _store(config_maps), on_changed, keeps_folders=standalone))
    if secrets is not None:
        found.append(Secret(root, mounter, _store(secrets), on_changed, keeps_folders=standalone))
    if config_maps is not None or not standalone:
        projected = Projected(
            root,
            mounter,
            config_maps=None if config_maps is None else _store(config_maps),
            secrets=None if secrets is None else _store(secrets),
            tokens=objects.tokens,
            allocatable=allocatable,
            on_changed=on_changed,
            keeps_folders=standalone,
        )
        found.append(projected)
    return found


def _store(source: ConfigSource) -> ConfigStore:
    """Each plugin has one of its own."""
    untyped: object = source
    is_watched = isinstance(untyped, WatchableConfigSource)
    return ConfigStore(source, ChangeStrategy.WATCH if is_watched else ChangeStrategy.GET)
