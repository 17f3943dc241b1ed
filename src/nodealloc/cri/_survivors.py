"""What lives on of commands that ran out of their time, counted among the processes of their container.

A runtime ends the command itself; what forked away from it stays in the container's cgroup.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Final

from nodealloc._not_now import NOT_NOW
from nodealloc._procfs import PROC, ProcessStat, stat_of
from nodealloc._walk import deepest_first

__all__ = ["Survivors", "ticks_now"]

_CGROUPS: Final = Path("/sys/fs/cgroup")


def ticks_now() -> int:
    """Clock ticks since boot, as `/proc` counts them when a process starts."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))


class Survivors:
    """Counts what commands left behind. Thread-safe.

    A process counts that began after the command did, in a session that did so too, and
    that neither belongs to a command which still runs nor has ended. So a worker that the
    application starts meanwhile does not count; one that it puts into a session of its
    own in just that time does.

    Args:
        proc: Where procfs is mounted, with the container's processes in it.
        cgroups: Where cgroups are mounted.
    """

    def __init__(self, proc: Path = PROC, cgroups: Path = _CGROUPS) -> None:
        self._proc = proc
        self._cgroups = cgroups
        self._lock = threading.Lock()
        self._found: dict[str, dict[int, str]] = {}

    def note(self, container_id: str, first_pid: int, since_ticks: int, /) -> int | None:
        """A command ran out of time: how many processes of it live on.

        Args:
            container_id: Where it ran.
            first_pid: The container's first process.
            since_ticks: When the command was begun (`ticks_now`).

        Returns:
            None where the processes of the container cannot be seen from here.
        """
        folder = self._folder(first_pid)
        if folder is None:
            return None
        try:
            found = _left(dict(self._stats(folder)), first_pid, since_ticks)
        except OSError:
            return None
        with self._lock:
            self._forget_ended()
            before = self._found.get(container_id, {})
            fresh = [pid for pid, started in found.items() if before.get(pid) != started]
            if found:
                self._found[container_id] = {**before, **found}
        return len(fresh)

    def counts(self) -> Mapping[str, int]:
        """Container id to how many live on now; containers without any are left out."""
        with self._lock:
            self._forget_ended()
            return {one: len(mine) for one, mine in self._found.items()}

    def _forget_ended(self) -> None:
        for container_id, mine in tuple(self._found.items()):
            for pid, started in tuple(mine.items()):
                if not self._lives(pid, started):
                    del mine[pid]
            if not mine:
                del self._found[container_id]

    def _lives(self, pid: int, started: str) -> bool:
        try:
            stat = stat_of(pid, proc=self._proc)
        except OSError as error:
            return error.errno in NOT_NOW  # nobody knows; forgotten, it would never be counted again
        return stat.started_ticks == started and not stat.has_ended

    def _folder(self, pid: int) -> Path | None:
        """The cgroup of a process, in a hierarchy that can be read from here."""
        try:
            text = os.fsdecode((self._proc / str(pid) / "cgroup").read_bytes())
        except OSError:
            return None
        for line in text.split("\n")[:-1]:
            _, controllers, path = line.split(":", 2)
            for name in (controllers, controllers.partition(",")[0], "unified"):
                folder = self._cgroups / name / path.lstrip("/")
                with contextlib.suppress(OSError):
                    if str(pid) in (folder / "cgroup.procs").read_text(encoding="ascii").split():
                        return folder
        return None

    def _stats(self, folder: Path) -> Iterator[tuple[int, ProcessStat]]:
        for inside in deepest_first(str(folder)):
            with _unless_not_now():
                for word in (Path(inside) / "cgroup.procs").read_text(encoding="ascii").split():
                    with _unless_not_now():
                        yield int(word), stat_of(int(word), proc=self._proc)


@contextlib.contextmanager
def _unless_not_now() -> Generator[None]:
    """What has gone meanwhile is passed over; what cannot be read now is not known to have gone."""
    try:
        yield
    except OSError as error:
        if error.errno in NOT_NOW:
            raise


def _left(stats: Mapping[int, ProcessStat], first_pid: int, since_ticks: int) -> dict[int, str]:
    """Number and start of each process that a command left behind."""
    older = {one.session for one in stats.values() if int(one.started_ticks) < since_ticks}
    return {
        pid: one.started_ticks
        for pid, one in stats.items()
        if int(one.started_ticks) >= since_ticks
        and one.session not in older
        and not one.has_ended
        and not _is_of_a_command(pid, stats, first_pid)
    }


def _is_of_a_command(pid: int, stats: Mapping[int, ProcessStat], first_pid: int) -> bool:
    """Whether a command that still runs is above it: its parent is outside, and it leads its session."""
    seen: set[int] = set()
    while (parent := stats[pid].parent) in stats and pid not in seen:
        seen.add(pid)
        pid = parent
    return pid != first_pid and stats[pid].session == pid
