"""Preparers over other rooms: a pod's cgroup, its folder, its volumes.

Each is handed to `PodLives` in a `Preparation`, in the order that suits the
node; one of your own has the same two methods.

| preparer          | ready when                            | taken back when              |
| ----------------- | ------------------------------------- | ---------------------------- |
| `CgroupPreparer`  | the pod's cgroup is as it asks for    | the cgroup is gone           |
| `FolderPreparer`  | the pod has a folder                  | nothing is mounted in it     |
| `VolumePreparer`  | all volumes that it uses are mounted  | none of them is              |
"""

from nodealloc.podlife.preparers._cgroups import CgroupPreparer
from nodealloc.podlife.preparers._folders import FolderPreparer
from nodealloc.podlife.preparers._volumes import BegunPods, VolumePreparer

__all__ = ["BegunPods", "CgroupPreparer", "FolderPreparer", "VolumePreparer"]
