"""Volume plugins that ship: each is one class that the manager knows by its abilities alone.

| plugin       | serves                  | where the content lies                                  |
|--------------|-------------------------|---------------------------------------------------------|
| `EmptyDir`   | `emptyDir`              | a directory, or a tmpfs with `medium: Memory`            |
| `HostPath`   | `hostPath`              | where the node has it                                   |
| `ConfigMap`  | `configMap`             | files behind one link, swapped at once                  |
| `Secret`     | `secret`                | the same on a tmpfs                                     |
| `LocalBlock` | claims                  | an image file or a block device, with or without a file system |
"""

from nodealloc.volumes.plugins._block_tools import BlockTools, Filesystems, LinuxBlockTools, LinuxFilesystems
from nodealloc.volumes.plugins._config_object import ConfigMap, Secret
from nodealloc.volumes.plugins._config_store import (
    ChangeStrategy,
    ConfigObject,
    ConfigSource,
    ConfigStore,
    WatchableConfigSource,
)
from nodealloc.volumes.plugins._empty_dir import EmptyDir
from nodealloc.volumes.plugins._host_path import HostPath
from nodealloc.volumes.plugins._local_block import LocalBlock

__all__ = [
    "BlockTools",
    "ChangeStrategy",
    "ConfigMap",
    "ConfigObject",
    "ConfigSource",
    "ConfigStore",
    "EmptyDir",
    "Filesystems",
    "HostPath",
    "LinuxBlockTools",
    "LinuxFilesystems",
    "LocalBlock",
    "Secret",
    "WatchableConfigSource",
]
