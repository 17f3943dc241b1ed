"""Whose a process is by its environment: finds what runs also where nothing on disk tells of it."""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Final

import attrs

from examples.processes._fence import Fence, end_all, sessions
from examples.processes._table import Table
from nodealloc.cgroups import CgroupName
from nodealloc.runtime import RuntimeUnavailableError

__all__ = ["COMMAND", "end_commands", "end_strays", "mark"]

_log = logging.getLogger("examples.processes")

COMMAND: Final = "NODEALLOC_COMMAND"
"""Variable of a command that runs in a container, and of all that it starts: pid of the command."""
_CONTAINER: Final = "NODEALLOC_CONTAINER"
"""Variable of a container's processes and of commands in it: the folder of its files."""
_ID: Final = re.compile(rb"/[0-9a-f]{32}\Z")
"""How a mark of ours ends, whatever a container does to its own."""
_MOST_SAID: Final = 5


@attrs.frozen
class _Marked:
    """A live process of a container.

    Attributes:
        pid: Its number.
        container: Id of its container.
        command: Pid of the command that started it, or that it is; 0 where it is none's.
    """

    pid: int
    container: str
    command: int


def mark(folder: Path, container_id: str, /) -> dict[str, str]:
    """Variables that all processes of a container begin with.

    Args:
        folder: Of all that is kept.
        container_id: Whose processes.
    """
    return {_CONTAINER: str(folder / "containers" / container_id)}


def _marked(folder: Path, /) -> Iterator[_Marked]:
    """Live processes of all containers of a folder that may be looked at, and did not drop their mark."""
    within = os.fsencode(folder / "containers") + b"/"
    key, command = f"{_CONTAINER}=".encode() + within, f"{COMMAND}=".encode()
    for entry in os.listdir("/proc"):  # noqa: PTH208 - Path objects for each process cost more than all else
        if not entry.isdigit() or key not in (text := _environment(entry)):
            continue
        words = text.split(b"\0")
        names = [one.removeprefix(key).decode() for one in words if one.startswith(key) and _ID.search(one)]
        numbers = [one.removeprefix(command) for one in words if one.startswith(command)]
        if names:
            number = int(numbers[0]) if numbers and numbers[0].isdigit() else 0
            yield _Marked(int(entry), names[0], number)


def end_strays(table: Table, fence: Fence, root: CgroupName, /) -> None:
    """End what runs of containers that have no record of it: their pods would run a second time beside it.

    Args:
        table: All that is known.
        fence: How processes are held together.
        root: Cgroup of all containers.

    Raises:
        RuntimeUnavailableError: Some of it does not end.
    """
    folder = table.files.folder
    found: dict[str, list[int]] = {}
    for one in _marked(folder):
        found.setdefault(one.container, []).append(one.pid)
    known = set(table.files.names("containers"))
    strays = {name: pids for name, pids in found.items() if name not in known or _is_over(table, name)}
    if not strays:
        return
    for name, pids in strays.items():
        where = folder / "containers" / name
        _log.warning("%s has no record of a container that runs; it is ended: %s", where, _numbers(pids))
    fence.end_below(root, strays.keys())
    left = _end_marked(folder, lambda one: one.container in strays)
    if doubled := left & {pid for name in strays.keys() - known for pid in strays[name]}:
        words = f"{folder} does not know whose {_numbers(doubled)} is, which SIGKILL does not end; end it"
        raise RuntimeUnavailableError("keeper", words)


def end_commands(folder: Path, /) -> None:
    """End commands that run in containers, with all that they started: who asked for them was killed.

    What a command left behind as it ended is its container's, and goes on.
    """
    running = {(one.container, one.command) for one in _marked(folder) if one.pid == one.command}
    if running:
        _end_marked(folder, lambda one: (one.container, one.command) in running)


def _is_over(table: Table, name: str) -> bool:
    """Whether a container that is known does not run by its record, as it is now."""
    table.note(name)
    run = table.runs.get(name)
    return run is not None and not run.odd and (run.started is None or run.ended is not None)


def _end_marked(folder: Path, is_meant: Callable[[_Marked], bool]) -> frozenset[int]:
    """SIGKILL to marked processes, and to all in their sessions; who is still there shortly after."""

    def read() -> frozenset[int]:
        found = {one.pid for one in _marked(folder) if is_meant(one)}
        # A session is begun by one process, and only what that one starts is in it.
        return frozenset(found) | sessions(found) if found else frozenset()

    return end_all(read)


def _numbers(pids: Collection[int]) -> str:
    """The lowest of them: there may be thousands."""
    more = f" and {len(pids) - _MOST_SAID} more" if len(pids) > _MOST_SAID else ""
    return f"process {', '.join(map(str, sorted(pids)[:_MOST_SAID]))}{more}"


def _environment(pid: str) -> bytes:
    with contextlib.suppress(OSError):
        return Path("/proc", pid, "environ").read_bytes()
    return b""
