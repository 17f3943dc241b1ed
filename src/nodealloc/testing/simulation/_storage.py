"""What outlives a process: a journal in memory, and a disk that tears, fills and loses power."""

from __future__ import annotations

import errno
import random
from collections.abc import Mapping
from typing import Generic, TypeVar

from nodealloc.checkpoint import Files
from nodealloc.testing._simulated_disk import FaultyFiles, InjectedFault, SimulatedDisk
from nodealloc.testing.simulation._chance import Chance
from nodealloc.testing.simulation._life import Life

__all__ = ["DurableRows", "MachineDisk"]

Row = TypeVar("Row")


class DurableRows(Generic[Row]):
    """A `Journal` without a disk: whole commits, durable when they return. Give it to a life as a port.

    Faults, by name: `journal fails`, `journal is interrupted` (Ctrl-C before
    anything was written).

    Attributes:
        rows: What a next life would read.
        commits: How many there were.
    """

    def __init__(self, chance: Chance) -> None:
        self.rows: dict[str, Row] = {}
        self.commits: int = 0
        self._chance = chance

    def commit(self, changes: Mapping[str, Row | None], /) -> None:
        """All rows, or, raising, none."""
        if self._chance.strikes("journal fails"):
            raise OSError(errno.EIO, "the disk did not answer")
        if self._chance.strikes("journal is interrupted"):
            raise KeyboardInterrupt
        self.commits += 1
        for name, row in changes.items():
            if row is None:
                self.rows.pop(name, None)
            else:
                self.rows[name] = row


_CHANGES = frozenset({"write", "fsync", "rename", "unlink", "mkdir", "rmdir", "truncate", "link"})
"""System calls that change what is on a disk."""


class MachineDisk:
    """One directory for a store, over all lives of a machine.

    Faults, by name: `disk fails` (EIO from what changes it), `disk cannot be read`
    (EIO from all else, after which a store may set a key aside as damaged), `disk
    is full` (ENOSPC, for this call; `capacity_bytes` of `disk` is for good), `write
    is short`. A life that ends
    at a system call leaves what was written; one that loses power leaves any
    part of what was not flushed, torn as `SimulatedDisk.outcomes` says.

    Attributes:
        disk: As it is now.
    """

    def __init__(self, chance: Chance) -> None:
        self.disk: SimulatedDisk = SimulatedDisk()
        self._chance = chance

    def files(self, life: Life, /) -> Files:
        """System calls of one life, for `FileStore(disk.path, formats, files=…)`."""

        def fault(_number: int, name: str) -> InjectedFault | None:
            life.enter()
            strikes = self._chance.strikes
            if strikes("disk fails" if name in _CHANGES else "disk cannot be read"):
                return InjectedFault(code=errno.EIO)
            if name in {"write", "open"} and strikes("disk is full"):
                return InjectedFault(code=errno.ENOSPC)
            if name == "write" and strikes("write is short"):
                return InjectedFault(taken=1)
            return None

        return FaultyFiles(self.disk, fault)

    def ended(self, *, power_lost: bool, rng: random.Random) -> None:
        """A process ended; the next one finds what it left."""
        self.disk = self.disk.after_power_cut(rng) if power_lost else self.disk.after_kill()
