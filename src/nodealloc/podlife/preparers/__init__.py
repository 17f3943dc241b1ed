"""Preparers over other packages: a pod's cgroup, its folder, its volumes, what is told of it.

Each is handed to `PodLives` in a `Preparation`, in the order that suits the
node; one of your own has the same two methods.

| preparer          | ready when                            | taken back when              |
| ----------------- | ------------------------------------- | ---------------------------- |
| `CgroupPreparer`  | the pod's cgroup is as it asks for    | the cgroup is gone           |
| `FolderPreparer`  | the pod has a folder                  | nothing is mounted in it     |
| `StatusPreparer`  | others were told of the pod           | at once                      |
| `VolumePreparer`  | all volumes that it uses are mounted  | none of them is              |
"""

from nodealloc.podlife.preparers._cgroups import CgroupPreparer
from nodealloc.podlife.preparers._folders import FolderPreparer
from nodealloc.podlife.preparers._status import StatusPreparer
from nodealloc.podlife.preparers._volumes import BegunPods, VolumePreparer

__all__ = ["BegunPods", "CgroupPreparer", "FolderPreparer", "StatusPreparer", "VolumePreparer"]
