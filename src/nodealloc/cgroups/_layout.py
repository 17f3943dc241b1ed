"""Values only: which controller is mounted where, and in which version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nodealloc import _attrs as attrs
from nodealloc._arguments import whole
from nodealloc._mountinfo import parse_line
from nodealloc._typed import typed_fields, typed_methods
from nodealloc.cgroups._name import CgroupName, Spelling

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["USED_CONTROLLERS", "CgroupMount", "Layout", "mounts_below", "others_below"]

USED_CONTROLLERS: Final = ("cpu", "cpuacct", "cpuset", "freezer", "hugetlb", "memory", "pids")
"""Controllers that this package makes cgroups in."""


@typed_fields
@attrs.frozen(kw_only=True)
class CgroupMount:
    """One hierarchy of cgroups.

    Attributes:
        path: Directory that stands for the root, without a slash at its end.
        version: 1 or 2.
        controllers: Controllers that it offers, sorted.
        read_only: Whether it is mounted read-only.
    """

    path: str
    version: int = attrs.field(validator=whole(1, 2))
    controllers: tuple[str, ...] = ()
    read_only: bool = False


@typed_methods
@typed_fields
@attrs.frozen(kw_only=True)
class Layout:
    """All hierarchies of a node that this package works in.

    Attributes:
        mounts: v1 hierarchies by path, then the v2 hierarchy if there is one.
        spelling: How names stand in the file system.
        stand_in: Whether ordinary directories stand in for the kernel's.
        others: v1 hierarchies without a controller of this package, by path. A runtime makes cgroups there
            as well; empty ones are removed with the cgroup that they belong to, and nothing else is done.
    """

    mounts: tuple[CgroupMount, ...]
    spelling: Spelling = Spelling.CGROUPFS
    stand_in: bool = False
    others: tuple[CgroupMount, ...] = ()

    @property
    def kind(self) -> str:
        """`v1`, `v2` or `hybrid`."""
        versions = {mount.version for mount in self.mounts}
        return "hybrid" if len(versions) > 1 else f"v{max(versions, default=2)}"

    @property
    def unified(self) -> CgroupMount | None:
        """The v2 hierarchy, with or without controllers."""
        return next((mount for mount in self.mounts if mount.version == 2), None)

    def mount_of(self, controller: str, /) -> CgroupMount | None:
        """The hierarchy that offers a controller, or None.

        On v2, CPU accounting and freezing belong to every cgroup and are no controllers.
        """
        return next((mount for mount in self.mounts if controller in mount.controllers), None)

    def directory(self, mount: CgroupMount, name: CgroupName, /) -> str:
        """Where a cgroup stands in one hierarchy."""
        path = name.path(self.spelling)
        return mount.path if path == "/" else mount.path + path

    def __str__(self) -> str:
        """One line for a log: the kind, and what is where."""
        where = ", ".join(
            f"{'+'.join(mount.controllers) or 'no controllers'} at {mount.path}" for mount in self.mounts
        )
        return f"cgroup {self.kind}{' (a directory that stands in)' if self.stand_in else ''}: {where}"


def mounts_below(mountinfo: str, root: str, /) -> tuple[CgroupMount, ...]:
    """Cgroup hierarchies mounted at, below or around `root`.

    For `root` inside a v2 hierarchy (a delegated subtree), the mount's path is
    `root` itself. The controllers of a v2 hierarchy do not stand in mountinfo;
    they are left empty here.

    Args:
        mountinfo: Text of `/proc/self/mountinfo`.
        root: Absolute directory.

    Source: ``proc(5)``; co-mounted v1 controllers are one hierarchy.
    """
    found = _mounted(mountinfo, root)
    return _in_order(one for one in found if one.version == 2 or one.controllers)


def others_below(mountinfo: str, root: str, /) -> tuple[CgroupMount, ...]:
    """v1 hierarchies at or below `root` that can be written and have no controller of this package."""
    found = _mounted(mountinfo, root)
    return _in_order(one for one in found if one.version == 1 and not (one.controllers or one.read_only))


def _mounted(mountinfo: str, root: str) -> Iterable[CgroupMount]:
    found: dict[str, CgroupMount] = {}
    around: CgroupMount | None = None
    # A line that is none is passed over: it is somebody else's mount, and cgroups can be found without.
    for one in filter(None, map(parse_line, mountinfo.split("\n"))):
        if one.fstype not in {"cgroup", "cgroup2"}:
            continue
        version = 2 if one.fstype == "cgroup2" else 1
        controllers = sorted(set(one.super_options).intersection(USED_CONTROLLERS)) if version == 1 else ()
        made = CgroupMount(
            path=one.target,
            version=version,
            controllers=tuple(controllers),
            read_only=one.read_only or "ro" in one.super_options,
        )
        if one.target == root or one.target.startswith(root.rstrip("/") + "/"):
            found[one.target] = made
        elif version == 2 and root.startswith(one.target + "/"):
            around = attrs.evolve(made, path=root)
    return found.values() if found else [] if around is None else [around]


def _in_order(mounts: Iterable[CgroupMount]) -> tuple[CgroupMount, ...]:
    """v1 before v2."""
    return tuple(sorted(mounts, key=lambda mount: (mount.version, mount.path)))
