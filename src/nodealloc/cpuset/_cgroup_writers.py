"""`CpusetWriter`s on cgroups, versions 1 and 2."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from nodealloc import _attrs as attrs
from nodealloc._control_file import write_control_file
from nodealloc._not_now import NOT_NOW
from nodealloc._typed import typed_fields, typed_methods
from nodealloc.cpuset._errors import CpusetBusyError, CpusetWriteError, TargetGoneError
from nodealloc.errors import NodeallocError
from nodealloc.idset import CPUSet, IdSet, NodeSet, parse_list

__all__ = ["CgroupV1Writer", "CgroupV2Writer"]

S = TypeVar("S", bound=IdSet)

_GONE = frozenset({errno.ENOENT, errno.ENODEV, errno.ENOTDIR})

_WHY: Mapping[int, str] = {
    errno.EACCES: "it is no subset of the parent cgroup's set, or not ours to write; widen the parent first",
    errno.EPERM: "permission denied; run as root, or own the cgroup",
    errno.EINVAL: "the kernel does not take the set; name CPUs and memory nodes that are online",
    errno.ERANGE: "it names CPUs that this machine cannot have",
    errno.ENOSPC: "processes would be left without CPUs or memory nodes; set both before they join",
    errno.EROFS: "the cgroup tree is mounted read-only",
}


@typed_methods
@attrs.frozen
class _CgroupWriter:
    """What both versions share: two files in a directory.

    Attributes:
        root: Where the hierarchy with the cpuset controller is mounted.
    """

    root: Path = attrs.field(converter=Path)

    def read(self, target: str, /) -> tuple[CPUSet, NodeSet | None]:
        """See `CpusetWriter.read`: what the cgroup asks for, empty where it asks for nothing."""
        return self._read(target, "cpuset.cpus", CPUSet), self._read(target, "cpuset.mems", NodeSet)

    def write(self, target: str, cpus: CPUSet, mems: NodeSet | None, /) -> None:
        """See `CpusetWriter.write`; `target` is a path below `root`."""
        if not cpus:
            raise CpusetWriteError(target, "", "an empty set would stop or unconfine it")
        if mems is not None:
            self._write(target, "cpuset.mems", str(mems))
        self._write(target, "cpuset.cpus", str(cpus))

    def _path(self, target: str, name: str) -> Path:
        inside = target.strip("/")
        if not inside or ".." in inside.split("/") or "\0" in inside:
            raise CpusetWriteError(target, "anything", "the target is no cgroup below the root")
        return self.root / inside / name

    def _read(self, target: str, name: str, kind: type[S]) -> S:
        path = self._path(target, name)
        try:
            text = path.read_text(encoding="ascii", errors="replace")
        except OSError as error:
            raise _mapped(error, target, path, "anything", self.root) from error
        return kind.from_mask(parse_list(text.strip(), source=str(path)))

    def _write(self, target: str, name: str, value: str) -> None:
        path = self._path(target, name)
        try:
            write_control_file(path, value)
        except OSError as error:
            raise _mapped(error, target, path, value, self.root) from error


@typed_methods
@typed_fields
@attrs.frozen
class CgroupV1Writer(_CgroupWriter):
    """Containers as cgroups of version 1: `target` is a path below the cpuset hierarchy.

    A new cgroup has neither CPUs nor memory nodes, and takes no process before
    it has both: give `mems` as well. A process that has called
    `sched_setaffinity` itself is narrowed with its cgroup, but not widened.

    Attributes:
        root: Where the hierarchy with the cpuset controller is mounted.

    Source: ``cpuset(7)``.
    """

    root: Path = attrs.field(converter=Path, default=Path("/sys/fs/cgroup/cpuset"))


@typed_methods
@typed_fields
@attrs.frozen
class CgroupV2Writer(_CgroupWriter):
    """Containers as cgroups of version 2: `target` is a path below the unified hierarchy.

    The parent has to delegate the controller (`+cpuset` in its
    `cgroup.subtree_control`). A cgroup that asks for nothing inherits its
    parent's set; it is read as empty, and written.

    Attributes:
        root: Where the unified hierarchy is mounted.

    Source: Linux ``Documentation/admin-guide/cgroup-v2.rst``.
    """

    root: Path = attrs.field(converter=Path, default=Path("/sys/fs/cgroup"))


def _mapped(error: OSError, target: str, path: Path, wanted: str, root: Path) -> NodeallocError:
    if error.errno == errno.EBUSY:
        return CpusetBusyError(target, f"{path.name} {wanted}: a cgroup below it is wider; narrow that first")
    if error.errno in NOT_NOW:
        return CpusetBusyError(target, f"{path}: {os.strerror(error.errno)}; it may be there: try again")
    if error.errno in _GONE:
        try:
            return _missed(error, target, path, wanted, root)
        except OSError as again:
            return CpusetBusyError(target, f"{path.parent}: {again.strerror}; it may be there: try again")
    why = _WHY.get(error.errno or 0, os.strerror(error.errno or 0))
    return CpusetWriteError(target, wanted, why, errno=error.errno)


def _missed(error: OSError, target: str, path: Path, wanted: str, root: Path) -> NodeallocError:
    """What is not there: the file, the hierarchy, or the target."""
    why = ""
    if _is_folder(path.parent):
        why = f"{path.parent} has no {path.name}; enable the cpuset controller in its parent"
    elif not _is_folder(root):
        why = f"{root} is no directory; name the folder where the cpuset hierarchy is mounted"
    return CpusetWriteError(target, wanted, why, errno=error.errno) if why else TargetGoneError(target)


def _is_folder(path: Path) -> bool:
    """Whether one is there; `Path.is_dir` says no, too, of what cannot be looked at."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
