"""A `CpusetWriter` on processes: the affinity of all their threads."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from nodealloc import _attrs as attrs
from nodealloc._not_now import NOT_NOW
from nodealloc._procfs import PROC, stat_of, threads_of
from nodealloc._typed import typed, typed_fields, typed_methods
from nodealloc.cpuset._errors import CpusetBusyError, CpusetWriteError, TargetGoneError
from nodealloc.errors import NodeallocError
from nodealloc.idset import CPUSet, NodeSet

__all__ = ["AffinityWriter", "process_target"]

_ROUNDS = 16
"""Looks at a process's threads before one that starts threads all the time is called busy."""

_DIGITS = 10
"""Of a process's number; the kernel's largest has seven."""


@typed
def process_target(pid: int, /, *, proc: Path = PROC) -> str:
    """The target that names this process and none that is given its number later.

    Raises:
        TargetGoneError: There is no such process.
    """
    return f"{pid}@{_started(proc, pid, str(pid))}"


@typed_methods
@typed_fields
@attrs.frozen
class AffinityWriter:
    """Processes without a cgroup of their own: `target` is a `process_target`, or a bare pid.

    All threads are confined; threads and children that they start later inherit
    it. A process may widen itself again with `sched_setaffinity`, which a cgroup
    would not let it: that shows up as drift, and is repaired. Memory nodes are
    out of reach.

    Attributes:
        proc: Where procfs is mounted.
    """

    proc: Path = attrs.field(converter=Path, default=PROC)

    def read(self, target: str, /) -> tuple[CPUSet, NodeSet | None]:
        """See `CpusetWriter.read`; empty where threads are confined to different sets."""
        masks: set[CPUSet] = set()
        for thread in self._threads(target):
            try:
                masks.add(CPUSet(os.sched_getaffinity(thread)))
            except ProcessLookupError:
                continue
            except OSError as error:
                raise _mapped(error, target, "anything") from error
        if not masks:
            raise TargetGoneError(target)
        return (masks.pop() if len(masks) == 1 else CPUSet()), None

    def write(self, target: str, cpus: CPUSet, mems: NodeSet | None, /) -> None:
        """See `CpusetWriter.write`; `mems` has to be None."""
        if not cpus:
            raise CpusetWriteError(target, "", "a process needs a CPU")
        if mems is not None:
            raise CpusetWriteError(
                target, f"memory nodes {mems}", "affinity has no memory nodes; use a cgroup for those"
            )
        done: set[int] = set()
        for _ in range(_ROUNDS):
            threads = self._threads(target) - done
            if not threads:
                return
            for thread in threads:
                self._confine(target, thread, cpus)
            done |= threads
        raise CpusetBusyError(target, "starts threads faster than they can be confined")

    def _confine(self, target: str, thread: int, cpus: CPUSet) -> None:
        try:
            os.sched_setaffinity(thread, cpus)
            got = CPUSet(os.sched_getaffinity(thread))
        except ProcessLookupError:
            return  # a thread that ended needs no CPU
        except OSError as error:
            raise _mapped(error, target, str(cpus)) from error
        if got != cpus:
            raise CpusetWriteError(target, str(cpus), f"its cgroup allows no more than {got} of it")

    def _threads(self, target: str) -> set[int]:
        number, _, started = target.partition("@")
        if not (number.isascii() and number.isdecimal() and len(number) <= _DIGITS):
            raise CpusetWriteError(target, "anything", "the target is no process: expected PID or PID@START")
        pid = int(number)
        if started and _started(self.proc, pid, target) != started:
            raise TargetGoneError(target)
        try:
            threads = {*threads_of(pid, proc=self.proc)}
        except OSError as error:
            raise _mapped(error, target, "anything") from error
        if not threads:
            raise TargetGoneError(target)
        return threads


def _started(proc: Path, pid: int, target: str) -> str:
    """When a process started, in clock ticks since boot: with its number, unique for all time."""
    try:
        return stat_of(pid, proc=proc).started_ticks
    except ProcessLookupError as error:
        raise TargetGoneError(target) from error
    except OSError as error:
        raise _mapped(error, target, "anything") from error


def _mapped(error: OSError, target: str, wanted: str) -> NodeallocError:
    if error.errno in (errno.ESRCH, errno.ENOENT):
        return TargetGoneError(target)
    if error.errno in NOT_NOW:
        return CpusetBusyError(target, f"{os.strerror(error.errno)}; it may run: try again")
    why = {
        errno.EINVAL: "none of these CPUs is online and allowed by its cgroup",
        errno.EPERM: "permission denied; run as root, or as the process's user",
    }.get(error.errno or 0, os.strerror(error.errno or 0))
    return CpusetWriteError(target, wanted, why, errno=error.errno)
