"""The only file that changes cgroups: one driver for v1, v2 and hybrid nodes."""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING, Final

from nodealloc._arguments import check
from nodealloc._typed import typed, typed_methods
from nodealloc.cgroups._errors import (
    CgroupAbsentError,
    CgroupBusyError,
    CgroupHoldsCallerError,
    ControllerMissingError,
    LimitRefusedError,
    Process,
    ReadOnlyError,
    refusal,
)
from nodealloc.cgroups._files import KernelFiles
from nodealloc.cgroups._limits import Limits
from nodealloc.cgroups._name import CgroupName, Spelling
from nodealloc.cgroups._processes import Held, describe, end
from nodealloc.cgroups._render import Write, limits_from, render
from nodealloc.cgroups._stats import CgroupStats, stats_from
from nodealloc.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from nodealloc.cgroups._layout import CgroupMount, Layout
    from nodealloc.errors import NodeallocError

__all__ = ["CgroupFs"]

_KILL_SPARE: Final = 24
"""Descriptors that are left for signals while it is waited for who gets them."""
_KILL_PASSES: Final = 5
"""A process that forks while it is being killed is met again in the next pass."""


@typed_methods
class CgroupFs:
    """Cgroups of this node, written straight into its cgroup file system.

    Which controllers are on v1 and which on v2 is in the layout; everything
    else is the same for both. It is a `CgroupDriver`, a `ProcessDriver` and a
    `TreeReader`. Holds no state of its own and may be used from several threads,
    as long as no two change the same cgroup.

    Args:
        files: How control files are read and written; the kernel's by default.

    Attributes:
        layout: What is mounted where.
        kill_wait_s: How long `kill` waits at most for processes to end, in seconds.
    """

    @typed
    def __init__(
        self, layout: Layout, /, *, files: KernelFiles | None = None, kill_wait_s: float = 2.0
    ) -> None:
        self.layout = layout
        self.kill_wait_s = kill_wait_s
        self._files = files or KernelFiles()

    def exists(self, name: CgroupName, /) -> bool:
        """Whether a cgroup is there in every hierarchy that is used."""
        return all(self._files.exists(path) for _, path in self._places(name))

    def apply(self, name: CgroupName, limits: Limits, /) -> None:
        """Create `name` if it is absent and write the limits that are asked for, no others."""
        check("apply", name, CgroupName, "a CgroupName; CgroupName.parse reads a path")
        writes = render(self.layout, name, limits)
        self._create(name)
        try:
            self._write_all(name, writes)
        except LimitRefusedError as refused:
            unified = self.layout.unified
            if refused.errno != errno.ENOENT or unified is None or not name.parts:
                raise
            # Somebody switched a controller off since the cgroup was made.
            self._hand_down(unified, name.parent)
            self._write_all(name, writes)

    def read(self, name: CgroupName, /) -> Limits | None:
        """Limits as the kernel holds them now; None for a cgroup that does not exist."""
        if not self.exists(name):
            return None
        found = limits_from(self._reader(name), self.layout, self.hugepage_sizes())
        # Asked again, since a cgroup that went meanwhile has told a part of them only.
        return found if self.exists(name) else None

    def remove(self, name: CgroupName, /) -> None:
        """Remove `name` and all below it; raises `CgroupBusyError` while processes are in it."""
        # Asked first, so that a cgroup that has to stay does not lose its children.
        if pids := self.pids(name):
            raise CgroupBusyError(name, self._named(pids))
        for mount, path in self._places(name):
            for directory in self._files.walk(path) if self._files.exists(path) else ():
                try:
                    self._files.remove(directory)
                except OSError as error:
                    if error.errno == errno.EBUSY:
                        raise CgroupBusyError(name, self._left(name)) from None
                    raise _refused_directory(error, path, mount, name) from None
        self._remove_others(name)

    def _remove_others(self, name: CgroupName) -> None:
        """What a runtime made in hierarchies that are not used here, and left behind; who is in it stays."""
        for mount in self.layout.others if name.parts else ():
            path = self.layout.directory(mount, name)
            for directory in self._files.walk(path) if self._files.exists(path) else ():
                with contextlib.suppress(OSError):
                    self._files.remove(directory)

    def attach(self, name: CgroupName, pid: int, /) -> None:
        """Move a process with all its threads, in every hierarchy that is used.

        Raises:
            CgroupAbsentError: There is no such cgroup.
            ProcessGoneError: The process has ended.
        """
        if pid <= 0:
            raise ConfigurationError(f"process id {pid}: a process has a positive one")
        for mount, path in self._places(name):
            if not self._files.exists(path):
                raise CgroupAbsentError(name, path)
            procs = f"{path}/cgroup.procs"
            write = Write(controller="+".join(mount.controllers), path=procs, text=str(pid))
            self._write(name, write, mount)

    def pids(self, name: CgroupName, /) -> frozenset[int]:
        """Processes in `name` and all below it, in any hierarchy."""
        found: set[int] = set()
        for _, path in self._places(name):
            for directory in self._files.walk(path):
                found |= self._files.pids(directory)
        return frozenset(found)

    def kill(self, name: CgroupName, /) -> tuple[Process, ...]:
        """SIGKILL to all in `name` and below; returns who is still there.

        On v2 the kernel does it in one step (`cgroup.kill`). What it does not
        reach (v1) is frozen where the freezer is there, so that nobody forks
        meanwhile, then signalled until nobody is left, five times at most.

        Raises:
            CgroupHoldsCallerError: This process is among them; nothing was signalled.
        """
        for attempt in range(_KILL_PASSES):
            pids = self.pids(name)
            if os.getpid() in pids:
                raise CgroupHoldsCallerError(name, os.getpid())
            if not pids:
                break
            with_freezer = attempt > 0 or self.layout.unified is None
            with Held(pids, spare=_KILL_SPARE) as held:
                self._kill_once(name, with_freezer=with_freezer)
                held.wait(self.kill_wait_s / _KILL_PASSES)
        return self._left(name)

    def children(self, name: CgroupName, /) -> tuple[CgroupName, ...]:
        """Cgroups directly below, in any hierarchy."""
        spelling = self.layout.spelling
        found: set[CgroupName] = set()
        for _, path in self._places(name):
            for directory in self._files.children(path):
                with contextlib.suppress(ValueError):
                    below = CgroupName.parse(directory, spelling)
                    found.add(below if spelling is Spelling.SYSTEMD else name.child(directory))
        return tuple(sorted(child for child in found if child.parent == name))

    def stats(self, name: CgroupName, /) -> CgroupStats:
        """Usage now, in bytes and nanoseconds; raises `CgroupAbsentError` for one that is not there."""
        for _, path in self._places(name):
            if not self._files.exists(path):
                raise CgroupAbsentError(name, path)
        return stats_from(self._reader(name), self.layout)

    def hugepage_sizes(self) -> tuple[int, ...]:
        """Huge page sizes of this node in bytes, ascending."""
        sizes: list[int] = []
        for directory in self._files.children("/sys/kernel/mm/hugepages"):
            text = directory.removeprefix("hugepages-").removesuffix("kB")
            if text.isdigit():
                sizes.append(int(text) * 1024)
        return tuple(sorted(sizes))

    def view(self, name: CgroupName, limits: Limits, /) -> tuple[Write, ...]:
        """What `apply` would write, without writing."""
        return render(self.layout, name, limits)

    def _places(self, name: CgroupName) -> list[tuple[CgroupMount, str]]:
        return [(mount, self.layout.directory(mount, name)) for mount in self.layout.mounts]

    def _reader(self, name: CgroupName) -> _Reader:
        return _Reader(self.layout, name, self._files)

    def _left(self, name: CgroupName) -> tuple[Process, ...]:
        """Who is in the way: processes, else the threads of a cgroup that takes these alone."""
        threads: set[int] = set()
        if not (pids := self.pids(name)) and self.layout.unified is not None:
            for directory in self._files.walk(self.layout.directory(self.layout.unified, name)):
                threads |= self._files.threads(directory)
        return self._named(pids or frozenset(threads))

    def _named(self, pids: frozenset[int]) -> tuple[Process, ...]:
        return tuple(describe(pid) for pid in sorted(pids))

    def _create(self, name: CgroupName) -> None:
        """Make the directories that are missing, and what each version needs before processes come."""
        for mount, path in self._places(name) if name.parts else ():
            if not self._files.exists(path):
                self._make(mount, path, name)
            if mount.version == 1 and "cpuset" in mount.controllers:
                self._inherit_cpuset(mount, name)

    def _make(self, mount: CgroupMount, path: str, name: CgroupName) -> None:
        parent = self.layout.directory(mount, name.parent)
        if not self._files.exists(parent):
            raise CgroupAbsentError(name.parent, parent, wanted_by=name)
        if mount.version == 2:
            self._hand_down(mount, name.parent)
        try:
            self._files.make(path)
        except OSError as error:
            raise _refused_directory(error, path, mount, name) from None

    def _hand_down(self, mount: CgroupMount, name: CgroupName) -> None:
        """Switch controllers on for the children of `name`, from the root down (v2)."""
        if not self._switched_off(mount, self.layout.directory(mount, name)):
            return  # all that is handed down here was handed down further up
        for depth in range(len(name.parts) + 1):
            ancestor = CgroupName(name.parts[:depth])
            directory = self.layout.directory(mount, ancestor)
            wanted = self._switched_off(mount, directory)
            offered = (self._files.read(f"{directory}/cgroup.controllers") or "").split() if wanted else []
            for controller in wanted:
                if controller not in offered:
                    raise ControllerMissingError(
                        controller, ancestor, f"is not handed down to {directory}; switch it on further up"
                    )
                write = Write(
                    controller=controller, path=f"{directory}/cgroup.subtree_control", text=f"+{controller}"
                )
                self._write(ancestor, write, mount)

    def _switched_off(self, mount: CgroupMount, directory: str) -> list[str]:
        """Controllers that the children of a directory do not have yet (v2)."""
        switched = (self._files.read(f"{directory}/cgroup.subtree_control") or "").split()
        return [each for each in mount.controllers if each not in switched]

    def _inherit_cpuset(self, mount: CgroupMount, name: CgroupName) -> None:
        """A new v1 cpuset is empty and takes no process; give it what its parent has."""
        path, parent = (self.layout.directory(mount, each) for each in (name, name.parent))
        for file in ("cpuset.cpus", "cpuset.mems"):
            if not self._files.read(f"{path}/{file}") and (text := self._files.read(f"{parent}/{file}")):
                self._write(name, Write(controller="cpuset", path=f"{path}/{file}", text=text), mount)

    def _write_all(self, name: CgroupName, writes: Sequence[Write]) -> None:
        refused: list[Write] = []
        for write in writes:
            try:
                self._write(name, write, self.layout.mount_of(write.controller))
            except LimitRefusedError:
                # v1 checks period and quota against the parent one by one: one of the two orders is legal.
                if write.file != "cpu.cfs_period_us":
                    raise
                refused.append(write)
        for write in refused:
            self._write(name, write, self.layout.mount_of(write.controller))

    def _write(self, name: CgroupName, write: Write, mount: CgroupMount | None) -> None:
        controllers = mount.controllers if mount else ()
        try:
            self._files.write(write.path, write.text)
        except OSError as error:
            directory = write.path.rpartition("/")[0]
            # A cpuset that somebody removes answers ENODEV while its directory can still be seen.
            is_dying = error.errno == errno.ENODEV and write.controller == "cpuset"
            is_absent = error.errno in {errno.ENOENT, errno.ENODEV} and not self._files.exists(directory)
            if is_dying or is_absent:
                raise CgroupAbsentError(name, directory) from None
            raise refusal(
                error, name=name, path=write.path, text=write.text, controllers=controllers
            ) from None

    def _kill_once(self, name: CgroupName, *, with_freezer: bool) -> None:
        unified = self.layout.unified
        if unified is not None:
            with contextlib.suppress(OSError):
                self._files.write(f"{self.layout.directory(unified, name)}/cgroup.kill", "1")
        with self._frozen(name) if with_freezer else contextlib.nullcontext():
            end(lambda: self.pids(name))

    @contextlib.contextmanager
    def _frozen(self, name: CgroupName) -> Generator[None]:
        """Nobody in `name` runs meanwhile, where v1's freezer is there."""
        mount = self.layout.mount_of("freezer")
        state = f"{self.layout.directory(mount, name)}/freezer.state" if mount else ""
        with contextlib.suppress(OSError):
            if state:
                self._files.write(state, "FROZEN")
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                if state:
                    self._files.write(state, "THAWED")


class _Reader:
    """Reads the control files of one cgroup by controller."""

    def __init__(self, layout: Layout, name: CgroupName, files: KernelFiles) -> None:
        self._layout = layout
        self._name = name
        self._files = files

    def __call__(self, controller: str, file: str) -> str | None:
        mount = self._layout.mount_of(controller)
        if mount is None:
            return None
        try:
            return self._files.read(f"{self._layout.directory(mount, self._name)}/{file}")
        except OSError:
            return None


def _refused_directory(error: OSError, path: str, mount: CgroupMount, name: CgroupName) -> NodeallocError:
    if error.errno in {errno.EACCES, errno.EPERM}:
        return ReadOnlyError(path, mount.controllers, "it may not be written by this user")
    return refusal(error, name=name, path=path, text="a directory", controllers=mount.controllers)
