"""A directory that stands in for a cgroup tree, for tests and laptops. It confines nobody."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from pathlib import Path
from typing import Final

from typing_extensions import override

from nodealloc._arguments import wrong
from nodealloc._not_now import NOT_NOW
from nodealloc._plain_file import open_plain
from nodealloc._procfs import PROC, stat_of
from nodealloc._typed import typed
from nodealloc.cgroups._convert import PAGE_BYTES
from nodealloc.cgroups._driver import CgroupFs
from nodealloc.cgroups._files import KernelFiles
from nodealloc.cgroups._layout import CgroupMount, Layout
from nodealloc.cgroups._name import Spelling
from nodealloc.cgroups._processes import end

__all__ = ["MARKER", "stand_in"]

MARKER: Final = ".cgroup-stand-in"
"""File in the directory by which `detect` knows it again; its text is the version."""

_MARK: Final = 16
"""Characters of a mark that are looked at; each version is one."""
_V2_CONTROLLERS: Final = ("cpu", "cpuset", "hugetlb", "memory", "pids")
_V1_CONTROLLERS: Final = ("cpu", "cpuacct", "cpuset", "freezer", "hugetlb", "memory", "pids")
_CPUS: Final = "0-1023"
_LAST: Final = "cgroup.procs"
"""Written last and removed first, so that its presence means that a directory is complete."""
_V1_NONE: Final = "9223372036854771712"

_V2_FILES: Final = {
    "cpu": {"cpu.weight": "100", "cpu.max": "max 100000", "cpu.stat": "usage_usec 0"},
    "cpuset": {"cpuset.cpus": "", "cpuset.mems": ""},
    "hugetlb": {"hugetlb.2MB.max": "max", "hugetlb.1GB.max": "max"},
    "memory": {
        "memory.current": "0",
        "memory.min": "0",
        "memory.high": "max",
        "memory.max": "max",
        "memory.swap.max": "max",
        "memory.events": "oom_kill 0",
        "memory.stat": "inactive_file 0",
    },
    "pids": {"pids.max": "max", "pids.current": "0"},
}
_V1_FILES: Final = {
    "cpu": {
        "cpu.shares": "1024",
        "cpu.cfs_period_us": "100000",
        "cpu.cfs_quota_us": "-1",
        "cpu.stat": "nr_periods 0",
    },
    "cpuacct": {"cpuacct.usage": "0"},
    "cpuset": {"cpuset.cpus": "", "cpuset.mems": ""},
    "freezer": {"freezer.state": "THAWED"},
    "hugetlb": {"hugetlb.2MB.limit_in_bytes": _V1_NONE, "hugetlb.1GB.limit_in_bytes": _V1_NONE},
    "memory": {
        "memory.limit_in_bytes": _V1_NONE,
        "memory.usage_in_bytes": "0",
        "memory.oom_control": "oom_kill 0",
        "memory.stat": "total_inactive_file 0",
    },
    "pids": {"pids.max": "max", "pids.current": "0"},
}


class _StandInFiles(KernelFiles):
    """Ordinary files that behave as control files do, as far as this package relies on it."""

    def __init__(self, root: str) -> None:
        self._root = root

    @override
    def make(self, path: str, /) -> None:
        """Make a directory with the control files that its hierarchy has, or complete one."""
        super().make(path)
        if not self.exists(path):
            self.fill(path)

    @override
    def exists(self, path: str, /) -> bool:
        """Whether a directory is there with all its files; a crash may have left it half made."""
        return Path(path, _LAST).is_file()

    def fill(self, path: str, /) -> None:
        """Put the control files into a directory that has none."""
        below = Path(path).relative_to(self._root).parts
        version = self.read(f"{self._root}/{MARKER}")
        tables = {below[0]: _V1_FILES[below[0]]} if version == "1" else _V2_FILES
        files = {name: text for table in tables.values() for name, text in table.items()}
        if version == "2":
            files |= {
                "cgroup.kill": "",
                "cgroup.subtree_control": "",
                "cgroup.controllers": " ".join(_V2_FILES),
            }
        for name, text in files.items():
            Path(path, name).write_text(text)
        Path(path, _LAST).write_text("")

    @override
    def write(self, path: str, text: str, /) -> None:
        """Store a text as the kernel would read it back."""
        directory, _, file = path.rpartition("/")
        if not Path(path).is_file():
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if file == "cgroup.procs":
            self._move(int(text), directory)
        elif file == "cgroup.kill":
            end(lambda: frozenset(pid for below in self.walk(directory) for pid in self.pids(below)))
        elif file == "cgroup.subtree_control":
            known = set((self.read(path) or "").split())
            Path(path).write_text(" ".join(sorted(known | {text.removeprefix("+")})))
        else:
            Path(path).write_text(self._as_read(path, file, text))

    def _as_read(self, path: str, file: str, text: str) -> str:
        if file == "cpu.max" and " " not in text:
            return f"{text} {(self.read(path) or '').split()[1]}"
        if re.fullmatch(r"(memory|hugetlb)\..*", file) and text.isdigit():
            return str(int(text) // PAGE_BYTES * PAGE_BYTES)
        if text == "-1" and file.endswith("limit_in_bytes"):
            return _V1_NONE
        return text

    def _move(self, pid: int, directory: str) -> None:
        if not (PROC / str(pid)).exists():
            raise OSError(errno.ESRCH, os.strerror(errno.ESRCH), directory)
        top = Path(self._root)
        if self.read(f"{self._root}/{MARKER}") == "1":
            top /= Path(directory).relative_to(top).parts[0]
        for below in filter(self.exists, self.walk(str(top))):
            self._list(below, self.pids(below) - {pid})
        self._list(directory, self.pids(directory) | {pid})

    def _list(self, directory: str, pids: frozenset[int]) -> None:
        Path(directory, "cgroup.procs").write_text("".join(f"{each}\n" for each in sorted(pids)))

    @override
    def pids(self, path: str, /) -> frozenset[int]:
        """Processes that were moved here and still run."""
        return frozenset(pid for pid in super().pids(path) if _runs(pid))

    @override
    def remove(self, path: str, /) -> None:
        """Remove a directory with its control files, unless processes are in it."""
        if self.pids(path):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), path)
        directory = Path(path)
        (directory / _LAST).unlink(missing_ok=True)
        for file in directory.iterdir() if directory.is_dir() else ():
            file.unlink()
        super().remove(path)


def _runs(pid: int) -> bool:
    try:
        return not stat_of(pid).has_ended
    except OSError as error:
        return error.errno in NOT_NOW  # nobody knows; it may run


def _marked(root: Path, marker: Path, version: int) -> str:
    """The version that a directory is marked with; a new one, and one that was cut off, is marked here."""
    text = ""
    # Nobody waits for who writes a pipe, and what has no end is not read to it.
    with (
        contextlib.suppress(FileNotFoundError),
        os.fdopen(open_plain(marker), encoding="utf-8", errors="replace") as file,
    ):
        text = file.read(_MARK)
    if not text:
        root.mkdir(parents=True, exist_ok=True)
        marker.write_text(text := str(version))
    if text not in ("1", "2"):
        raise wrong(f"stand_in: {marker}", text, "1 or 2, or another directory")
    return text


@typed
def stand_in(
    directory: str | os.PathLike[str], *, version: int = 2, spelling: Spelling = Spelling.CGROUPFS
) -> CgroupFs:
    """A driver over ordinary files: the same calls, the same errors, no confinement.

    Processes are remembered and can be killed, limits are stored and read back;
    no limit holds anybody. Made for tests, and for machines that give no cgroups.

    Args:
        directory: Made if absent; one that was used before is taken over as it
            is, with the version that it has.
        version: 1 or 2.
        spelling: How names stand in the file system.

    Raises:
        ConfigurationError: Another version, also as the directory's own mark.
        OSError: The directory cannot be made or written.
    """
    if version not in (1, 2):
        raise wrong("stand_in: version", version, "1 or 2")
    root = Path(os.path.realpath(directory))
    marker = root / MARKER
    files = _StandInFiles(str(root))
    marked = _marked(root, marker, version)
    for top in [root] if marked == "2" else [root / controller for controller in _V1_CONTROLLERS]:
        top.mkdir(exist_ok=True)
        files.make(str(top))
        for name in ("cpuset.cpus", "cpuset.mems"):
            if (top / name).exists() and not (top / name).read_text():
                (top / name).write_text(_CPUS)
    mounts = (
        (CgroupMount(path=str(root), version=2, controllers=_V2_CONTROLLERS),)
        if marked == "2"
        else tuple(
            CgroupMount(path=str(root / each), version=1, controllers=(each,)) for each in _V1_CONTROLLERS
        )
    )
    return CgroupFs(Layout(mounts=mounts, spelling=spelling, stand_in=True), files=files)
