"""Containers as plain processes that outlive the agent; stands in for a container runtime."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from nodealloc.cgroups import CgroupName, ProcessDriver, launch
from nodealloc.errors import RetryableError
from nodealloc.node import RunningContainer
from nodealloc.topology import Owner

__all__ = ["Process", "ProcessRuntime"]

# How the command ended goes to a file, so that a later agent finds it; whole, or not at all.
# The shell outlives the command that it is told to end, which has its grace period then.
KEEP_STATUS = (
    "trap 'exit 143' TERM; status=$1; shift; "
    '"$@"; code=$?; echo $code >"$status.new" && mv "$status.new" "$status"; exit $code'
)


@attrs.frozen(kw_only=True)
class Process:
    """A process group that was started once.

    Attributes:
        owner: Whose container it is.
        pid: Leader of the group.
        started_ticks: Start time from `/proc/PID/stat`, against reuse of the pid.
        boot: Boot that the pid belongs to.
    """

    owner: Owner
    pid: int
    started_ticks: int
    boot: str

    @property
    def container_id(self) -> str:
        """Unique for all time on this machine."""
        return f"{self.boot[:8]}-{self.pid}-{self.started_ticks}"

    @property
    def is_alive(self) -> bool:
        """Whether that very process still runs."""
        return self.boot == _boot() and _started_ticks(self.pid) == self.started_ticks


class ProcessRuntime:
    """Starts, lists and stops process groups; what it knows stands in a folder.

    Is a `nodealloc.node.Runtime`. One thread at a time.
    """

    def __init__(self, folder: Path, driver: ProcessDriver) -> None:
        self._folder = folder
        self._driver = driver
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def start(
        self,
        owner: Owner,
        cgroup: CgroupName,
        command: Sequence[str],
        env: Mapping[str, str],
        before_start: Callable[[Process], None],
    ) -> Process:
        """Start a command in a cgroup; `before_start` is called before its first instruction.

        Raises:
            RetryableError: It cannot be started; nothing is left running.
        """
        try:
            return self._start(owner, cgroup, command, env, before_start)
        except (OSError, ValueError) as error:  # a full disk; a NUL in a command
            raise RetryableError(f"{owner.member} cannot be started: {error}") from error

    def _start(
        self,
        owner: Owner,
        cgroup: CgroupName,
        command: Sequence[str],
        env: Mapping[str, str],
        before_start: Callable[[Process], None],
    ) -> Process:
        status = self._file(owner, "status")
        status.unlink(missing_ok=True)
        found: list[Process] = []

        def before(pid: int) -> None:
            found.append(Process(owner=owner, pid=pid, started_ticks=_started_ticks(pid), boot=_boot()))
            before_start(found[0])
            self._write(found[0])

        with self._file(owner, "log").open("ab") as log:
            child = launch(
                self._driver,
                cgroup,
                ["/bin/sh", "-c", KEEP_STATUS, owner.member, str(status.resolve()), *command],
                env={"PATH": os.environ.get("PATH", os.defpath), **env},
                stdout=log,
                stderr=log,
                before_start=before,
            )
        self._children[child.pid] = child
        return found[0]

    def processes(self) -> list[Process]:
        """Every process that was started and still lives."""
        alive = [process for process in map(_read, sorted(self._folder.glob("*.json"))) if process.is_alive]
        for pid, child in list(self._children.items()):  # afterwards, so that who is found dead is reaped
            if child.poll() is not None:
                del self._children[pid]
        return alive

    def running(self) -> Sequence[RunningContainer]:
        """The same, as the node asks for it."""
        return [RunningContainer(owner=one.owner, container_id=one.container_id) for one in self.processes()]

    def exit_status(self, owner: Owner) -> int | None:
        """How the owner's command ended, under this agent or an earlier one; None while unknown."""
        try:
            return int(self._file(owner, "status").read_text())
        except (OSError, ValueError):
            return None

    def stop(self, process: Process, *, grace_s: float = 0.5) -> bool:
        """End a process group: TERM first, KILL after the grace period; whether it has ended."""
        for number, patience_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 5.0)):
            if process not in self.processes():
                return True
            with contextlib.suppress(ProcessLookupError):  # it ended by itself, just now
                os.killpg(process.pid, number)
            until = time.monotonic() + patience_s
            while process in self.processes() and time.monotonic() < until:
                time.sleep(0.01)
        return process not in self.processes()

    def forget(self, owner: Owner) -> None:
        """Remove what is known about an owner's container."""
        for suffix in ("json", "status", "log"):
            self._file(owner, suffix).unlink(missing_ok=True)

    def _file(self, owner: Owner, suffix: str) -> Path:
        return self._folder / f"{owner.workload}_{owner.member}.{suffix}"

    def _write(self, process: Process) -> None:
        path = self._file(process.owner, "json")
        aside = path.with_suffix(".new")
        owner = [process.owner.workload, process.owner.member]
        aside.write_text(json.dumps({**attrs.asdict(process), "owner": owner}))
        aside.replace(path)


def _read(path: Path) -> Process:
    try:
        fields = json.loads(path.read_text())
        return Process(
            owner=Owner(*map(str, fields["owner"])),
            pid=int(fields["pid"]),
            started_ticks=int(fields["started_ticks"]),
            boot=str(fields["boot"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        # "Nothing runs" would be a guess, and its CPUs would go to somebody else.
        remedy = "end its container and remove it"
        raise RetryableError(f"{path}: says no more what runs ({error!r}); {remedy}") from error


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _started_ticks(pid: int) -> int:
    """Start time of a live process; -1 for one that is gone or waits to be reaped."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return -1
    return -1 if fields[0] in "ZX" else int(fields[19])
