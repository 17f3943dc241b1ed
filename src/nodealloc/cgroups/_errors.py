"""What can go wrong in a cgroup tree; each says where, and what to do."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

from nodealloc import _attrs as attrs
from nodealloc.errors import NodeallocError, PermanentError, RetryableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nodealloc.cgroups._name import CgroupName

__all__ = [
    "CgroupAbsentError",
    "CgroupBusyError",
    "CgroupHoldsCallerError",
    "ControllerMissingError",
    "LimitRefusedError",
    "MemoryInUseError",
    "NoSuchTreeError",
    "Process",
    "ProcessGoneError",
    "QuotaInUseError",
    "ReadOnlyError",
    "UnsupportedLimitError",
    "refusal",
]


@attrs.frozen(order=True)
class Process:
    """A process that is in the way.

    Attributes:
        pid: As this process sees it; 0 for one of another PID namespace.
        name: Its command, or "" if it ended meanwhile.
        state: One letter as in `/proc/PID/stat`: `D` waits for a device or a file server.
    """

    pid: int
    name: str = ""
    state: str = ""

    def __str__(self) -> str:
        """`1234 (postgres, state D)`."""
        if not self.pid:
            return "a process of another PID namespace"
        known = ", ".join(filter(None, [self.name, f"state {self.state}" if self.state else ""]))
        return f"{self.pid} ({known})" if known else str(self.pid)


class NoSuchTreeError(PermanentError):
    """A directory is no cgroup tree.

    Attributes:
        root: The directory.
    """

    def __init__(self, root: str, reason: str) -> None:
        super().__init__(
            f"{root}: {reason}; give the directory where cgroups are mounted (/sys/fs/cgroup), "
            "or stand_in(DIRECTORY) for a directory that stands in for one"
        )
        self.root = root


_ABSENT: Final = "; create it first, or again if somebody removed it meanwhile"


class CgroupAbsentError(PermanentError):
    """A cgroup that has to exist does not.

    Attributes:
        name: The cgroup.
        path: Directory that was looked for.
    """

    def __init__(self, name: CgroupName, path: str, *, wanted_by: CgroupName | None = None) -> None:
        why = f"; it is the parent of {wanted_by}: create it first" if wanted_by else _ABSENT
        super().__init__(f"cgroup {name}: {path} does not exist{why}")
        self.name = name
        self.path = path


class ControllerMissingError(PermanentError):
    """A limit needs a controller that the tree does not offer.

    Attributes:
        controller: `cpuset`, `memory`, …
        name: The cgroup that was to be limited.
    """

    def __init__(self, controller: str, name: CgroupName, reason: str) -> None:
        super().__init__(f"cgroup {name}: controller {controller}: {reason}")
        self.controller = controller
        self.name = name


class UnsupportedLimitError(PermanentError):
    """A limit that this version of cgroups does not have.

    Attributes:
        limit: Field of `Limits`.
        controller: Controller that would hold it.
    """

    def __init__(self, limit: str, controller: str) -> None:
        super().__init__(
            f"{limit}: cgroup v1 has no such limit; leave it at None where {controller} is on v1"
        )
        self.limit = limit
        self.controller = controller


class ReadOnlyError(PermanentError):
    """A part of the tree cannot be written.

    Attributes:
        path: File or directory.
        controllers: Controllers that it belongs to.
    """

    def __init__(self, path: str, controllers: Sequence[str], reason: str) -> None:
        super().__init__(
            f"{path} (controllers {', '.join(controllers) or 'none'}): {reason}; mount it writable, run as "
            "the user to whom this subtree is delegated, or choose a root below which you may write"
        )
        self.path = path
        self.controllers: tuple[str, ...] = tuple(controllers)


class LimitRefusedError(PermanentError):
    """The kernel refused a value.

    Attributes:
        name: The cgroup.
        path: The control file.
        text: What was to be written.
        errno: The kernel's answer.
    """

    def __init__(self, name: CgroupName, path: str, text: str, number: int, *, reason: str = "") -> None:
        known = _REASONS.get(number, f"the kernel answered {errno.errorcode.get(number, number)}")
        super().__init__(f"cgroup {name}: {text!r} into {path}: {reason or known}")
        self.name = name
        self.path = path
        self.text = text
        self.errno = number


class ProcessGoneError(PermanentError):
    """A process that was to be moved has ended.

    Attributes:
        pid: The process.
    """

    def __init__(self, pid: int, name: CgroupName) -> None:
        super().__init__(f"cgroup {name}: process {pid} has ended; there is nothing left to move")
        self.pid = pid


class CgroupBusyError(RetryableError):
    """A cgroup cannot go or be changed yet, because processes are in it.

    Attributes:
        name: The cgroup.
        processes: Who is in it, as far as they can be seen.
    """

    def __init__(self, name: CgroupName, processes: Sequence[Process], *, after_s: float = 1.0) -> None:
        who = ", ".join(map(str, processes)) or "processes that cannot be seen from here"
        super().__init__(f"cgroup {name} is in use by {who}; end them or wait", after_s=after_s)
        self.name = name
        self.processes: tuple[Process, ...] = tuple(processes)


class CgroupHoldsCallerError(PermanentError):
    """Everything in a cgroup was to be killed, and this process is in it.

    Attributes:
        name: The cgroup.
        pid: This process.
    """

    def __init__(self, name: CgroupName, pid: int) -> None:
        super().__init__(
            f"cgroup {name}: process {pid}, which was to kill all in it, is in it itself; "
            "move it out first, or remove another cgroup"
        )
        self.name = name
        self.pid = pid


class MemoryInUseError(RetryableError):
    """A memory limit below what is in use: the kernel would kill processes to reach it.

    Attributes:
        name: The cgroup.
        wanted_bytes: The limit.
        used_bytes: What is in use.
    """

    def __init__(self, name: CgroupName, wanted_bytes: int, used_bytes: int) -> None:
        super().__init__(
            f"cgroup {name}: memory limit of {wanted_bytes} bytes wanted, {used_bytes} in use; "
            "wait until it uses less, or ask for more",
            after_s=10.0,
        )
        self.name = name
        self.wanted_bytes = wanted_bytes
        self.used_bytes = used_bytes


class QuotaInUseError(RetryableError):
    """A CPU quota below that of a cgroup further down, which v1 does not take; all else was written.

    Attributes:
        name: The cgroup.
        wanted_us: The quota, in microseconds a period.
    """

    def __init__(self, name: CgroupName, wanted_us: int) -> None:
        super().__init__(
            f"cgroup {name}: quota of {wanted_us} µs wanted, a cgroup below it has more; lower that first",
            after_s=1.0,
        )
        self.name = name
        self.wanted_us = wanted_us


_REASONS: Final = {
    errno.EINVAL: "outside what the kernel takes here (an absent NUMA node, a quota below 1000 µs or above "
    "the parent's share, or a malformed value); ask for a value within the parent's",
    errno.ERANGE: "names a CPU or node that the machine does not have; use those that are online",
    errno.ENOSPC: "leaves processes without a CPU or a NUMA node; set both cpuset.cpus and "
    "cpuset.mems first, and empty neither while processes are in it",
    errno.EACCES: "is no subset of the parent's, or may not be written; widen the parent first",
    errno.EPERM: "is not permitted to this user; the subtree has to be delegated to it",
    errno.EBUSY: "is in use: children or processes need more than this; shrink them first "
    "(on v2, processes may live in leaves only: put them one level further down)",
    errno.EOPNOTSUPP: "is not possible in this kind of cgroup (it may be threaded, or hold processes "
    "while it hands controllers down); use a leaf of its own",
    errno.ENOENT: "the kernel has no such control file here; its controller is not handed down from above",
}


def refusal(
    error: OSError, *, name: CgroupName, path: str, text: str, controllers: Sequence[str]
) -> NodeallocError:
    """The error that says in words what the kernel meant by its number."""
    number = error.errno or 0
    if number == errno.EROFS:
        return ReadOnlyError(path, controllers, "it is mounted read-only")
    if number == errno.ESRCH:
        return ProcessGoneError(int(text) if text.isdigit() else 0, name)
    return LimitRefusedError(name, path, text, number)
