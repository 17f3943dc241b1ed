"""Where a pod lives in the cgroup tree, and with which limits."""

from nodealloc.cgroups._detect import detect
from nodealloc.cgroups._driver import CgroupFs
from nodealloc.cgroups._launch import launch
from nodealloc.cgroups._limits import NO_LIMIT, Limits
from nodealloc.cgroups._name import CgroupName, Spelling
from nodealloc.cgroups._stand_in import stand_in

__all__ = ["NO_LIMIT", "CgroupFs", "CgroupName", "Limits", "Spelling", "detect", "launch", "stand_in"]
