"""Protocols that the tree manager and the launcher call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from nodealloc.cgroups._errors import Process
    from nodealloc.cgroups._limits import Limits
    from nodealloc.cgroups._name import CgroupName
    from nodealloc.cgroups._stats import CgroupStats

__all__ = ["CgroupDriver", "ProcessDriver", "TreeDriver", "TreeReader"]


class CgroupDriver(Protocol):
    """Cgroups of one node. Calls for different cgroups may come from several threads."""

    def apply(self, name: CgroupName, limits: Limits, /) -> None:
        """Create `name` if it is absent and write the limits that are asked for, no others.

        May be repeated. The parent has to exist: `CgroupAbsentError`. A refused
        value raises `LimitRefusedError`; what was written before it stays.
        """
        ...

    def read(self, name: CgroupName, /) -> Limits | None:
        """Limits as the node holds them now; None for a cgroup that does not exist."""
        ...

    def remove(self, name: CgroupName, /) -> None:
        """Remove `name` and all below it; an unknown one is not an error.

        Kills nobody: while processes are in it, raises `CgroupBusyError` with them.
        """
        ...


class ProcessDriver(Protocol):
    """Processes in cgroups."""

    def attach(self, name: CgroupName, pid: int, /) -> None:
        """Move a process with all its threads; what it starts from then on is in there too.

        May be repeated. `ProcessGoneError` when it has ended.
        """
        ...

    def pids(self, name: CgroupName, /) -> frozenset[int]:
        """Processes in `name` and all below it; empty for an unknown one.

        0 stands for processes of another PID namespace.
        """
        ...

    def kill(self, name: CgroupName, /) -> tuple[Process, ...]:
        """Send SIGKILL to all in `name` and below, and say who is still there shortly after.

        May be repeated. Never kills the caller: `CgroupHoldsCallerError`.
        """
        ...


class TreeReader(Protocol):
    """What is there and how much it uses."""

    def children(self, name: CgroupName, /) -> tuple[CgroupName, ...]:
        """Cgroups directly below `name`, sorted; none for an unknown one.

        A cgroup that exists in even one hierarchy counts. One whose directory
        is no name in this spelling is left out.
        """
        ...

    def stats(self, name: CgroupName, /) -> CgroupStats:
        """Usage now; `CgroupAbsentError` for an unknown one."""
        ...


class TreeDriver(CgroupDriver, ProcessDriver, TreeReader, Protocol):
    """All that the tree needs of a driver; `CgroupFs` is one."""
