"""What belongs to a container: its cgroup's processes, or those of its session where cgroups are refused."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import select
import signal
import time
from collections.abc import Callable, Collection, Generator, Mapping
from pathlib import Path

import attrs

from examples.processes._kept import Started, boot_id, start_ticks, stat_fields
from nodealloc.cgroups import CgroupFs, CgroupName, Limits, detect, hugepage_name
from nodealloc.errors import NodeallocError
from nodealloc.runtime import LinuxResources

__all__ = ["Fence", "end_all", "send", "sessions"]

_PASSES = 5
"""Whoever forks while it is being killed is met again in the next pass."""
_PATIENCE_S = 2.0
_SPARE = 8
"""Descriptors that are left for others while processes are held by theirs."""
_TOO_MANY = (errno.EMFILE, errno.ENFILE)
_PART = re.compile(r"command-\d+-\d+")
_NUMBERS = itertools.count()
_SESSION, _START = 3, 19
"""Places in `/proc/PID/stat`, counted from the state."""


@attrs.frozen(kw_only=True)
class Fence:
    """Holds containers' processes together, limits them, and ends them.

    Attributes:
        driver: Of the cgroups; None where they are refused.
        why: The reason then, else "".
    """

    driver: CgroupFs | None
    why: str = ""

    @classmethod
    def find(cls, tree: str, root: CgroupName, /) -> Fence:
        """Cgroups below `tree` where a cgroup `root` can be made there, sessions where not."""
        try:
            driver = detect(tree)
            driver.apply(root, Limits())
        except (NodeallocError, OSError) as error:
            return cls(driver=None, why=str(error))
        return cls(driver=driver)

    @property
    def confines(self) -> bool:
        """Whether the kernel keeps processes in, and to their limits."""
        return self.driver is not None and not self.driver.layout.stand_in

    def holds(self, name: str, /) -> bool:
        """Whether a cgroup keeps its processes in; a container from a time without cgroups has none."""
        return self.driver is not None and self.confines and self.driver.exists(CgroupName.parse(name))

    def make(self, name: str, resources: LinuxResources, /) -> None:
        """Make a cgroup with its limits, and those above it that are missing."""
        if self.driver is None:
            return
        place = CgroupName.parse(name)
        above = [CgroupName(place.parts[:depth]) for depth in range(1, len(place.parts))]
        for one in above:
            if not self.driver.exists(one):
                self.driver.apply(one, Limits())
        self.driver.apply(place, _limits(resources))

    def limit(self, name: str, pid: int, resources: LinuxResources, /) -> None:
        """Change limits; without cgroups, CPUs alone, as the affinity of each process."""
        if self.driver is not None:
            self.driver.apply(CgroupName.parse(name), _limits(resources))
        if self.driver is None and resources.cpus is not None:
            for member in self.members(name, pid, -1):
                for task in Path(f"/proc/{member}/task").glob("*"):
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.sched_setaffinity(int(task.name), resources.cpus)

    def join(self, name: str, pid: int, /) -> None:
        """Move a process in."""
        if self.driver is not None:
            self.driver.attach(CgroupName.parse(name), pid)

    def members(self, name: str, pid: int, ticks: int, /) -> frozenset[int]:
        """Who is in it.

        Args:
            name: Its cgroup.
            pid: Its first process, which leads a session; 0 before there is one.
            ticks: That one's start time; -1 for whoever has the number now.
        """
        return self._members({name: (pid, ticks)})[name]

    def _members(self, many: Mapping[str, tuple[int, int]]) -> dict[str, frozenset[int]]:
        """The same for some, with one look at all processes."""
        found: dict[str, frozenset[int]] = {}
        leaders: dict[int, str] = {}
        for name, (pid, ticks) in many.items():
            place = CgroupName.parse(name)
            found[name] = self.driver.pids(place) if self.driver is not None else frozenset[int]()
            if pid and not self.holds(name) and _may_lead(pid, ticks):
                leaders[pid] = name
        for pid, session in _in_sessions(leaders).items():
            found[leaders[session]] |= {pid}
        return found

    def end(self, many: Mapping[str, Started], /) -> dict[str, frozenset[int]]:
        """SIGKILL to all in some cgroups; who of each is still there shortly after.

        Args:
            many: The first process of each. A session whose number is that of another boot's is
                somebody else's.
        """
        left = {name: self._kill(CgroupName.parse(name)) for name in many if self.holds(name)}
        boot = boot_id()
        others = {
            name: (one.pid if one.boot == boot else 0, one.ticks)
            for name, one in many.items()
            if name not in left
        }
        there = end_all(lambda: frozenset[int]().union(*self._members(others).values()))
        for name, members in self._members(others).items() if there else ():
            left[name] = there & members
        return left

    def _kill(self, name: CgroupName) -> frozenset[int]:
        return (
            frozenset(one.pid for one in self.driver.kill(name)) if self.driver is not None else frozenset()
        )

    def remove(self, name: str, /) -> None:
        """Remove a cgroup that nobody is in."""
        if self.driver is not None:
            self.driver.remove(CgroupName.parse(name))

    def was_oom(self, name: str, /) -> bool:
        """Whether the kernel ended anything in it for memory."""
        try:
            return self.driver is not None and bool(self.driver.stats(CgroupName.parse(name)).oom_kills)
        except NodeallocError:
            return False

    @contextlib.contextmanager
    def part(self, name: str, /) -> Generator[Callable[[int], None]]:
        """Somewhere below a cgroup, to know by what one command started; all in it is ended if it raises.

        In one hierarchy only, without limits of its own. What is left in it when the
        block ends well goes on in the cgroup itself; see `end_parts` for one that never ended.

        Yields:
            What moves a process into both.
        """
        if self.driver is None or not self.holds(name):
            held: list[int] = []
            try:
                yield held.append
            except BaseException:
                for pid in held:
                    end_all(lambda pid=pid: _session(pid) | {pid} & _alive(pid))  # type: ignore[misc]
                raise
            return
        whole, alone = CgroupName.parse(name), _first_hierarchy(self.driver)
        # The number of the process tells the commands of two agents apart.
        place = whole.child(f"command-{os.getpid()}-{next(_NUMBERS)}")
        alone.apply(place, Limits())

        def join(pid: int) -> None:
            self.join(name, pid)
            alone.attach(place, pid)

        try:
            yield join
        except BaseException:
            alone.kill(place)
            raise
        finally:
            for pid in alone.pids(place):
                with contextlib.suppress(NodeallocError):
                    alone.attach(whole, pid)
            with contextlib.suppress(NodeallocError):
                alone.remove(place)

    def end_below(self, root: CgroupName, names: Collection[str], /) -> None:
        """End all in the cgroups of some containers, wherever below a root they are."""
        if self.driver is None or not self.confines:
            return
        for one in self.driver.children(root):
            if one.parts[-1] in names:
                self.driver.kill(one)
                with contextlib.suppress(NodeallocError):  # as where something in it waits for a device
                    self.driver.remove(one)
            else:
                self.end_below(one, names)

    def end_parts(self, name: str, /) -> None:
        """End what runs in parts of a cgroup whose makers have died, such as a killed agent's commands."""
        if self.driver is None or not self.holds(name):
            return
        alone = _first_hierarchy(self.driver)
        for place in alone.children(CgroupName.parse(name)):
            if _PART.fullmatch(place.parts[-1]):
                alone.kill(place)
                alone.remove(place)


