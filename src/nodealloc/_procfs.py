"""Reading `/proc`: the one place that knows how a process stands in it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

__all__ = ["PROC", "ProcessStat", "stat_of", "threads_of"]

PROC = Path("/proc")
"""Where procfs is mounted."""

_STATE, _PARENT, _SESSION, _START = 0, 1, 3, 19
"""Places in `/proc/PID/stat`, counted behind the command's name."""


class ProcessStat(NamedTuple):
    """What the kernel says of a process.

    Attributes:
        name: Its command; any characters.
        state: One letter: `R`, `S`, `D`, `T`, `Z`.
        started_ticks: When it started, in clock ticks since boot, as text: with its
            number, unique for all time.
        parent: Its parent's number.
        session: The number of the process that began its session.
    """

    name: str
    state: str
    started_ticks: str
    parent: int = 0
    session: int = 0

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it runs any more; a zombie waits for its parent alone."""
        return self.state in ("Z", "X")


def stat_of(pid: int, /, *, proc: Path = PROC) -> ProcessStat:
    """A process as `/proc/PID/stat` shows it.

    Raises:
        OSError: `ENOENT` or `ESRCH` when there is no such process.
    """
    text = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    # The name stands in parentheses and may hold any character, parentheses too.
    before, _, after = text.rpartition(")")
    fields = after.split()
    if len(fields) <= _START:  # it went while it was read
        raise ProcessLookupError(f"process {pid} ended while it was read")
    return ProcessStat(
        before.partition("(")[2],
        fields[_STATE],
        fields[_START],
        int(fields[_PARENT]),
        int(fields[_SESSION]),
    )


def threads_of(pid: int, /, *, proc: Path = PROC) -> frozenset[int]:
    """The threads of a process, itself among them.

    Raises:
        OSError: `ENOENT` or `ESRCH` when there is no such process.
    """
    return frozenset(int(entry.name) for entry in (proc / str(pid) / "task").iterdir())
