"""Finding out at run time which cgroups a node has."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from nodealloc._mountinfo import read_mountinfo
from nodealloc._typed import typed
from nodealloc.cgroups._driver import CgroupFs
from nodealloc.cgroups._errors import NoSuchTreeError
from nodealloc.cgroups._layout import USED_CONTROLLERS, CgroupMount, Layout, mounts_below, others_below
from nodealloc.cgroups._name import Spelling
from nodealloc.cgroups._stand_in import MARKER, stand_in

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["detect"]


@typed
def detect(
    root: str | os.PathLike[str] = "/sys/fs/cgroup",
    *,
    spelling: Spelling = Spelling.CGROUPFS,
    mountinfo: str | None = None,
) -> CgroupFs:
    """The driver for the cgroups of this node: v1, v2, or both side by side.

    Args:
        root: Where cgroups are mounted; a directory inside a v2 hierarchy is
            taken as a subtree that was delegated; one made by `stand_in` is
            recognised.
        spelling: How names stand in the file system.
        mountinfo: Text in the format of `/proc/self/mountinfo`; read if not given.

    Raises:
        NoSuchTreeError: No cgroup hierarchy is mounted there.
    """
    top = os.path.realpath(root)
    if mountinfo is None and not os.path.isdir(top):  # noqa: PTH112 - Path raises where it may not look
        raise NoSuchTreeError(str(root), "there is no such directory")
    if Path(top, MARKER).is_file():
        return stand_in(top, spelling=spelling)
    mounted = read_mountinfo() if mountinfo is None else mountinfo
    mounts = mounts_below(mounted, top)
    if not mounts:
        raise NoSuchTreeError(str(root), "no cgroup hierarchy is mounted there")
    others = others_below(mounted, top)
    return CgroupFs(Layout(mounts=tuple(_offered(mounts)), spelling=spelling, others=others))


def _offered(mounts: Iterable[CgroupMount]) -> Iterable[CgroupMount]:
    """Mounts with the controllers of a v2 hierarchy filled in; v1 takes precedence."""
    taken: set[str] = set()
    for mount in mounts:
        if mount.version == 1:
            taken.update(mount.controllers)
            yield mount
            continue
        try:
            text = Path(mount.path, "cgroup.controllers").read_text()
        except OSError:
            text = ""
        offered = sorted(set(text.split()).intersection(USED_CONTROLLERS) - taken)
        yield attrs.evolve(mount, controllers=tuple(offered))
