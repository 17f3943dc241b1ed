"""Attach, mount, grow, unmount, detach: the volume manager on `nodealloc.dsw_asw`.

```text
   PodSource ─▶ populator ─▶ desired volumes ──┐         unmount, then attach, stage, mount,
                   │ ClaimResolver             │         grow, then unstage, detach
                   ▼                           ├─▶ plan() ─▶ Step ─▶ plugin ─▶ Mounter ─▶ the machine
   pods directory ─▶ reconstruct ─▶ actual ────┘                               │
                                      ▲────────────── settled() ◀──────────────┘
```

| noun            | what it is                                                                 |
|-----------------|----------------------------------------------------------------------------|
| `VolumeManager` | the shell: tell it of pods, `start` it, wait for a pod's mounts            |
| `Plugin`        | names volumes; each ability (`CanMount`, `CanStage`, …) is a Protocol of its own |
| `VolumeSpec`    | a volume whose plugin is known                                             |
| `DesiredVolume` | who wants it                                                               |
| `ActualVolume`  | what is there of it; `MAYBE_…` states are uncertain                        |
| `SafeRoot`      | paths that lead nowhere but below one directory                            |
| *staged*        | mounted once for the node, before pods get it                              |
| *held*          | found at start, and not touched before the pods are known                  |
"""

from nodealloc._mountinfo import Mount, parse_mountinfo
from nodealloc.volumes._errors import (
    ClaimError,
    InvalidVolumeError,
    MountBusyError,
    MountedHereError,
    MountError,
    OutsideRootError,
    PodVolumesError,
)
from nodealloc.volumes._linux import LinuxMounter, LinuxMountTable
from nodealloc.volumes._manager import VolumeManager
from nodealloc.volumes._model import Use, VolumeId, VolumeMode, VolumeSpec
from nodealloc.volumes._paths import SafeRoot
from nodealloc.volumes._plan import plan
from nodealloc.volumes._pods_directory import PodsDirectory, leave_pod, pod_path
from nodealloc.volumes._ports import (
    AttachVerifier,
    CanAge,
    CanAttach,
    CanExpand,
    CanMount,
    CanReconstruct,
    CanRevise,
    CanStage,
    ClaimResolver,
    Found,
    Grown,
    Leftovers,
    Mounter,
    MountTable,
    MountWatch,
    Plugin,
    Staged,
)
from nodealloc.volumes._settle import settled
from nodealloc.volumes._states import MOUNT_LIFE, VOLUME_LIFE
from nodealloc.volumes._sub_paths import SubPaths
from nodealloc.volumes._watched_mounter import WatchedMounter

__all__ = [
    "MOUNT_LIFE",
    "VOLUME_LIFE",
    "AttachVerifier",
    "CanAge",
    "CanAttach",
    "CanExpand",
    "CanMount",
    "CanReconstruct",
    "CanRevise",
    "CanStage",
    "ClaimError",
    "ClaimResolver",
    "Found",
    "Grown",
    "InvalidVolumeError",
    "Leftovers",
    "LinuxMountTable",
    "LinuxMounter",
    "Mount",
    "MountBusyError",
    "MountError",
    "MountTable",
    "MountWatch",
    "MountedHereError",
    "Mounter",
    "OutsideRootError",
    "Plugin",
    "PodVolumesError",
    "PodsDirectory",
    "SafeRoot",
    "Staged",
    "SubPaths",
    "Use",
    "VolumeId",
    "VolumeManager",
    "VolumeMode",
    "VolumeSpec",
    "WatchedMounter",
    "leave_pod",
    "parse_mountinfo",
    "plan",
    "pod_path",
    "settled",
]
