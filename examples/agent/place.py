"""Where containers are confined: real cgroups, else the affinity of processes, else a directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs

from nodealloc.cgroups import CgroupFs, CgroupName, Limits, check_requirements, detect, stand_in
from nodealloc.cpuset import AffinityWriter, CgroupV1Writer, CgroupV2Writer, CpusetWriter, process_target
from nodealloc.errors import NodeallocError

__all__ = ["Place", "find_place"]


@attrs.frozen(kw_only=True)
class Place:
    """One way to confine containers.

    Attributes:
        words: What it does, for people.
        driver: Cgroups, real ones or a directory.
        root: Cgroup of all pods.
        writer: Confines a container to CPUs.
        target: The writer's name for a container, from its cgroup and its pid.
    """

    words: str
    driver: CgroupFs
    root: CgroupName
    writer: CpusetWriter
    target: Callable[[CgroupName, int], str]


def find_place(name: str, folder: Path, *, real_machine: bool) -> Place:
    """The first way that this machine allows.

    Args:
        name: Of the cgroup of all pods.
        folder: Where a directory can stand in for cgroups.
        real_machine: Whether the CPUs that are given out are this machine's.
    """
    root = CgroupName.of(name)
    if not real_machine:
        return _directory(root, folder, "the machine is not this one")
    try:
        return _cgroups(root)
    except (NodeallocError, OSError) as error:
        return _affinity(root, folder, str(error))


def _cgroups(root: CgroupName) -> Place:
    driver = detect()
    missing = check_requirements(driver.layout, ("cpuset",))
    if missing:
        raise NodeallocError("; ".join(map(str, missing)))
    driver.apply(root, Limits())
    mount = driver.layout.mount_of("cpuset")
    if mount is None:
        raise NodeallocError("no cpuset controller")
    writer = CgroupV1Writer(root=mount.path) if mount.version == 1 else CgroupV2Writer(root=mount.path)
    words = f"real cgroups ({driver.layout.kind}), cpusets below {mount.path}{root.path()}"
    return Place(
        words=words, driver=driver, root=root, writer=writer, target=lambda cgroup, _pid: cgroup.path()
    )


def _affinity(root: CgroupName, folder: Path, why: str) -> Place:
    return Place(
        words=f"the CPU affinity of processes (no cgroups: {why})",
        driver=stand_in(folder),
        root=root,
        writer=AffinityWriter(),
        target=lambda _cgroup, pid: process_target(pid),
    )


def _directory(root: CgroupName, folder: Path, why: str) -> Place:
    return Place(
        words=f"files below {folder}, which confine nobody ({why})",
        driver=stand_in(folder),
        root=root,
        writer=CgroupV2Writer(root=folder),
        target=lambda cgroup, _pid: cgroup.path(),
    )
