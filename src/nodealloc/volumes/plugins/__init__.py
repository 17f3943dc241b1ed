"""Volume plugins that ship: each is one class that the manager knows by its abilities alone.

| plugin       | serves                  | where the content lies                                  |
|--------------|-------------------------|---------------------------------------------------------|
| `EmptyDir`   | `emptyDir`              | a directory, or a tmpfs with `medium: Memory`            |
| `HostPath`   | `hostPath`              | where the node has it                                   |
| `ConfigMap`  | `configMap`             | files behind one link, swapped at once                  |
| `Secret`     | `secret`                | the same on a tmpfs                                     |
| `DownwardApi` | `downwardAPI`          | the pod's labels, annotations, amounts as files on a tmpfs |
| `Projected`  | `projected`             | files of several sources on one tmpfs                   |
| `LocalBlock` | claims                  | an image file or a block device, with or without a file system |

`node_plugins` makes those of all kinds that a node has something for.
"""

from nodealloc.volumes.plugins._block_tools import BlockTools, Filesystems
from nodealloc.volumes.plugins._config_object import ConfigMap, Secret
from nodealloc.volumes.plugins._config_store import (
    ChangeStrategy,
    ConfigObject,
    ConfigSource,
    ConfigStore,
    WatchableConfigSource,
)
from nodealloc.volumes.plugins._downward_api import DownwardApi
from nodealloc.volumes.plugins._empty_dir import EmptyDir
from nodealloc.volumes.plugins._host_path import HostPath
from nodealloc.volumes.plugins._local_block import LocalBlock
from nodealloc.volumes.plugins._node_plugins import PodObjects, node_plugins
from nodealloc.volumes.plugins._projected import Projected
from nodealloc.volumes.plugins._tokens import ServiceToken, TokenRequest, TokenSource

__all__ = [
    "BlockTools",
    "ChangeStrategy",
    "ConfigMap",
    "ConfigObject",
    "ConfigSource",
    "ConfigStore",
    "DownwardApi",
    "EmptyDir",
    "Filesystems",
    "HostPath",
    "LocalBlock",
    "PodObjects",
    "Projected",
    "Secret",
    "ServiceToken",
    "TokenRequest",
    "TokenSource",
    "WatchableConfigSource",
    "node_plugins",
]
