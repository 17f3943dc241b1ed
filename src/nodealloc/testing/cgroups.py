"""A cgroup tree in memory, and checks for any driver: ours, the fake, or your own."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Protocol

from nodealloc._arguments import check
from nodealloc._procfs import stat_of
from nodealloc._typed import typed_methods
from nodealloc.cgroups import (
    NO_LIMIT,
    CgroupAbsentError,
    CgroupBusyError,
    CgroupDriver,
    CgroupName,
    CgroupStats,
    Limits,
    ProcessDriver,
    ProcessGoneError,
    TreeReader,
)
from nodealloc.cgroups._convert import shares_to_weight, weight_to_shares
from nodealloc.cgroups._errors import Process
from nodealloc.errors import NodeallocError
from nodealloc.testing._wording import in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

__all__ = ["FakeCgroups", "check_cgroup_driver", "check_process_driver", "check_tree_reader"]

_MIB = 1 << 20


@typed_methods
class FakeCgroups:
    """A `CgroupDriver`, `ProcessDriver` and `TreeReader` that remembers everything and confines nobody.

    Attributes:
        tree: Cgroup to its limits; the root is always there.
        inside: Cgroup to the processes directly in it.
        unkillable: Processes that SIGKILL does not end, as those that wait for a device.
        usage: Cgroup to what `stats` says of it.
        calls: What was called, in order, as (`apply` | `attach` | `kill` | `remove`, cgroup).
        running: Processes that can be attached; None for any.
    """

    def __init__(self, *, running: Collection[int] | None = None) -> None:
        self.tree: dict[CgroupName, Limits] = {CgroupName(): Limits()}
        self.inside: dict[CgroupName, set[int]] = {}
        self.unkillable: set[int] = set()
        self.usage: dict[CgroupName, CgroupStats] = {}
        self.calls: list[tuple[str, CgroupName]] = []
        self.running = running

    def apply(self, name: CgroupName, limits: Limits, /) -> None:
        """Create `name` if it is absent and remember the limits that are asked for."""
        check("apply", name, CgroupName, "a CgroupName; CgroupName.parse reads a path")
        self.calls.append(("apply", name))
        if name.parent not in self.tree:
            raise CgroupAbsentError(name.parent, str(name.parent), wanted_by=name)
        self.tree[name] = limits.over(self.tree.get(name, Limits()))

    def read(self, name: CgroupName, /) -> Limits | None:
        """Limits that were asked for; None for a cgroup that does not exist."""
        return self.tree.get(name)

    def remove(self, name: CgroupName, /) -> None:
        """Remove `name` and all below it, unless processes are in it."""
        self.calls.append(("remove", name))
        if pids := self.pids(name):
            raise CgroupBusyError(name, [Process(pid) for pid in sorted(pids)])
        for gone in self._with_below(name):
            self.tree.pop(gone, None)
            self.inside.pop(gone, None)

    def attach(self, name: CgroupName, pid: int, /) -> None:
        """Move a process."""
        self.calls.append(("attach", name))
        if name not in self.tree:
            raise CgroupAbsentError(name, str(name))
        if pid <= 0:
            raise ValueError(f"process id {pid}: a process has a positive one")
        if not _runs(pid, self.running):
            raise ProcessGoneError(pid, name)
        for pids in self.inside.values():
            pids.discard(pid)
        self.inside.setdefault(name, set()).add(pid)

    def pids(self, name: CgroupName, /) -> frozenset[int]:
        """Processes in `name` and all below it."""
        return frozenset(pid for each in self._with_below(name) for pid in self.inside.get(each, ()))

    def kill(self, name: CgroupName, /) -> tuple[Process, ...]:
        """End all in `name` and below but the unkillable; returns those.

        Processes that do run are sent SIGKILL when the fake was made without `running`.
        """
        self.calls.append(("kill", name))
        for each in self._with_below(name):
            left = self.inside.get(each, set()) & self.unkillable
            if self.running is None:
                _end(self.inside.get(each, set()) - left)
            self.inside[each] = left
        return tuple(Process(pid, "", "D") for pid in sorted(self.pids(name)))

    def children(self, name: CgroupName, /) -> tuple[CgroupName, ...]:
        """Cgroups directly below `name`, sorted."""
        return tuple(sorted(each for each in self.tree if each.parts and each.parent == name))

    def stats(self, name: CgroupName, /) -> CgroupStats:
        """What `usage` says, or nothing used."""
        if name not in self.tree:
            raise CgroupAbsentError(name, str(name))
        return self.usage.get(name, CgroupStats(memory_bytes=0, working_set_bytes=0, cpu_ns=0, pids=0))

    def _with_below(self, name: CgroupName) -> list[CgroupName]:
        return [each for each in self.tree if each == name or each.is_below(name)]


def _runs(pid: int, running: Collection[int] | None) -> bool:
    if running is not None:
        return pid in running
    try:
        return not stat_of(pid).has_ended
    except OSError:
        return False


def _end(pids: Collection[int]) -> None:
    for pid in pids:
        subprocess.run(["/bin/kill", "-KILL", str(pid)], check=False, capture_output=True)


class _Both(CgroupDriver, ProcessDriver, Protocol):
    """A driver that can also move processes."""


@in_words
def check_cgroup_driver(driver: CgroupDriver, root: CgroupName, /) -> None:
    """Check the promises of `CgroupDriver`; raises `AssertionError` that names a broken one.

    Args:
        driver: To be checked.
        root: An existing cgroup without children of its own; it is left without any.
    """
    name = root.child("check")
    assert driver.read(name) is None, "read of an absent cgroup is None"
    _refused(driver, name.child("below"))
    driver.apply(name, Limits())
    assert driver.read(name) is not None, f"{name} was made without limits, and reads as absent"
    beside = root.child("check-beside")
    of_root = driver.read(root)
    at_once = Limits(cpu_shares=400, pids=40)
    driver.apply(beside, at_once)
    _reads(driver, beside, at_once)
    first = Limits(cpu_shares=700, cpu_quota_us=20_000, cpu_period_us=50_000, memory_bytes=64 * _MIB, pids=33)
    driver.apply(name, first)
    driver.apply(name, first)
    _reads(driver, name, first)
    for change in (
        Limits(memory_bytes=80 * _MIB),
        Limits(memory_bytes=72 * _MIB),
        Limits(cpu_shares=300),
        Limits(cpu_quota_us=30_000),
        Limits(cpu_quota_us=25_000),
        Limits(pids=20),
        Limits(cpu_quota_us=NO_LIMIT),
        Limits(pids=NO_LIMIT),
        Limits(memory_bytes=NO_LIMIT),
    ):
        first = change.over(first)
        driver.apply(name, change)
        _reads(driver, name, first)
    below = name.child("below")
    for each in (below, below.child("deep")):
        driver.apply(each, Limits())
    _reads(driver, beside, at_once)
    assert driver.read(root) == of_root, f"limits of {name} were set, and {root} has others now"
    driver.remove(name)
    assert driver.read(root) is not None, f"{name} was removed, and {root} is gone as well"
    assert driver.read(beside) is not None, f"{name} was removed, and {beside} is gone as well"
    driver.remove(beside)
    for gone in (name, below, below.child("deep")):
        assert driver.read(gone) is None, f"remove takes all below along, {gone} is still there"
    driver.remove(name)


@in_words
def check_process_driver(driver: _Both, root: CgroupName, /) -> None:
    """Check the promises of `ProcessDriver` with real processes of its own.

    Args:
        driver: To be checked.
        root: An existing cgroup without children of its own; it is left without any.
    """
    name = root.child("check")
    assert driver.pids(name) == frozenset(), "an unknown cgroup has no processes"
    for leaf in (name, name.child("a"), name.child("b")):
        driver.apply(leaf, Limits())
    with subprocess.Popen(["/bin/sleep", "60"]) as process:
        try:
            driver.attach(name.child("a"), process.pid)
            driver.attach(name.child("a"), process.pid)
            assert driver.pids(name.child("a")) == {process.pid}, "an attached process is listed"
            driver.attach(name.child("b"), process.pid)
            assert driver.pids(name.child("a")) == frozenset(), "a moved process has left"
            assert driver.pids(name) == {process.pid}, "processes further down are listed"
            _busy(driver, name, process.pid)
            left = driver.kill(name)
            assert left == (), f"whoever was there can be ended, and kill says that {left} is left"
            assert _status(process) == -9, "kill sends SIGKILL"
        finally:
            process.kill()
    assert driver.kill(name) == (), "kill may be repeated"
    assert driver.read(name.child("b")) is not None, "kill ends processes, and leaves the cgroups"
    _gone(driver, name.child("a"), process.pid)
    driver.remove(name)


def _status(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(10)
    except subprocess.TimeoutExpired:
        return None


class _Reading(CgroupDriver, TreeReader, Protocol):
    """A driver that can also say what is there."""


@in_words
def check_tree_reader(driver: _Reading, root: CgroupName, /) -> None:
    """Check the promises of `TreeReader`; raises `AssertionError` that names a broken one.

    Args:
        driver: To be checked.
        root: An existing cgroup without children of its own; it is left without any.
    """
    assert driver.children(root) == (), "a cgroup without children has none"
    try:
        nobody = driver.children(root.child("unknown"))
    except Exception as error:
        raise AssertionError(f"children of an unknown cgroup raised {error!r}; it has none") from error
    assert nobody == (), "an unknown cgroup has no children"
    for part in ("b", "a-c", "a"):
        driver.apply(root.child(part), Limits())
    driver.apply(root.child("a").child("deep"), Limits())
    expected = tuple(root.child(part) for part in ("a", "a-c", "b"))
    found = driver.children(root)
    assert found == expected, (
        f"directly below {root} are {_listed(expected)}, listed in that order; found {_listed(found)}"
    )
    stats = driver.stats(root)
    for field in ("memory_bytes", "cpu_ns", "pids"):
        amount = getattr(stats, field)
        assert amount is None or amount >= 0, f"{field} is an amount or unknown"
    used, set_of_it = stats.memory_bytes, stats.working_set_bytes
    assert used is None or set_of_it is None or set_of_it <= used, (
        f"the working set of {set_of_it} bytes is a part of the {used} bytes that are used"
    )
    absent = _raised(lambda: _forget(driver.stats(root.child("unknown"))))
    assert isinstance(absent, CgroupAbsentError), "an unknown cgroup has no stats"
    for name in expected:
        driver.remove(name)


def _listed(names: Collection[CgroupName]) -> str:
    return ", ".join(map(str, names)) or "none"


def _forget(_stats: CgroupStats) -> None:
    """Only whether it came matters."""


def _raised(call: Callable[[], None]) -> NodeallocError | None:
    try:
        call()
    except NodeallocError as error:
        return error
    return None


def _refused(driver: CgroupDriver, name: CgroupName) -> None:
    error = _raised(lambda: driver.apply(name, Limits()))
    assert isinstance(error, CgroupAbsentError), "no cgroup is created below a parent that does not exist"
    assert error.name == name.parent, "the absent parent is named"


def _reads(driver: CgroupDriver, name: CgroupName, asked: Limits) -> None:
    found = driver.read(name)
    assert found is not None, "a cgroup that was created reads back"
    for field, value in asked.asked.items():
        got = found.asked.get(field)
        if field == "cpu_shares":
            # Shares stand as a weight on v2, of which there are fewer.
            same = got in {value, weight_to_shares(shares_to_weight(int(str(value))))}
        else:
            same = got == value
        assert same, f"{field} was asked to be {value} and reads back as {got}"


def _busy(driver: CgroupDriver, name: CgroupName, pid: int) -> None:
    error = _raised(lambda: driver.remove(name))
    assert isinstance(error, CgroupBusyError), "a cgroup with a process in it is not removed"
    assert pid in {each.pid for each in error.processes}, "a busy cgroup names its processes"


def _gone(driver: ProcessDriver, name: CgroupName, pid: int) -> None:
    error = _raised(lambda: driver.attach(name, pid))
    assert isinstance(error, ProcessGoneError), "a process that has ended is not attached"
    assert error.pid == pid, "the process that has ended is named"
