"""Starting a program inside a cgroup, so that its first instruction is confined already."""

from __future__ import annotations

import os
import subprocess
from typing import IO, TYPE_CHECKING, Final

from nodealloc._control_file import write_control_file
from nodealloc._procfs import PROC
from nodealloc._typed import typed
from nodealloc.cgroups._errors import LimitRefusedError, ProcessGoneError
from nodealloc.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nodealloc.cgroups._name import CgroupName
    from nodealloc.cgroups._ports import ProcessDriver

__all__ = ["launch"]

_GATE: Final = 'read -r _ || exit 125; exec "$@" </dev/null'
"""Waits for one line; without it (the starter died) ends with 125 and runs nothing."""
_LEAST_SCORE: Final = -1000
_MOST_SCORE: Final = 1000


@typed
def launch(
    driver: ProcessDriver,
    name: CgroupName,
    command: Sequence[str],
    /,
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = None,
    oom_score_adj: int | None = None,
    before_start: Callable[[int], None] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a command inside a cgroup.

    A shell is started that waits at a gate; it is moved into the cgroup while
    it waits; then the gate opens and it becomes the command, under the same
    process id. The command never runs outside. If this program dies meanwhile,
    the gate closes and the command never runs at all. Its standard input is
    empty; it leads a session of its own.

    Args:
        driver: Who moves the process.
        name: A cgroup that exists; on v2 one without children.
        command: Program and arguments; the program is looked for in PATH.
        env: Environment, or None for this program's own.
        cwd: Working directory.
        stdout: As for `subprocess.Popen`.
        stderr: As for `subprocess.Popen`.
        oom_score_adj: Who is killed first when memory runs out, -1000 to 1000;
            lowering it needs privilege.
        before_start: Called with the process id while the process waits.

    Returns:
        The process; end and reap it as any other.

    Raises:
        CgroupAbsentError: The cgroup does not exist. Nothing is left running
            after this or any other error.
        ProcessGoneError: Somebody ended the process while it waited.
        LimitRefusedError: The kernel refused the score.
        OSError: There is no such working directory.
    """
    _check(command, oom_score_adj)
    process = subprocess.Popen(  # noqa: S603 - running what the caller asks for is the point
        ["/bin/sh", "-c", _GATE, "sh", *command],
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=stderr,
        env=env,
        cwd=cwd,
        start_new_session=True,
    )
    gate = process.stdin
    assert gate is not None  # noqa: S101 - for the type checker: it is a pipe
    try:
        driver.attach(name, process.pid)
        if oom_score_adj is not None:
            _set_score(name, process.pid, oom_score_adj)
        if before_start is not None:
            before_start(process.pid)
        _open_gate(name, process, gate)
    except BaseException:
        process.kill()
        with process:  # reaps it, and closes the pipes
            raise
    gate.close()
    process.stdin = None
    return process


def _check(command: Sequence[str], oom_score_adj: int | None) -> None:
    if not command or isinstance(command, str):
        what = "text" if command else "empty"
        raise ConfigurationError(f"command is {what}; give a list of a program and its arguments")
    if oom_score_adj is not None and not _LEAST_SCORE <= oom_score_adj <= _MOST_SCORE:
        raise ConfigurationError(f"oom_score_adj {oom_score_adj} is outside {_LEAST_SCORE} to {_MOST_SCORE}")


def _set_score(name: CgroupName, pid: int, score: int) -> None:
    path = str(PROC / str(pid) / "oom_score_adj")
    try:
        write_control_file(path, str(score))
    except FileNotFoundError:
        raise ProcessGoneError(pid, name) from None
    except OSError as error:
        reason = f"{error.strerror}; ask for no less than this program has, or run with CAP_SYS_RESOURCE"
        raise LimitRefusedError(name, path, str(score), error.errno or 0, reason=reason) from None


def _open_gate(name: CgroupName, process: subprocess.Popen[bytes], gate: IO[bytes]) -> None:
    try:
        # Past the buffer: what stayed in it would fail again when it is closed.
        os.write(gate.fileno(), b"\n")
    except BrokenPipeError:
        raise ProcessGoneError(process.pid, name) from None