def _first_hierarchy(driver: CgroupFs) -> CgroupFs:
    """A driver of one hierarchy, without limits, in which commands are told apart."""
    layout = driver.layout
    mount = layout.unified or layout.mounts[0]
    return CgroupFs(attrs.evolve(layout, mounts=(attrs.evolve(mount, controllers=()),)))


def end_all(read: Callable[[], frozenset[int]], /) -> frozenset[int]:
    """SIGKILL, by descriptor, to all that `read` names; who is still there shortly after."""
    until, passes = time.monotonic() + _PATIENCE_S, 0
    while passes < _PASSES or time.monotonic() < until:
        passes += 1
        with contextlib.ExitStack() as stack:
            held = _hold(read(), stack)
            if not held:
                return frozenset()
            present = read()  # whoever is named again is who is held
            for pid in held.keys() & present - {os.getpid()}:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    signal.pidfd_send_signal(held[pid], signal.SIGKILL)
            _wait(set(held.values()), until)
    return read()


def _hold(pids: Collection[int], stack: contextlib.ExitStack) -> dict[int, int]:
    """Descriptors of some processes, as many as leave others a few.

    Raises:
        OSError: None may be opened.
    """
    with contextlib.ExitStack() as spare:
        for _ in range(_SPARE):
            spare.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        held: dict[int, int] = {}
        for pid in pids:
            try:
                held[pid] = os.pidfd_open(pid)
            except OSError as error:
                if error.errno in _TOO_MANY and not held:
                    raise
                if error.errno in _TOO_MANY:
                    break
                continue
            stack.callback(os.close, held[pid])
    return held


