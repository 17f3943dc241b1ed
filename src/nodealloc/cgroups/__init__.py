"""Where a pod lives in the cgroup tree, and with which limits.

- A *cgroup name* is a place in the tree; a node spells it in one of two ways.
- *Limits* are what is asked of one cgroup; what is not asked for stays as it is.
- A *layout* says which controller is mounted where: v1, v2, or both (hybrid).
- A *driver* is the one that writes; all else here only computes.

From pods to files, and the tree that comes of it::

    pods ──▶ limits of each cgroup ──▶ QosTree ──▶ CgroupDriver ──▶ node
             pure                      on dsw_asw, writes changes only

    /kubepods                    all pods; guaranteed ones directly below
    ├── burstable                shares: the sum of its pods' requests
    │   └── pod1234…
    │       └── app              a container: processes live here
    ├── besteffort               2 shares
    └── pod5678…

Names in both spellings:

    >>> name = CgroupName.of("kubepods", "burstable", "podab-cd")
    >>> name.path(), name.path(Spelling.SYSTEMD).rpartition("/")[2]
    ('/kubepods/burstable/podab-cd', 'kubepods-burstable-podab_cd.slice')

`detect()` gives the driver of this node, `stand_in(DIRECTORY)` one for a laptop.
"""

from nodealloc.cgroups._convert import hugepage_name
from nodealloc.cgroups._detect import detect
from nodealloc.cgroups._driver import CgroupFs
from nodealloc.cgroups._enforcement import Enforce, Enforcement, enforce_reservation, enforced_limits
from nodealloc.cgroups._errors import (
    CgroupAbsentError,
    CgroupBusyError,
    CgroupHoldsCallerError,
    ControllerMissingError,
    LimitRefusedError,
    MemoryInUseError,
    NoSuchTreeError,
    ProcessGoneError,
    QuotaInUseError,
    ReadOnlyError,
    UnsupportedLimitError,
)
from nodealloc.cgroups._launch import launch
from nodealloc.cgroups._layout import CgroupMount, Layout
from nodealloc.cgroups._life import CGROUP_LIFE
from nodealloc.cgroups._limits import NO_LIMIT, Limits
from nodealloc.cgroups._name import CgroupName, Spelling
from nodealloc.cgroups._pods import (
    PodOptions,
    SwapBehavior,
    container_files,
    container_limits,
    container_name,
    oom_score_adj,
    pod_name,
    pod_uid,
)
from nodealloc.cgroups._ports import CgroupDriver, ProcessDriver, TreeDriver, TreeReader
from nodealloc.cgroups._qos_tree import TreeOptions
from nodealloc.cgroups._reconciler import QosTree
from nodealloc.cgroups._render import Write, render
from nodealloc.cgroups._report import RemovalState, TreeReport
from nodealloc.cgroups._requirements import check_requirements, check_swap
from nodealloc.cgroups._stand_in import stand_in
from nodealloc.cgroups._stats import CgroupStats
from nodealloc.cgroups._view import pod_view

__all__ = [
    "CGROUP_LIFE",
    "NO_LIMIT",
    "CgroupAbsentError",
    "CgroupBusyError",
    "CgroupDriver",
    "CgroupFs",
    "CgroupHoldsCallerError",
    "CgroupMount",
    "CgroupName",
    "CgroupStats",
    "ControllerMissingError",
    "Enforce",
    "Enforcement",
    "Layout",
    "LimitRefusedError",
    "Limits",
    "MemoryInUseError",
    "NoSuchTreeError",
    "PodOptions",
    "ProcessDriver",
    "ProcessGoneError",
    "QosTree",
    "QuotaInUseError",
    "ReadOnlyError",
    "RemovalState",
    "Spelling",
    "SwapBehavior",
    "TreeDriver",
    "TreeOptions",
    "TreeReader",
    "TreeReport",
    "UnsupportedLimitError",
    "Write",
    "check_requirements",
    "check_swap",
    "container_files",
    "container_limits",
    "container_name",
    "detect",
    "enforce_reservation",
    "enforced_limits",
    "hugepage_name",
    "launch",
    "oom_score_adj",
    "pod_name",
    "pod_uid",
    "pod_view",
    "render",
    "stand_in",
]
