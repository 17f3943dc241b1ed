"""What a node lacks before it can confine pods, in words."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nodealloc import _attrs as attrs
from nodealloc._procfs import PROC
from nodealloc._typed import typed, typed_fields
from nodealloc.cgroups._layout import CgroupMount, Layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["NEEDED_CONTROLLERS", "UnmetRequirement", "check_requirements", "check_swap"]

NEEDED_CONTROLLERS: Final = ("cpu", "cpuset", "memory", "pids")
"""Controllers without which pods cannot be confined. Source: kubelet ``cm/container_manager_linux.go``."""


@typed_fields
@attrs.frozen(kw_only=True)
class UnmetRequirement:
    """One thing that is missing.

    Attributes:
        what: Controller, or `swap`.
        reason: What was found instead.
        remedy: What to do about it.
    """

    what: str
    reason: str
    remedy: str

    def __str__(self) -> str:
        """`what: reason; remedy`."""
        return f"{self.what}: {self.reason}; {self.remedy}"


@typed
def check_requirements(
    layout: Layout, /, needed: Iterable[str] = NEEDED_CONTROLLERS
) -> tuple[UnmetRequirement, ...]:
    """What this tree lacks to confine pods; empty when it can.

    Reads the tree and writes nothing. Run it once at start.
    """
    wanted = tuple(needed)
    return (
        *_missing(layout, wanted),
        *(shortfall for mount in layout.mounts for shortfall in _unwritable(mount, set(wanted))),
        *_occupied(layout.unified, set(wanted)),
    )


def _missing(layout: Layout, needed: Iterable[str]) -> Iterator[UnmetRequirement]:
    for controller in needed:
        if layout.mount_of(controller) is not None:
            continue
        if layout.unified is not None:
            known = _offered_by_kernel(controller)
            yield UnmetRequirement(
                what=controller,
                reason=f"it is not in {layout.unified.path}/cgroup.controllers"
                + ("" if known else ", and this kernel does not have it"),
                remedy="hand it down from above (Delegate=yes in the unit, or +"
                f"{controller} in the parent's cgroup.subtree_control)"
                if known
                else "boot a kernel that has it (for memory perhaps with cgroup_enable=memory)",
            )
        else:
            yield UnmetRequirement(
                what=controller,
                reason="no hierarchy with it is mounted",
                remedy=f"mount -t cgroup -o {controller} cgroup /sys/fs/cgroup/{controller}",
            )


def _offered_by_kernel(controller: str) -> bool:
    """Whether `/proc/cgroups` lists a controller as enabled; True where it cannot be read."""
    try:
        lines = (PROC / "cgroups").read_text().splitlines()
    except OSError:
        return True
    enabled = {line.split()[0] for line in lines if line.split()[-1] == "1"}
    return controller in enabled


def _unwritable(mount: CgroupMount, needed: set[str]) -> Iterator[UnmetRequirement]:
    controllers = [each for each in mount.controllers if each in needed] or list(mount.controllers)
    what = "+".join(controllers) or mount.path
    if mount.read_only or _is_read_only(mount.path):
        yield UnmetRequirement(
            what=what, reason=f"{mount.path} is mounted read-only", remedy=f"mount -o remount,rw {mount.path}"
        )
    elif not os.access(mount.path, os.W_OK):
        yield UnmetRequirement(
            what=what,
            reason=f"{mount.path} may not be written by user {os.geteuid()}",
            remedy="run as root, or have a subtree delegated to this user and give it as the root",
        )


def _occupied(unified: CgroupMount | None, needed: set[str]) -> Iterator[UnmetRequirement]:
    """A subtree of v2 whose top holds processes cannot hand its controllers down."""
    if unified is None or not needed.intersection(unified.controllers):
        return
    top = Path(unified.path)
    try:
        # Only the real root has no type, and it alone may hold processes beside children.
        if not (top / "cgroup.type").exists() or not (top / "cgroup.procs").read_text().split():
            return
        switched = (top / "cgroup.subtree_control").read_text().split()
    except OSError:
        return
    missing = sorted(needed.intersection(unified.controllers).difference(switched))
    if missing:
        yield UnmetRequirement(
            what="+".join(missing),
            reason=f"{top} holds processes itself, so that it cannot hand controllers down",
            remedy="move them into a cgroup below it first",
        )


def _is_read_only(path: str) -> bool:
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError:
        return False


@typed
def check_swap(swaps: str | None = None, /) -> UnmetRequirement | None:
    """Swap that is on, or None: memory limits hold less than they say while there is swap.

    Args:
        swaps: Text of `/proc/swaps`; read if not given.

    Source: kubelet ``cm/container_manager_linux.go`` (`failSwapOn`).
    """
    if swaps is None:
        try:
            swaps = (PROC / "swaps").read_text()
        except OSError:  # a kernel without swap has no such file
            return None
    devices = [line.split()[0] for line in swaps.splitlines()[1:] if line.strip()]
    if not devices:
        return None
    return UnmetRequirement(
        what="swap",
        reason=f"it is on ({', '.join(devices)})",
        remedy="swapoff -a, or decide how much swap each cgroup may use (swap_bytes)",
    )