def send(started: Started, number: signal.Signals, /) -> None:
    """A signal to that very process, and to nobody who has its number by now."""
    try:
        held = os.pidfd_open(started.pid)
    except ProcessLookupError:
        return
    try:
        if start_ticks(started.pid) == started.ticks and started.boot == boot_id():
            signal.pidfd_send_signal(held, number)
    except ProcessLookupError:
        pass
    finally:
        os.close(held)


def _wait(descriptors: set[int], until: float) -> None:
    poller = select.poll()
    for one in descriptors:
        poller.register(one, select.POLLIN)
    while descriptors and (left := until - time.monotonic()) > 0:
        for one, _ in poller.poll(left * 1000):
            poller.unregister(one)
            descriptors.discard(one)


def sessions(pids: Collection[int], /) -> frozenset[int]:
    """All live processes of the sessions that some processes are in."""
    fields = [stat_fields(one) for one in pids]
    # 0 is said of any that began outside of what this process can see.
    return frozenset(_in_sessions({int(one[_SESSION]) for one in fields if one} - {0}))


def _session(pid: int) -> frozenset[int]:
    """Live processes of a session."""
    return frozenset(_in_sessions({pid}))


def _may_lead(pid: int, ticks: int) -> bool:
    """Whether a session that began with a process is that of who has its number by now, if anybody has."""
    leader = stat_fields(pid)
    return not leader or ticks < 0 or int(leader[_START]) == ticks


def _in_sessions(leaders: Collection[int]) -> dict[int, int]:
    """Live processes of some sessions, each with its session."""
    found: dict[int, int] = {}
    for entry in os.listdir("/proc") if leaders else ():  # noqa: PTH208 - Path objects for each cost more than all else
        if entry.isdigit():
            fields = stat_fields(int(entry))
            if fields and fields[0] not in "ZX" and (session := int(fields[_SESSION])) in leaders:
                found[int(entry)] = session
    return found


def _alive(pid: int) -> frozenset[int]:
    fields = stat_fields(pid)
    return frozenset({pid}) if fields and fields[0] not in "ZX" else frozenset()


def _limits(asked: LinuxResources) -> Limits:
    sizes = {hugepage_name(size): size for size in (1 << 16, 1 << 21, 1 << 25, 1 << 30)}
    return Limits(
        cpu_shares=asked.cpu_shares,
        cpu_quota_us=asked.cpu_quota_us,
        cpu_period_us=asked.cpu_period_us if asked.cpu_quota_us is not None else None,
        memory_bytes=asked.memory_bytes,
        cpus=asked.cpus,
        mems=asked.mems,
        hugepage_bytes={
            sizes[name]: amount for name, amount in asked.hugepages_bytes.items() if name in sizes
        },
    )
